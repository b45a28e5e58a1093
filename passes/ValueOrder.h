//===- ValueOrder.h - Values are defined before their uses ------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_VALUEORDER_H
#define BASTILE_PASSES_VALUEORDER_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/LogicalResult.h"

namespace bastile {

/// Checks that each value of `module` is defined before its uses. MLIR checks
/// this neither between the ops of a module itself nor in blocks that nothing
/// branches to, but its folders, and passes that go from an op to those that
/// give its operands, have no end where an op reads its own result.
llvm::LogicalResult verifyOrder(mlir::ModuleOp module);

} // namespace bastile

#endif // BASTILE_PASSES_VALUEORDER_H
