//===- Operator.h - Ops that compile for their operands ---------*- C++ -*-===//

#ifndef BASTILE_PYTHON_OPERATOR_H
#define BASTILE_PYTHON_OPERATOR_H

#include "Kernel.h"

#include <string>
#include <unordered_map>

namespace bastile::python {

/// Chooses the kernel for a call by what its code depends on: the attributes,
/// which operands are there and the type, rank, row length and place of each.
/// The number of rows is none of it. Kernels are asked of Python once.
class Operator {
public:
  /// `specialize(attributes, operands, gradients)` returns the kernel for a
  /// call like this one; `gradients` has a boolean for each operand, or is None
  /// for a kernel without a backward. `name` and `operandNames` are for
  /// messages.
  Operator(pybind11::object specialize, std::string name,
           std::vector<std::string> operandNames)
      : specialize(std::move(specialize)), name(std::move(name)),
        operandNames(std::move(operandNames)) {}

  /// "rms_norm: operand 'weight'"
  std::string describeOperand(size_t index) const;

  /// The kernel for `operands`, some of which may be None.
  pybind11::object find(const pybind11::tuple &operands,
                        const pybind11::object &attributes,
                        const pybind11::object &gradients);

  /// Runs that kernel without gradients, in whatever library the operands are.
  pybind11::object run(const pybind11::tuple &operands,
                       const pybind11::object &attributes, bool inPlace);

  /// Runs the kernel with gradients of the operands that `gradients` says;
  /// returns it with what `Kernel::forward` returns.
  pybind11::tuple forward(const pybind11::tuple &operands,
                          const pybind11::object &attributes,
                          const pybind11::object &gradients);

  /// Forgets all kernels; those that are being made are kept by their calls.
  void clear();

private:
  using Kernels = std::unordered_map<std::string, pybind11::object>;

  pybind11::object specialize;
  std::string name;
  std::vector<std::string> operandNames;
  /// By the attributes, which are compared as Python does.
  pybind11::dict kernelsOfAttributes;
  std::vector<std::shared_ptr<Kernels>> storage;
  /// The attributes of the last call, and their kernels.
  pybind11::object lastAttributes;
  Kernels *lastKernels = nullptr;
};

/// How a call on tensors of some type is carried out.
enum class Route : uint8_t {
  /// The kernel is run on the memory, and that is all.
  Direct,
  /// As above, unless a gradient is wanted or somebody watches the operations.
  Watched,
  /// The library itself decides what a call means.
  Dispatched,
};

/// What a library with automatic differentiation asks of calls on its tensors.
struct Hooks {
  /// The route of a type, a number.
  pybind11::object classify;
  /// Whether gradients are recorded.
  pybind11::object recordsGradients;
  /// Whether any of these holds, calls go through `dispatch`.
  std::vector<pybind11::object> watchers;
  /// Carries out a call (operator, attributes, *operands) with gradients.
  pybind11::object differentiate;
  /// Carries out a call (operator, operands, attributes) as it sees fit.
  pybind11::object dispatch;
};

void setHooks(Hooks hooks);

/// Calls an operator by the route that its operands ask for. `owner` is the
/// object that the hooks are given as the operator.
pybind11::object call(const pybind11::object &owner, Operator &native,
                      const pybind11::tuple &operands,
                      const pybind11::object &attributes);

} // namespace bastile::python

#endif // BASTILE_PYTHON_OPERATOR_H
