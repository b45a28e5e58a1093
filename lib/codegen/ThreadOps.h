//===- ThreadOps.h - Instructions of warpgroups in LLVM IR ------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_CODEGEN_THREADOPS_H
#define BASTILE_LIB_CODEGEN_THREADOPS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"

namespace bastile {

/// Replaces arrivals at numbered barriers, which the NVVM dialect does not
/// translate to LLVM IR, by calls of LLVM's intrinsic.
void expandBarrierArrivals(mlir::ModuleOp module);

/// Makes the ops of threads (dialect/programs/ThreadOps.td) translatable to
/// LLVM IR.
void registerThreadOpTranslation(mlir::DialectRegistry &registry);

} // namespace bastile

#endif // BASTILE_LIB_CODEGEN_THREADOPS_H
