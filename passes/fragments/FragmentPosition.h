//===- FragmentPosition.h - Where a thread's part of a tile is --*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_FRAGMENTS_FRAGMENTPOSITION_H
#define BASTILE_PASSES_FRAGMENTS_FRAGMENTPOSITION_H

#include "dialect/Tile.h"
#include "passes/fragments/Role.h"
#include "passes/fragments/SharedTiles.h"

namespace bastile {

/// The layout of a tile of products; null for any other type.
tile::MmaAttr getFragmentLayout(mlir::Type type);

/// Rows and columns of the pieces that a thread holds of a tile of products.
class FragmentPosition {
public:
  /// `op` computes or stores the tile.
  FragmentPosition(mlir::OpBuilder &builder, mlir::Operation *op,
                   tile::MmaAttr layout);

  /// The row of the thread in `half` of a repetition, in the tile.
  mlir::Value getRow(int64_t repeat, int64_t half);
  /// The column of the first element of a chunk's pieces.
  mlir::Value getColumn(int64_t chunk);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
  tile::MmaAttr layout;
  mlir::Value firstRow, firstColumn;
};

/// Addresses of a tile of products in shared memory.
class SharedFragment {
public:
  /// The tile lies at `address` in the form of `place`.
  SharedFragment(mlir::OpBuilder &builder, mlir::Operation *op,
                 tile::MmaAttr layout, SharedTile place, mlir::Value address);

  /// The address that the calling lane gives for four matrices of 8 rows and 16
  /// bytes: those of both rows' halves of `chunk`, then of the next one.
  mlir::Value getMatrixAddress(int64_t repeat, int64_t chunk);

  /// The address of a piece of the calling thread.
  mlir::Value getPieceAddress(int64_t repeat, int64_t chunk, int64_t half);

private:
  /// The address of byte `byte` of row `row`, both of the calling thread.
  mlir::Value getAddress(mlir::Value row, mlir::Value byte);
  mlir::Value constant(int64_t value);

  mlir::OpBuilder &builder;
  mlir::Location loc;
  tile::MmaAttr layout;
  const SharedTile place;
  mlir::Value address;
  FragmentPosition position;
  /// Of the matrices' rows: the row that the lane addresses in repetition 0,
  /// and its first byte in an even chunk.
  mlir::Value matrixRow, matrixByte;
};

} // namespace bastile

#endif // BASTILE_PASSES_FRAGMENTS_FRAGMENTPOSITION_H
