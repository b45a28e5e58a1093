//===- Operator.h - An op that compiles for what it is called on -*- C++
//-*-===//

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
  /// for a kernel without a backward.
  explicit Operator(pybind11::object specialize)
      : specialize(std::move(specialize)) {}

  /// The kernel for `operands`, some of which may be None.
  const Kernel &find(const pybind11::tuple &operands,
                     const pybind11::object &attributes,
                     const pybind11::object &gradients);

  /// Runs that kernel without gradients.
  pybind11::object call(const pybind11::tuple &operands,
                        const pybind11::object &attributes, bool inPlace);

  /// Forgets all kernels.
  void clear();

private:
  using Kernels = std::unordered_map<std::string, pybind11::object>;

  pybind11::object specialize;
  /// By the attributes, which are compared as Python does.
  pybind11::dict kernelsOfAttributes;
  std::vector<std::unique_ptr<Kernels>> storage;
  /// The attributes of the last call, and their kernels.
  pybind11::object lastAttributes;
  Kernels *lastKernels = nullptr;
};

} // namespace bastile::python

#endif // BASTILE_PYTHON_OPERATOR_H
