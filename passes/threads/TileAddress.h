//===- TileAddress.h - Where a tile lies in memory --------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_THREADS_TILEADDRESS_H
#define BASTILE_PASSES_THREADS_TILEADDRESS_H

#include "passes/threads/LowerTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace bastile {

/// Computes the addresses of the pieces of one tile in memory.
class TileAddress {
public:
  /// `op` is the load or store. `parts` are the operand's address and strides;
  /// `indices` are the tile's first row, unless the operand is a row vector,
  /// and its first column.
  template <typename Op>
  TileAddress(mlir::OpBuilder &builder, Op op, mlir::RankedTensorType tile,
              mlir::ValueRange parts, mlir::ValueRange indices)
      : TileAddress(builder, op,
                    mlir::cast<mlir::MemRefType>(op.getMemref().getType()),
                    tile, parts, indices, op.getSpace()) {
    offset = op.getOffset();
    length = op.getLength().value_or(length);
    band = op.getBand();
    if (!op.getMisalignment())
      createThreadColumn();
  }
  /// The addresses of a tile that begins at any row and column, for an op that
  /// sees whole rows.
  TileAddress(mlir::OpBuilder &builder, mlir::Operation *op,
              mlir::MemRefType memref, mlir::RankedTensorType tile,
              mlir::ValueRange parts, mlir::ValueRange indices, int64_t space);

  /// The number of columns that the op may touch.
  int64_t getLength() const { return length; }

  /// Whether rows or columns of the tile may lie beyond the operand.
  bool mayLeaveRows() const { return row && tile.getDimSize(0) > 1; }
  bool mayLeaveColumns(int64_t repeat) const {
    return length % tile.getDimSize(1) != 0 &&
           !isSurelyInside(layout, repeat, column, length);
  }

  mlir::Value getRow(int64_t repeat);
  /// The row of the given repetition, or the operand's last row where that row
  /// lies beyond it.
  mlir::Value getInnerRow(int64_t repeat);
  /// The row of the given repetition for a store, which does nothing beyond the
  /// operand: one of these, so that the number is split as that of a load is.
  mlir::Value getStoredRow(int64_t repeat);
  mlir::Value getColumn(int64_t repeat);

  /// The address of row `elementRow`, which lies inside of the operand.
  mlir::Value getRowAddress(mlir::Value elementRow);

  /// The address of a column of the row at `rowAddress`.
  mlir::Value getAddress(mlir::Value rowAddress, mlir::Value elementColumn) {
    return advanceBy(advance(rowAddress, elementColumn), offset);
  }

  /// The address from which the thread's pieces in the row at `rowAddress` are
  /// a constant away: `getPieceAddress` returns that of the given repetition.
  mlir::Value getThreadAddress(mlir::Value rowAddress) {
    return advance(rowAddress, threadColumn);
  }
  bool haveThreadAddress() const { return bool(threadColumn); }
  mlir::Value getPieceAddress(mlir::Value threadAddress, int64_t repeat) {
    return advanceBy(threadAddress,
                     repeat * layout.getColumnsPerDeal() + offset);
  }

  /// The conditions under which this thread stores a piece: that of its row,
  /// for each repetition along the rows, and that of its columns, for a
  /// repetition along these. Null always holds. So parts that depend on the row
  /// alone, on the column alone or on neither are computed once.
  llvm::SmallVector<mlir::Value> getRowConditions();
  mlir::Value getColumnCondition(int64_t repeat);

  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(builder, loc, value);
  }

private:
  mlir::Value add(mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::AddIOp::create(builder, loc, lhs, rhs);
  }
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value lhs,
                      mlir::Value rhs) {
    return mlir::arith::CmpIOp::create(builder, loc, predicate, lhs, rhs);
  }
  mlir::Value isZero(mlir::Value value) {
    return compare(mlir::arith::CmpIPredicate::eq, value, constant(0));
  }
  mlir::Value getRowCount();
  /// The kernel's last row: beyond it, operands may lie outside of memory.
  mlir::Value getLastRow();
  mlir::Value getOwnRow(mlir::Value elementRow);
  /// Whether the numbers of rows are split into several indices.
  bool isSplit() const { return !rowStride && parts.size() > 2; }
  llvm::SmallVector<mlir::Value> splitRow(mlir::Value elementRow,
                                          mlir::ValueRange sizes);
  llvm::SmallVector<mlir::Value> getIndices(mlir::Value elementRow,
                                            mlir::ValueRange sizes);
  mlir::Value getRowOffset(mlir::Value elementRow);
  mlir::Value getThreadCondition();
  mlir::Value getRowCondition(int64_t repeat);
  mlir::Value advance(mlir::Value address, mlir::Value elements);
  mlir::Value advanceBy(mlir::Value address, int64_t elements);
  void createThreadColumn();

  mlir::OpBuilder &builder;
  mlir::Location loc;
  tile::ProgramOp program;
  /// The row space whose rows the op counts.
  int64_t space;
  mlir::RankedTensorType tile;
  tile::BlockedAttr layout;
  mlir::ValueRange parts;
  mlir::Value row, column;
  /// Row and column of the thread's first piece: the row once it has been asked
  /// for, the column where pieces are a constant apart.
  mlir::Value threadRow, threadColumn;
  /// The kernel's last row, once it has been asked for.
  mlir::Value lastRow;
  /// The operand's row that the tile begins with, its indices, and whether all
  /// rows of the tile have these but for the last one, once they have been
  /// asked for.
  mlir::Value firstRow, areNeighbours;
  llvm::SmallVector<mlir::Value> firstIndices;
  /// The distance of neighbouring rows, in elements, where they lie without
  /// gaps.
  std::optional<int64_t> rowStride;
  /// The first column of the operand's rows that the op may touch, and how
  /// many.
  int64_t offset = 0, length;
  /// How many rows of the kernel share a row of the operand.
  std::optional<int64_t> band;
};

/// Starts to copy `bytes` bytes from global memory to `target`, in a buffer in
/// shared memory.
void createCopyAhead(mlir::OpBuilder &builder, mlir::Location loc,
                     mlir::Value source, mlir::Value target, unsigned bytes);

} // namespace bastile

#endif // BASTILE_PASSES_THREADS_TILEADDRESS_H
