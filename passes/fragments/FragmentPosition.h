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

/// Whether matrices of 8 rows and 16 bytes make up `type`, a tile of products
/// with more than one row and column.
bool isOfMatrices(mlir::RankedTensorType type);

/// A piece of 4 bytes as the register that holds it, and the reverse.
mlir::Value toRegister(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value piece);
mlir::Value fromRegister(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::Type piece, mlir::Value value);

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

/// The address of byte `byte` of row `row` of a tile in shared memory, which
/// lies at `address` in the form of `place`.
mlir::Value getSharedAddress(mlir::OpBuilder &builder, mlir::Location loc,
                             const SharedTile &place, mlir::Value address,
                             mlir::Value row, mlir::Value byte);

/// The places of a tile in shared memory that a thread addresses: of pieces, or
/// of matrices of 8 rows and 16 bytes, for which each lane gives an address.
/// They are constants apart wherever the swizzle allows it.
class SharedPlaces {
public:
  /// The tile lies at `address` in the form of `place`. The thread's first
  /// place is byte `byte` of row `row`.
  SharedPlaces(mlir::OpBuilder &builder, mlir::Location loc, SharedTile place,
               mlir::Value address, mlir::Value row, mlir::Value byte);

  /// The address `row` rows below the first place, a multiple of 8, and `byte`
  /// bytes beside it: a multiple of a power of two that is more than the first
  /// place's own byte.
  mlir::Value getAddress(int64_t row, int64_t byte);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
  const SharedTile place;
  mlir::Value address, offset;
};

/// Addresses of a tile of products in shared memory.
class SharedFragment {
public:
  /// The tile lies at `address` in the form of `place`.
  SharedFragment(mlir::OpBuilder &builder, mlir::Operation *op,
                 tile::MmaAttr layout, SharedTile place, mlir::Value address);

  /// The address that the calling lane gives for four matrices of 8 rows and 16
  /// bytes: those of both rows' halves of `chunk`, which is even, then of the
  /// next one.
  mlir::Value getMatrixAddress(int64_t repeat, int64_t chunk);

  /// The address of a piece of the calling thread.
  mlir::Value getPieceAddress(int64_t repeat, int64_t chunk, int64_t half);

private:
  int64_t getBytes(int64_t chunk) const;

  tile::MmaAttr layout;
  const SharedTile place;
  SharedPlaces matrices, pieces;
};

/// The addresses for the matrices of a left operand whose rows are the columns
/// of the tile: four of them are 16 rows and columns of the operand, the halves
/// of its rows for the first 8 columns, then for the next 8. Each warp has the
/// addresses of its own rows.
SharedPlaces getTransposedMatrices(mlir::OpBuilder &builder,
                                   mlir::Operation *op, SharedTile place,
                                   mlir::Value address);

/// The addresses for the matrices of a right operand, four of which are 16 rows
/// of 16 elements of it: both halves of the columns of the first 8 rows, then
/// of the next 8. With `transposed`, the tile's rows are the operand's columns.
SharedPlaces getRhsMatrices(mlir::OpBuilder &builder, mlir::Operation *op,
                            SharedTile place, mlir::Value address,
                            bool transposed);

} // namespace bastile

#endif // BASTILE_PASSES_FRAGMENTS_FRAGMENTPOSITION_H
