//===- FunctionVerifier.h - What a function may hold ------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TENSORS_FUNCTIONVERIFIER_H
#define BASTILE_PASSES_TENSORS_FUNCTIONVERIFIER_H

#include "mlir/Support/LLVM.h"

namespace mlir {
class ModuleOp;
namespace func {
class FuncOp;
} // namespace func
} // namespace mlir

namespace bastile {

/// Checks that `module` has functions and nothing else: ops outside of
/// functions may use their own results, which no pass expects.
llvm::LogicalResult verifyOnlyFunctions(mlir::ModuleOp module);

/// Checks that `func` takes and returns row tensors and row vectors, in
/// straight-line code. Reports the first thing that is not so.
llvm::LogicalResult verifySignature(mlir::func::FuncOp func);

/// Checks that `func`, of decomposed ops, can become kernels: straight-line
/// code on row tensors and row vectors. Reports the first thing that cannot.
llvm::LogicalResult verifyFunction(mlir::func::FuncOp func);

/// Whether tensors in memory (arguments and results of functions and kernels)
/// may have elements of this type. Conditions may only be computed with.
bool isOperandType(mlir::Type elementType);

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_FUNCTIONVERIFIER_H
