//===- Call.cpp - One call of a function ----------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include "Inputs.h"
#include "bastile/runtime/Shapes.h"

using namespace bastile;
using namespace bastile::run;
using runtime::Error;
using runtime::Expected;
using runtime::Function;
using runtime::ResolvedShapes;
using runtime::TensorView;

/// Finds the shapes of the outputs and temporaries of a call on `inputs`.
static Error resolve(const Machine &machine, const Function &function,
                     const std::vector<Tensor> &inputs,
                     ResolvedShapes &shapes) {
  std::vector<TensorView> views;
  views.reserve(inputs.size());
  // Shapes depend on neither addresses nor strides.
  for (const Tensor &input : inputs)
    views.push_back(
        TensorView::contiguous(nullptr, input.type(), input.sizes()));
  return runtime::resolveShapes(function, views, machine.capacity(), shapes);
}

Expected<std::vector<Tensor>>
run::makeOutputs(const Machine &machine, const Function &function,
                 const std::vector<Tensor> &inputs,
                 const Placement &placement) {
  ResolvedShapes shapes;
  if (Error error = resolve(machine, function, inputs, shapes))
    return error;
  std::vector<Tensor> outputs;
  for (size_t i = 0; i != function.outputs.size(); ++i) {
    const runtime::BufferSpec &spec = function.outputs[i];
    Placement outputPlacement = placement;
    if (needsNoGaps(function, runtime::Operand::Kind::Output, i))
      outputPlacement = placement.withoutGaps();
    if (Error error = checkMemory("output '" + spec.name + "'", spec.type,
                                  shapes.outputs[i], outputPlacement))
      return error;
    outputs.emplace_back(spec.type, shapes.outputs[i], outputPlacement);
  }
  return outputs;
}

Error Call::place(const Machine &machine, const Tensor &tensor,
                  Placed &placed) {
  auto memory = machine.allocate(tensor.memory().size());
  if (!memory)
    return memory.takeError();
  if (Error error = machine.write(**memory, tensor.memory()))
    return error;
  placed.views.push_back(tensor.view((*memory)->data()));
  placed.memory.push_back(std::move(*memory));
  return Error::success();
}

Error Call::placeOutput(const Machine &machine, const Tensor &tensor,
                        const runtime::BufferSpec &spec, bool inPlace) {
  if (!inPlace || !spec.mayAlias)
    return place(machine, tensor, outputs);
  const unsigned input = *spec.mayAlias;
  if (inputs.views[input].sizes != tensor.sizes())
    return Error("function '" + function.name + "': output '" + spec.name +
                 "' does not have the shape of input '" +
                 function.inputs[input].name + "', whose memory it is to take");
  // Input and output are placed alike, so guard bytes lie at the same places.
  outputs.views.push_back(inputs.views[input]);
  outputs.memory.push_back(inputs.memory[input]);
  overwritten.insert(input);
  return Error::success();
}

Expected<std::unique_ptr<Call>> Call::create(const Machine &machine,
                                             const Function &function,
                                             const std::vector<Tensor> &inputs,
                                             const std::vector<Tensor> &outputs,
                                             bool inPlace) {
  ResolvedShapes shapes;
  if (Error error = resolve(machine, function, inputs, shapes))
    return error;

  std::unique_ptr<Call> call(new Call(function));
  for (const Tensor &input : inputs)
    if (Error error = place(machine, input, call->inputs))
      return error;
  for (size_t i = 0; i != outputs.size(); ++i)
    if (Error error = call->placeOutput(machine, outputs[i],
                                        function.outputs[i], inPlace))
      return error;
  for (size_t i = 0; i != function.temporaries.size(); ++i) {
    if (Error error = run::checkMemory("temporary " + std::to_string(i),
                                       function.temporaries[i].type,
                                       shapes.temporaries[i], Placement()))
      return error;
    const Tensor &temporary = call->scratch.emplace_back(
        function.temporaries[i].type, shapes.temporaries[i], Placement());
    if (Error error = place(machine, temporary, call->temporaries))
      return error;
  }
  if (Error error = call->launches.prepare(
          function,
          {call->inputs.views, call->outputs.views, call->temporaries.views},
          machine.capacity()))
    return error;
  return call;
}

Error Call::read(const Machine &machine, std::vector<Tensor> &results) const {
  for (size_t i = 0; i != results.size(); ++i)
    if (Error error = machine.read(*outputs.memory[i], results[i].memory()))
      return error;
  return Error::success();
}

Error Call::checkMemory(const Machine &machine,
                        const std::vector<Tensor> &before,
                        const std::vector<Tensor> &results) {
  auto fail = [&](const char *what, const std::string &name) {
    return Error("function '" + function.name + "' wrote " + what + " '" +
                 name + "'");
  };
  for (size_t i = 0; i != before.size(); ++i) {
    if (overwritten.count(i))
      continue;
    std::vector<char> after(before[i].memory().size());
    if (Error error = machine.read(*inputs.memory[i], after))
      return error;
    if (after != before[i].memory())
      return fail("to its input", function.inputs[i].name);
  }
  for (size_t i = 0; i != results.size(); ++i)
    if (!results[i].isIntact())
      return fail("outside the elements of its output",
                  function.outputs[i].name);
  for (size_t i = 0; i != scratch.size(); ++i) {
    if (Error error = machine.read(*temporaries.memory[i], scratch[i].memory()))
      return error;
    if (!scratch[i].isIntact())
      return fail("outside the elements of its temporary", std::to_string(i));
  }
  return Error::success();
}
