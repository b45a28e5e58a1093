//===- Conditions.h - What no kernel leaves for another ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TENSORS_CONDITIONS_H
#define BASTILE_PASSES_TENSORS_CONDITIONS_H

#include "mlir/IR/Value.h"

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace bastile {

/// Whether what `op` computes can lie in memory. Conditions and integers of 16
/// bits cannot: a kernel that needs one computes it from what can.
bool canBeStored(mlir::Operation *op);

/// Has every repetition of rows, and every choice of some of them, take what
/// can lie in memory, since the rows that it reads come from there: of a
/// condition, the operands of the comparison.
void moveConditionsBehindRows(mlir::func::FuncOp func);

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_CONDITIONS_H
