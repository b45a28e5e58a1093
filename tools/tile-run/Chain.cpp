//===- Chain.cpp - A backward on the results of its forward ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Chain.h"

#include "Call.h"
#include "bastile/runtime/HostTypes.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace bastile;
using namespace bastile::run;
using runtime::Error;
using runtime::Expected;
using runtime::Function;
using Source = runtime::Backward::Source;

const Function *run::findForward(const runtime::Metadata &metadata,
                                 const Function &function) {
  for (const Function &forward : metadata.functions)
    if (forward.backward && forward.backward->function == function.name)
      return &forward;
  return nullptr;
}

/// The `values` for inputs of `function`, by their names.
static NamedValues select(const NamedValues &values, const Function &function) {
  NamedValues selected;
  for (const auto &[name, value] : values)
    if (llvm::any_of(function.inputs, [&name = name](const auto &input) {
          return input.name == name;
        }))
      selected.emplace(name, value);
  return selected;
}

/// Fails if a name is neither an input of the forward nor a gradient.
static Error checkNames(const Function &forward, const Function &function,
                        const NamedValues &values) {
  for (const auto &[name, value] : values) {
    if (select({{name, value}}, forward).count(name))
      continue;
    bool isGradient = false;
    for (size_t i = 0; i != function.inputs.size(); ++i)
      isGradient |= function.inputs[i].name == name &&
                    forward.backward->inputs[i].kind == Source::Kind::Gradient;
    if (!isGradient)
      return Error(
          "to be checked, '" + function.name + "' is called on what '" +
          forward.name + "' returns; '" + name +
          "' is neither an input of that nor the gradient of a result");
  }
  return Error::success();
}

/// The gradient of an output, from a file or random.
static Expected<Tensor> makeSeed(const Tensor &output, const std::string *file,
                                 uint64_t seed, ArrayFiles &files) {
  Tensor tensor(output.type(), output.sizes(), Placement());
  if (!file) {
    tensor.setElements(
        makeRandomElements(output.type(), output.elementCount(), seed).data());
    return tensor;
  }
  auto array = files.load(*file, {output.type()});
  if (!array)
    return array.takeError();
  if (Error error = setLeadingElements(tensor, **array, *file))
    return error;
  return tensor;
}

/// A tensor with the same elements, placed for input `index` of `function`.
static Tensor place(const Tensor &tensor, const Function &function,
                    unsigned index, Placement placement) {
  if (needsNoGaps(function, runtime::Operand::Kind::Input, index))
    placement = placement.withoutGaps();
  Tensor placed(tensor.type(), tensor.sizes(), placement);
  placed.setElements(tensor.getElements().data());
  return placed;
}

Expected<Chain> run::runForward(const Program &program, const Function &forward,
                                const Function &function,
                                const InputOptions &options,
                                const Oracle &oracle, ArrayFiles &files) {
  InputOptions forwardOptions = options;
  for (NamedValues InputOptions::*values :
       {&InputOptions::files, &InputOptions::shapes, &InputOptions::ranges}) {
    if (Error error = checkNames(forward, function, options.*values))
      return error;
    forwardOptions.*values = select(options.*values, forward);
  }
  Machine &machine = *program.machine;
  Chain chain;
  chain.forward = &forward;
  auto inputs = makeInputs(forward, forwardOptions, files);
  if (!inputs)
    return inputs.takeError();
  chain.inputs = std::move(*inputs);
  auto outputs = makeOutputs(machine, forward, chain.inputs, options.placement);
  if (!outputs)
    return outputs.takeError();
  auto call = Call::create(machine, forward, chain.inputs, *outputs,
                           /*inPlace=*/false);
  if (!call)
    return call.takeError();
  if (Error error = machine.run((*call)->plan()))
    return error;
  if (Error error = (*call)->read(machine, *outputs))
    return error;

  // All results get gradients, whether the backward reads them or not.
  const std::vector<Source> &sources = forward.backward->inputs;
  chain.seeds.resize(outputs->size());
  const unsigned results = oracle.countResults(forward);
  for (unsigned i = 0; i != results && i != outputs->size(); ++i) {
    if (!runtime::isFloat((*outputs)[i].type()))
      continue;
    const std::string *file = nullptr;
    for (size_t input = 0; input != sources.size(); ++input) {
      auto found = options.files.find(function.inputs[input].name);
      if (sources[input].kind == Source::Kind::Gradient &&
          sources[input].index == i && found != options.files.end())
        file = &found->second;
    }
    auto seed =
        makeSeed((*outputs)[i], file, (options.seed + 1) * 1000000 + i, files);
    if (!seed)
      return seed.takeError();
    chain.seeds[i] = std::move(*seed);
  }
  for (unsigned i = 0; i != sources.size(); ++i) {
    const Source &source = sources[i];
    const Tensor &tensor =
        source.kind == Source::Kind::Gradient ? *chain.seeds[source.index]
        : source.kind == Source::Kind::Input  ? chain.inputs[source.index]
                                              : (*outputs)[source.index];
    chain.taken.push_back(place(tensor, function, i, options.placement));
  }
  return chain;
}

/// Expects of the function that scales gradients: those computed with a value,
/// times the gradient of that value, which is the first input.
static std::vector<ChainedOutput>
expectScaled(const Chain &chain, const Function &function,
             const std::vector<Tensor> &outputs) {
  const double factor = chain.taken.front().getNumbers().front();
  std::vector<ChainedOutput> all;
  for (size_t i = 0; i != outputs.size(); ++i) {
    const runtime::ElementType type = outputs[i].type();
    Expectation expected;
    for (double gradient : chain.taken[i + 1].getNumbers()) {
      // The product is rounded in float32, or float64, and then to the type.
      const double product = gradient * factor;
      expected.numbers.push_back(product);
      expected.errors.push_back(std::fabs(product) * 0x1p-24 +
                                runtime::ulp(type, product) / 2);
    }
    all.push_back({function.outputs[i].name, &outputs[i], std::move(expected)});
  }
  return all;
}

/// Whether a number that has to be right is not zero.
static bool hasNonzero(const Expectation &expected) {
  for (size_t i = 0; i != expected.numbers.size(); ++i)
    if (std::fabs(expected.numbers[i]) >
        (expected.errors.empty() ? 0 : expected.errors[i]))
      return true;
  return false;
}

Expected<std::vector<ChainedOutput>>
run::expectChained(const Chain &chain, const Function &function,
                   const std::vector<Tensor> &outputs, const Oracle &oracle) {
  if (oracle.returnsGradients())
    return expectScaled(chain, function, outputs);
  const Function &forward = *chain.forward;
  auto expected = oracle.differentiate(forward, chain.inputs, chain.seeds);
  if (!expected)
    return expected.takeError();
  std::vector<ChainedOutput> all;
  for (size_t i = 0; i != expected->size(); ++i) {
    const std::string &name = forward.inputs[i].name;
    const std::optional<Source> &where = forward.backward->gradients[i];
    std::optional<Expectation> &wanted = (*expected)[i];
    if (!where) {
      // Only gradients that were not asked for may be missing.
      if (wanted && oracle.isGradientOf(name) && hasNonzero(*wanted))
        return Error("function '" + forward.name + "' has no gradient of '" +
                     name + "', on which its results depend");
      continue;
    }
    const Tensor &tensor = where->kind == Source::Kind::Result
                               ? outputs[where->index]
                               : *chain.seeds[where->index];
    if (!wanted) {
      wanted.emplace();
      wanted->numbers.resize(tensor.elementCount());
    }
    all.push_back({"grad_" + name, &tensor, std::move(*wanted)});
  }
  return all;
}
