//===- RowMask.h - What lies beyond a row takes no part ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TILE_ROWMASK_H
#define BASTILE_PASSES_TILE_ROWMASK_H

#include "dialect/Tile.h"

namespace bastile {

/// The part of rows that a tile holds.
struct RowPart {
  /// The column of the tile's first element, and the row's length.
  mlir::Value column;
  int64_t length;
  /// The misalignment of rows, as in `tile.mask`; may be null.
  mlir::Value misalignment;
};

/// Returns `input`, a tile of the operand of `reduce`, such that elements
/// beyond the row do not change the reduction. May change the ops that `input`
/// comes from: they then compute something else beyond the row, and the same
/// within it.
mlir::Value maskBeyondRow(mlir::OpBuilder &builder, tile::ReduceOp reduce,
                          mlir::Value input, const RowPart &part);

} // namespace bastile

#endif // BASTILE_PASSES_TILE_ROWMASK_H
