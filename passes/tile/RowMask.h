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
  /// Of the tile's first element, and where rows end.
  mlir::Value column;
  int64_t length;
  /// As of `tile.mask`; may be null.
  mlir::Value misalignment;
};

/// What a tile of `reduce` is to reduce of `input`, which is a tile of its
/// operand, such that elements beyond the row take no part. May change the ops
/// that `input` comes from, so that they compute something else there, and
/// nothing else in the row.
mlir::Value maskBeyondRow(mlir::OpBuilder &builder, tile::ReduceOp reduce,
                          mlir::Value input, const RowPart &part);

} // namespace bastile

#endif // BASTILE_PASSES_TILE_ROWMASK_H
