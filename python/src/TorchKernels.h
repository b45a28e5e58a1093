//===- TorchKernels.h - Kernels in PyTorch's dispatcher ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PYTHON_TORCHKERNELS_H
#define BASTILE_PYTHON_TORCHKERNELS_H

#include <pybind11/pybind11.h>

namespace bastile::python {

/// Implements the operator
///
///   bastile::run(int key, str function, Tensor[] inputs) -> Tensor[]
///
/// for the CPU and for CUDA, without a way through Python: compiled programs
/// call it. It runs the compiled function that `function` describes; `key`
/// stands for that in this process. `load(function, device)` gives the kernel
/// the first time, `device` being None for the CPU. False, and nothing is done,
/// where PyTorch lacks the interface.
bool registerTorchKernels(pybind11::object load);

/// The function that Python calls in place of `original`, the operator above,
/// with the same arguments. Where there is nothing for the dispatcher to do, it
/// runs the kernel as a call of an op does; otherwise it calls `original`.
pybind11::object shortcutTorchKernels(pybind11::object load,
                                      pybind11::object original);

} // namespace bastile::python

#endif // BASTILE_PYTHON_TORCHKERNELS_H
