//===- ProgramVerifier.h - Modules of programs given --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_DRIVER_PROGRAMVERIFIER_H
#define BASTILE_LIB_DRIVER_PROGRAMVERIFIER_H

#include "mlir/IR/BuiltinOps.h"

namespace bastile {

/// Checks that `module`, whose programs somebody wrote by hand, can be
/// described and compiled: it holds programs over named dimensions and
/// functions of nothing but launches of them, all variants of a launch have the
/// same dimensions, and each result of a function is another result of a
/// launch. Reports the first thing that is not so.
llvm::LogicalResult verifyPrograms(mlir::ModuleOp module);

} // namespace bastile

#endif // BASTILE_LIB_DRIVER_PROGRAMVERIFIER_H
