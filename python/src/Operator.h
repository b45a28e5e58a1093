//===- Operator.h - What chooses the kernel of a call -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PYTHON_OPERATOR_H
#define BASTILE_PYTHON_OPERATOR_H

#include "Kernel.h"

#include <string>
#include <unordered_map>

namespace bastile::python {

/// A kernel, and how PyTorch calls it where it records gradients.
struct Specialization {
  explicit Specialization(pybind11::object made)
      : kernel(std::move(made)), native(kernel.cast<const Kernel *>()) {}

  pybind11::object kernel;
  const Kernel *native;
  /// Called on the operands; null until a gradient is wanted.
  pybind11::object node;
};

/// Chooses the kernel for a call by what its code depends on: the attributes,
/// which operands are there, and the type, rank, row length and place of each,
/// but not the number of rows unless the code has it fixed. Python is asked for
/// each kernel once.
class Operator {
public:
  /// `specialize(attributes, operands, gradients)` returns the kernel for a
  /// call like this one; `gradients` has a boolean for each operand, or is None
  /// for a kernel without a backward. `name` and `operandNames` are for
  /// messages. With `gradients`, a call can be recorded for its gradients.
  Operator(pybind11::object specialize, std::string name,
           std::vector<std::string> operandNames, bool gradients)
      : specialize(std::move(specialize)), name(std::move(name)),
        operandNames(std::move(operandNames)), gradients(gradients) {}
  virtual ~Operator();

  /// "rms_norm: operand 'weight'"
  std::string describeOperand(size_t index) const;

  /// The kernel for `operands`, some of which may be None. It may be forgotten
  /// as soon as Python runs.
  virtual std::shared_ptr<Specialization>
  find(const pybind11::tuple &operands, const pybind11::object &attributes,
       const pybind11::object &gradients);

  /// Whether a call can be recorded for its gradients.
  bool hasGradients() const { return gradients; }

  /// Whether operands are what the kernel takes, one by one.
  virtual bool isFixed() const { return false; }

  /// Runs that kernel without gradients, in whatever library the operands are.
  pybind11::object run(const pybind11::tuple &operands,
                       const pybind11::object &attributes);

  /// Runs the kernel with gradients of the operands that `gradients` says, as
  /// a node of PyTorch's graph.
  pybind11::object record(const pybind11::tuple &operands,
                          const pybind11::object &attributes,
                          const pybind11::object &gradients);

  /// Forgets all kernels; those that are being made are kept by their calls.
  virtual void clear();

protected:
  pybind11::object specialize;

private:
  using Kernels =
      std::unordered_map<std::string, std::shared_ptr<Specialization>>;

  /// Adds the leading sizes that `function`, a kernel's, has fixed to those
  /// that tell kernels apart. Returns whether some are new.
  bool noteFixedSizes(const pybind11::tuple &operands,
                      const runtime::Function &function);

  std::string name;
  std::vector<std::string> operandNames;
  bool gradients;
  /// For each operand, a bit for each leading dimension whose size some kernel
  /// has fixed, such as the columns of a product.
  std::vector<unsigned> fixedSizes;
  /// By the attributes, which are compared as Python does.
  pybind11::dict kernelsOfAttributes;
  std::vector<std::shared_ptr<Kernels>> storage;
  /// The attributes of the last call, and their kernels.
  pybind11::object lastAttributes;
  std::shared_ptr<Kernels> lastKernels;
};

/// A function that was compiled ahead for operands of fixed types and row
/// lengths. Its kernel depends only on the place of the first operand, and
/// checks the operands itself.
class FixedOperator final : public Operator {
public:
  /// The attributes of a call, which `specialize` is given, play no part.
  FixedOperator(pybind11::object specialize, std::string name,
                std::vector<std::string> operandNames, bool gradients)
      : Operator(std::move(specialize), std::move(name),
                 std::move(operandNames), gradients) {}

  std::shared_ptr<Specialization>
  find(const pybind11::tuple &operands, const pybind11::object &attributes,
       const pybind11::object &gradients) override;
  bool isFixed() const override { return true; }
  void clear() override { kernels.clear(); }

private:
  /// By the GPU's number, -1 for the CPU.
  std::unordered_map<int, std::shared_ptr<Specialization>> kernels;
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
  /// Whether any of these holds, as in `watchers`; such a call differs from a
  /// plain one only in its operands, which are cast.
  std::vector<pybind11::object> casters;
  /// Makes the function that calls a kernel as a node of the library's graph
  /// (name, forward, backward); see Node.h.
  pybind11::object makeNode;
  /// The tensors that a node keeps where gradients were computed with the
  /// results (kernel, kept, operands).
  pybind11::object keepGradients;
  /// Whether a node that is run backward now will not be run again.
  pybind11::object isLastBackward;
  /// Gradients that raise where they are differentiated (name, gradients).
  pybind11::object refuseTwice;
  /// Carries out a call (operator, operands, attributes) as it sees fit.
  pybind11::object dispatch;
};

const Hooks &hooks();
void setHooks(Hooks hooks);

/// The route of the type of `operand`.
Route getRoute(pybind11::handle operand);

/// Whether a function of Python, called without arguments, returns True or any
/// number but 0.
bool isTrue(const pybind11::object &predicate);

/// Whether any of these functions does.
bool anyIsTrue(const std::vector<pybind11::object> &predicates);

/// Whether gradients of any of `operands` are to be recorded now.
bool wantsGradients(const pybind11::sequence &operands);

/// Calls an operator by the route that its operands ask for. `owner` is the
/// object that the hooks are given as the operator.
pybind11::object call(pybind11::handle owner, Operator &native,
                      const pybind11::tuple &operands,
                      const pybind11::object &attributes);

/// A function (operands, attributes) that calls the operator in this way, and
/// is itself faster to call than a method. It keeps `owner` alive.
pybind11::object makeCaller(const pybind11::object &owner);

} // namespace bastile::python

#endif // BASTILE_PYTHON_OPERATOR_H
