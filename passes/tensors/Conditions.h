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

/// Whether the results of `op` can lie in memory. Conditions and integers of 16
/// bits cannot: a kernel that needs one computes it from values that can.
bool canBeStored(mlir::Operation *op);

/// Makes every op that repeats rows or chooses some of them take values that
/// can lie in memory, since it reads its rows from there. For a condition,
/// these are the operands of the comparison.
void moveConditionsBehindRows(mlir::func::FuncOp func);

/// Keeps one of the two conditions of each op of `func` that says the same by
/// numbers of rows and by numbers of columns (`tile.either`): the second one in
/// factors that are summed over their rows, whose columns are the rows of a
/// program, and the first one anywhere else.
void chooseConditions(mlir::func::FuncOp func);

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_CONDITIONS_H
