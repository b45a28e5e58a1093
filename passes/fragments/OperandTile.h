//===- OperandTile.h - A tile of an operand in memory -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_FRAGMENTS_OPERANDTILE_H
#define BASTILE_PASSES_FRAGMENTS_OPERANDTILE_H

#include "dialect/Tile.h"
#include "mlir/IR/Builders.h"

namespace bastile {

/// Attributes that `nameDimensions` gives an op which accesses an operand: what
/// the program's argument says of its dimensions and of its alignment.
inline constexpr char kDimensions[] = "dimensions";
inline constexpr char kAlignment[] = "operand_alignment";
/// How many rows of each matrix the op's tile has, where it has rows of
/// several.
inline constexpr char kMatrixRows[] = "matrix_rows";
/// The same for the two operands of a `tile.load_dot`.
inline constexpr char kLeftDimensions[] = "left_dimensions";
inline constexpr char kRightDimensions[] = "right_dimensions";

/// Whether `op`, a load or a store, moves whole rows of an operand of named
/// dimensions: neither pieces of rows, nor misaligned ones, nor bands.
template <typename Op>
bool movesNamedRows(Op op) {
  return op->hasAttr(kDimensions) && !op.getLength() && !op.getMisalignment() &&
         !op.getBand();
}

/// Of the threads that hold the same elements of `tile`, which has a single row
/// or column, the first one stores them. Whether that is the thread whose first
/// element lies at `row` and `column` of the tile; null if each has elements of
/// its own. Null are places that are the same for all threads.
mlir::Value isFirstHolder(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::RankedTensorType tile, mlir::Value row,
                          mlir::Value column);

/// The address `elements` elements of type `element` behind `from`.
mlir::Value advance(mlir::OpBuilder &builder, mlir::Location loc,
                    mlir::Value from, mlir::Type element, mlir::Value elements);

/// The size of dimension `dimension` of an operand of type `memref` whose
/// dimensions have `names`, in `program`.
mlir::Value getOperandSize(mlir::OpBuilder &builder, mlir::Location loc,
                           tile::ProgramOp program, mlir::ArrayAttr names,
                           mlir::MemRefType memref, int64_t dimension);

/// A tile in the last two dimensions of an operand, in a program over named
/// dimensions.
struct OperandTile {
  /// `op` accesses the operand of type `memref` at `indices`; `parts` are the
  /// address and the strides that stand for it.
  OperandTile(mlir::OpBuilder &builder, mlir::Operation *op,
              mlir::MemRefType memref, mlir::ValueRange parts,
              llvm::ArrayRef<mlir::ValueRange> indices);

  /// Whether an element lies in the operand.
  mlir::Value isInside(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value elementRow, mlir::Value elementColumn) const;

  /// The address of an element, or of the operand's first one where it is not
  /// `inside`; null is inside. `ofMatrix`, if there is one, is how far its
  /// matrix lies behind that of the tile's first row.
  mlir::Value getAddress(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::Value elementRow, mlir::Value elementColumn,
                         mlir::Value inside,
                         mlir::Value ofMatrix = mlir::Value()) const;

  /// Where the last two dimensions begin.
  mlir::Value address;
  /// The tile's first row and column, and how many of them the operand has. An
  /// operand of one dimension has no rows.
  mlir::Value row, column, rows, columns, rowStride;
  mlir::Type element;
  /// The rows of each matrix, where the tile has rows of several; 0 elsewhere.
  int64_t matrixRows = 0;
  /// How far apart matrices are; null where all rows are in the same one.
  mlir::Value matrixStride;
  /// Whether all rows of a matrix are the same one of the operand.
  bool repeatsRow = false;
};

} // namespace bastile

#endif // BASTILE_PASSES_FRAGMENTS_OPERANDTILE_H
