//===- Rows.h - Rows of values, and the sources of sizes --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_ROWS_H
#define BASTILE_DIALECT_ROWS_H

#include "dialect/Tile.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace bastile {

/// Whether `value` has rows of its own: a tensor with leading dimensions.
bool isRowTensor(mlir::Value value);

/// Whether `op` reduces whole rows, not groups of their columns.
bool isRowReduction(mlir::Operation *op);

/// Bytes of a row of `type`, which may be a tensor in memory or not. An element
/// that is a condition takes one byte.
int64_t getRowBytes(mlir::RankedTensorType type);

/// The operand of `op` that only gives the sizes of its result; null if there
/// is none.
mlir::OpOperand *getSizeOperand(mlir::Operation *op);

/// The other operands of `op`: those on whose values its result depends.
mlir::ValueRange getValueOperands(mlir::Operation *op);

/// Whether `argument` of a kernel on tensors is read, rather than only there
/// for its sizes.
bool isRead(mlir::BlockArgument argument);

/// Builds the number of rows of row space `space` that a launch of `program`
/// goes through.
mlir::Value buildRowCount(mlir::OpBuilder &builder, mlir::Location loc,
                          tile::ProgramOp program, int64_t space = 0);

/// The argument of the function that has the leading sizes of `value`, a row
/// tensor.
mlir::Value getSizeRoot(mlir::Value value);

/// Some ops in `block` take the sizes of a row tensor and nothing else of it.
/// Makes them take the sizes of the value that `choose` gives for the argument
/// with these sizes instead, so that no value is computed, kept or waited for
/// because of its sizes; null leaves an op as it is. `choose` is told as well
/// whether the op needs the number of columns besides those of rows.
void replaceSizeSources(
    mlir::Block &block,
    llvm::function_ref<mlir::Value(mlir::Value, bool)> choose);

/// Erases ops of `block` that nothing needs the results of.
void eraseDeadOps(mlir::Block &block);

/// Replaces each op below `top` that folds to one number for all elements, as a
/// comparison of integers with themselves does, by that number, repeated like
/// an operand. Folding itself leaves a constant, whose rows nothing tells where
/// their number is unknown.
void repeatFoldedNumbers(mlir::Operation *top);

} // namespace bastile

#endif // BASTILE_DIALECT_ROWS_H
