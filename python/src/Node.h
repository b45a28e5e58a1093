//===- Node.h - Kernels as nodes of PyTorch's graph -------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PYTHON_NODE_H
#define BASTILE_PYTHON_NODE_H

#include <pybind11/pybind11.h>

namespace bastile::python {

/// The function that calls `kernel`, a `Kernel` with gradients, on operands
/// like these, some of which may be None, and records the call. The hooks make
/// it of two functions:
///
///   forward(node, *operands) returns the results and has `node` keep what its
///   backward needs;
///
///   backward(node, *gradients) returns the gradients of all operands.
pybind11::object makeNode(const pybind11::object &kernel,
                          const pybind11::tuple &operands);

} // namespace bastile::python

#endif // BASTILE_PYTHON_NODE_H
