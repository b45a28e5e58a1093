//===- Trial.cpp - Calling, checking and timing a function ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Trial.h"

#include "Call.h"
#include "Chain.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <set>

using namespace bastile;
using namespace bastile::run;
using runtime::Dimensions;
using runtime::ElementType;
using runtime::Error;
using runtime::Expected;
using runtime::Function;
using runtime::NpyArray;

/// The most calls in a round of the timing.
static constexpr size_t kMaxCalls = 256;

bool TrialResult::passed() const {
  return llvm::all_of(outputs, std::mem_fn(&CheckedOutput::passed));
}

/// Reads expected numbers, of float64 or of the output's own type.
static Expected<Expectation>
loadExpected(const std::string &file, const Tensor &output, ArrayFiles &files) {
  auto array = files.load(file, {ElementType::F64, output.type()});
  if (!array)
    return array.takeError();
  Tensor tensor((*array)->type, output.sizes(), Placement());
  if (Error error = setLeadingElements(tensor, **array, file))
    return error;
  Expectation expected;
  if (runtime::isFloat(tensor.type()))
    expected.numbers = tensor.getNumbers();
  else
    expected.integers = tensor.getIntegers();
  return expected;
}

static Error saveOutput(const std::string &file, const Tensor &output) {
  std::vector<char> elements = output.getElements();
  NpyArray array;
  array.type = output.type();
  array.shape.assign(output.sizes().begin(), output.sizes().end());
  array.data.assign(elements.begin(), elements.end());
  return runtime::saveNpy(file, array);
}

/// Fails if a name that was given is none of the function's outputs.
static Error checkNames(const Function &function, const NamedValues &values) {
  for (const auto &[name, value] : values)
    if (llvm::none_of(function.outputs, [&name = name](const auto &output) {
          return output.name == name;
        }))
      return Error("function '" + function.name + "' has no output '" + name +
                   "'");
  return Error::success();
}

/// Measures the time of a call, with enough copies of its tensors that caches
/// do not help.
static Expected<double> measure(Machine &machine, const Function &function,
                                const std::vector<Tensor> &inputs,
                                const std::vector<Tensor> &outputs,
                                int64_t bytes, const TrialOptions &options) {
  size_t count = 1;
  if (size_t total = machine.bytesPastCaches(); total != 0 && bytes != 0)
    count = std::min(kMaxCalls, llvm::divideCeil(total, bytes) + 1);
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<runtime::LaunchPlan *> plans;
  for (size_t i = 0; i != count; ++i) {
    auto call =
        Call::create(machine, function, inputs, outputs, options.inPlace);
    if (!call)
      return call.takeError();
    plans.push_back(&(*call)->plan());
    calls.push_back(std::move(*call));
  }
  return machine.time(plans, options.repeat);
}

/// Compares the outputs for which there are files; returns their names.
static Expected<std::set<std::string>>
checkFiles(const std::vector<Tensor> &outputs, const Function &function,
           const TrialOptions &options, ArrayFiles &files,
           TrialResult &result) {
  std::set<std::string> checked;
  for (size_t i = 0; i != outputs.size(); ++i) {
    const std::string &name = function.outputs[i].name;
    auto file = options.expectedFiles.find(name);
    if (file == options.expectedFiles.end())
      continue;
    Expected<Expectation> expected =
        loadExpected(file->second, outputs[i], files);
    if (!expected)
      return expected.takeError();
    const runtime::ElementType type = outputs[i].type();
    result.outputs.push_back(
        {name, type, outputs[i].sizes(),
         compare(outputs[i], *expected,
                 options.tolerance.value_or(getDefaultTolerance(type)))});
    checked.insert(name);
  }
  return checked;
}

/// Compares the outputs with files and with the oracle's expectations.
static Error check(const std::vector<Tensor> &inputs, const Chain *chain,
                   const std::vector<Tensor> &outputs, const Oracle *oracle,
                   const Function &function, const TrialOptions &options,
                   ArrayFiles &files, TrialResult &result) {
  auto checked = checkFiles(outputs, function, options, files, result);
  if (!checked)
    return checked.takeError();
  if (!oracle)
    return Error::success();
  auto add = [&](const std::string &name, const Tensor &tensor,
                 const Expectation &expected) {
    if (!checked->count(name))
      result.outputs.push_back({name, tensor.type(), tensor.sizes(),
                                compare(tensor, expected, options.tolerance)});
  };
  if (chain) {
    auto expected = expectChained(*chain, function, outputs, *oracle);
    if (!expected)
      return expected.takeError();
    for (const ChainedOutput &output : *expected)
      add(output.name, *output.tensor, output.expected);
    return Error::success();
  }
  auto expected = oracle->evaluate(function, inputs);
  if (!expected)
    return expected.takeError();
  for (size_t i = 0; i != outputs.size(); ++i)
    if (const std::optional<Expectation> &known = (*expected)[i])
      add(function.outputs[i].name, outputs[i], *known);
  return Error::success();
}

Expected<TrialResult> run::runTrial(Program &program, const Oracle *oracle,
                                    const Function &function,
                                    const TrialOptions &options,
                                    ArrayFiles &files) {
  for (const NamedValues *values :
       {&options.outputFiles, &options.expectedFiles})
    if (Error error = checkNames(function, *values))
      return error;
  Machine &machine = *program.machine;
  const Function *forward =
      oracle ? findForward(program.metadata, function) : nullptr;
  std::optional<Chain> chain;
  if (forward) {
    auto made =
        runForward(program, *forward, function, options.inputs, *oracle, files);
    if (!made)
      return made.takeError();
    chain = std::move(*made);
  }
  Expected<std::vector<Tensor>> inputs =
      chain ? chain->taken : makeInputs(function, options.inputs, files);
  if (!inputs)
    return inputs.takeError();
  auto poisoned =
      makeOutputs(machine, function, *inputs, options.inputs.placement);
  if (!poisoned)
    return poisoned.takeError();
  auto call =
      Call::create(machine, function, *inputs, *poisoned, options.inPlace);
  if (!call)
    return call.takeError();
  if (Error error = machine.run((*call)->plan()))
    return error;
  std::vector<Tensor> outputs = *poisoned;
  if (Error error = (*call)->read(machine, outputs))
    return error;
  if (Error error = (*call)->checkMemory(machine, *inputs, outputs))
    return error;

  TrialResult result;
  result.function = function.name;
  for (const runtime::PlannedLaunch &launch : (*call)->plan().launches())
    result.variants.push_back(launch.variant->entry);
  for (size_t i = 0; i != inputs->size(); ++i) {
    result.shapes.emplace_back(function.inputs[i].name, (*inputs)[i].sizes());
    result.bytes += (*inputs)[i].byteCount();
  }
  for (const Tensor &output : outputs)
    result.bytes += output.byteCount();
  if (Error error = check(*inputs, chain ? &*chain : nullptr, outputs, oracle,
                          function, options, files, result))
    return error;
  for (size_t i = 0; i != outputs.size(); ++i) {
    auto file = options.outputFiles.find(function.outputs[i].name);
    if (file == options.outputFiles.end())
      continue;
    if (Error error = saveOutput(file->second, outputs[i]))
      return error;
  }
  // The time of a call on no elements would mean nothing.
  bool isEmpty = llvm::all_of(
      outputs, [](const Tensor &output) { return output.elementCount() == 0; });
  if (options.repeat != 0 && !isEmpty) {
    Expected<double> seconds =
        measure(machine, function, *inputs, *poisoned, result.bytes, options);
    if (!seconds)
      return seconds.takeError();
    result.seconds = *seconds;
  }
  return result;
}
