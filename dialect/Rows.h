//===- Rows.h - Which values have rows, where sizes come from ---*- C++ -*-===//
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

/// Whether `op` reduces whole rows, and not groups of their columns.
bool isRowReduction(mlir::Operation *op);

/// Bytes of a row of `type`, tensors in memory or not: a condition takes one
/// byte an element.
int64_t getRowBytes(mlir::RankedTensorType type);

/// The operand of `op` that it takes the sizes of its result from, and nothing
/// else; null if there is none.
mlir::OpOperand *getSizeOperand(mlir::Operation *op);

/// The other operands of `op`, on whose values its result depends.
mlir::ValueRange getValueOperands(mlir::Operation *op);

/// Builds the number of rows that the programs of tiled `kernel` walk in
/// `space`.
mlir::Value buildRowCount(mlir::OpBuilder &builder, mlir::Location loc,
                          tile::KernelOp kernel, int64_t space = 0);

/// The function's argument whose leading sizes `value`, a row tensor, has.
mlir::Value getSizeRoot(mlir::Value value);

/// Lets the ops in `block` that are like a row tensor, for its sizes alone, be
/// like what `choose` gives for the argument that has these sizes. No value
/// should be computed, kept or waited for because of its sizes.
void replaceSizeSources(mlir::Block &block,
                        llvm::function_ref<mlir::Value(mlir::Value)> choose);

} // namespace bastile

#endif // BASTILE_DIALECT_ROWS_H
