//===- Trial.cpp - Calling, checking and timing a function
//--------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Trial.h"

#include "Call.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace bastile;
using namespace bastile::run;
using runtime::Dimensions;
using runtime::ElementType;
using runtime::Error;
using runtime::Expected;
using runtime::Function;
using runtime::NpyArray;

/// The most calls that a pass of the timing goes over.
static constexpr size_t kMaxCalls = 256;

bool TrialResult::passed() const {
  return llvm::all_of(outputs, std::mem_fn(&CheckedOutput::passed));
}

/// Reads numbers of float64, or of the output's own type.
static Expected<Tensor> loadExpected(const std::string &file,
                                     const Tensor &output, ArrayFiles &files) {
  auto array = files.load(file, {ElementType::F64, output.type()});
  if (!array)
    return array.takeError();
  Tensor tensor((*array)->type, output.sizes(), Placement());
  if (Error error = setLeadingElements(tensor, **array, file))
    return error;
  return tensor;
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

/// Runs the reference on the numbers of `inputs`, in memory of its own.
static Expected<std::vector<Tensor>>
computeReference(Program &reference, const std::string &name,
                 const std::vector<Tensor> &inputs) {
  Machine &machine = *reference.machine;
  const Function &function = *reference.metadata.find(name);
  std::vector<Tensor> promoted;
  for (size_t i = 0; i != inputs.size(); ++i) {
    ElementType type = function.inputs[i].type;
    Tensor &input = promoted.emplace_back(type, inputs[i].sizes(), Placement());
    if (type != ElementType::F64) {
      input.setElements(inputs[i].getElements().data());
      continue;
    }
    std::vector<double> numbers = inputs[i].getNumbers();
    input.setElements(reinterpret_cast<const char *>(numbers.data()));
  }
  auto outputs = makeOutputs(machine, function, promoted, Placement());
  if (!outputs)
    return outputs.takeError();
  auto call = Call::create(machine, function, promoted, *outputs,
                           /*inPlace=*/false);
  if (!call)
    return call.takeError();
  if (Error error = machine.run((*call)->plan()))
    return error;
  if (Error error = (*call)->read(machine, *outputs))
    return error;
  return outputs;
}

/// Measures the time of a call, going over enough copies of its tensors.
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

/// The error that is allowed for an output.
static double getTolerance(ElementType type, const TrialOptions &options) {
  if (options.tolerance)
    return *options.tolerance;
  const double tolerance = getDefaultTolerance(type);
  return runtime::isFloat(type) ? tolerance + options.innerRoundings
                                : tolerance;
}

/// Compares the outputs with files and with the reference.
static Error check(const std::vector<Tensor> &inputs,
                   const std::vector<Tensor> &outputs, Program *reference,
                   const Function &function, const TrialOptions &options,
                   ArrayFiles &files, TrialResult &result) {
  std::vector<Tensor> computed;
  if (reference) {
    auto results = computeReference(*reference, function.name, inputs);
    if (!results)
      return results.takeError();
    computed = std::move(*results);
  }
  for (size_t i = 0; i != outputs.size(); ++i) {
    const std::string &name = function.outputs[i].name;
    auto file = options.expectedFiles.find(name);
    Comparison comparison;
    if (file != options.expectedFiles.end()) {
      Expected<Tensor> expected = loadExpected(file->second, outputs[i], files);
      if (!expected)
        return expected.takeError();
      comparison = compare(outputs[i], *expected);
    } else if (reference) {
      comparison = compare(outputs[i], computed[i]);
    } else {
      continue;
    }
    result.outputs.push_back({name, outputs[i].type(), outputs[i].sizes(),
                              comparison,
                              getTolerance(outputs[i].type(), options)});
  }
  return Error::success();
}

Expected<TrialResult> run::runTrial(Program &program, Program *reference,
                                    const Function &function,
                                    const TrialOptions &options,
                                    ArrayFiles &files) {
  for (const NamedValues *values :
       {&options.outputFiles, &options.expectedFiles})
    if (Error error = checkNames(function, *values))
      return error;
  Machine &machine = *program.machine;
  auto inputs = makeInputs(function, options.inputs, files);
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
  for (size_t i = 0; i != inputs->size(); ++i) {
    result.shapes.emplace_back(function.inputs[i].name, (*inputs)[i].sizes());
    result.bytes += (*inputs)[i].byteCount();
  }
  for (const Tensor &output : outputs)
    result.bytes += output.byteCount();
  if (Error error =
          check(*inputs, outputs, reference, function, options, files, result))
    return error;
  for (size_t i = 0; i != outputs.size(); ++i) {
    auto file = options.outputFiles.find(function.outputs[i].name);
    if (file == options.outputFiles.end())
      continue;
    if (Error error = saveOutput(file->second, outputs[i]))
      return error;
  }
  // Without elements there is nothing whose time would mean anything.
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
