//===- Reducer.h - One reduction of a tile's rows or groups -----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_THREADS_REDUCER_H
#define BASTILE_PASSES_THREADS_REDUCER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/pieces/Scratch.h"
#include "passes/schedule/ThreadGrid.h"
#include "passes/threads/LowerTiles.h"

namespace bastile {

/// Combines the pieces that a thread holds of a row or of a group of its
/// columns.
mlir::Value reduceInThread(mlir::OpBuilder &builder, mlir::Location loc,
                           tile::ReduceKind kind, mlir::ValueRange pieces);

/// Builds one reduction of a tile.
class Reducer {
public:
  Reducer(mlir::ConversionPatternRewriter &rewriter, tile::ReduceOp op)
      : rewriter(rewriter), loc(op.getLoc()), op(op),
        input(op.getInput().getType()), layout(getLayout(input)),
        grid{layout.getThreadRows(), layout.getThreadColumns(), /*blocks=*/1} {}

  /// Returns one scalar for each repeat of the layout along the rows or, for
  /// groups, for each piece of the groups' layout.
  llvm::SmallVector<mlir::Value> run(mlir::ValueRange pieces);

private:
  mlir::Value reduceInThread(mlir::ValueRange pieces) {
    return bastile::reduceInThread(rewriter, loc, op.getKind(), pieces);
  }
  mlir::Value reduceInWarp(mlir::Value value, int64_t lanes);
  void reduceAcrossWarps(llvm::SmallVectorImpl<mlir::Value> &values);
  void storePartials(mlir::ValueRange values, mlir::Value scratch,
                     mlir::ValueRange slots, mlir::Value lane);
  void waitForRow();
  mlir::Value loadPartials(mlir::Value scratch, mlir::Value first,
                           mlir::Value lane);
  mlir::Value getFirstSlot();
  mlir::Value createPlace(int64_t count);

  /// Partial results of the rows that the block's threads cover at once.
  int64_t getSlotsPerRepeat() const {
    return grid.rows * grid.getWarpsPerRow();
  }

  // Groups (LowerGroups.cpp).

  /// The place of a piece of this thread along the row, counted in vectors from
  /// the first vector that the block has of the row.
  struct GroupPlace {
    /// The chunk of the piece (GroupChunks.h), and the lane within the chunk.
    mlir::Value chunk, laneOfChunk;
    mlir::Value group, vectorOfGroup;
  };
  llvm::SmallVector<mlir::Value> runOnGroups(mlir::ValueRange pieces);
  llvm::SmallVector<mlir::Value> keepFirstOfGroups(mlir::ValueRange pieces);
  llvm::SmallVector<mlir::Value> runOnChunks(mlir::ValueRange pieces);
  /// The number, along the row, of vector `repeat` of the threads in `column`.
  mlir::Value getVector(mlir::Value column, int64_t repeat) {
    return add(column, constantIndex(repeat * grid.columns));
  }
  GroupPlace getGroupPlace(int64_t repeat);
  mlir::Value reduceInChunk(mlir::Value value, const GroupPlace &place);
  mlir::Value takeFromGroupStart(mlir::Value value, const GroupPlace &place);
  void reduceAcrossChunks(llvm::SmallVectorImpl<mlir::Value> &values,
                          llvm::ArrayRef<GroupPlace> places);
  mlir::Value getGroupBegin(mlir::Value group);
  mlir::Value getGroupLast(mlir::Value group);
  mlir::Value combineSlots(mlir::Value scratch, mlir::Value first,
                           mlir::Value last, int64_t count, int64_t step);
  void combineOncePerGroup(llvm::SmallVectorImpl<mlir::Value> &values,
                           llvm::ArrayRef<GroupPlace> places,
                           mlir::Value partials);

  mlir::Value combine(mlir::Value lhs, mlir::Value rhs) {
    return tile::ReduceOp::combine(rewriter, loc, op.getKind(), lhs, rhs);
  }
  mlir::Value constantIndex(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(rewriter, loc, value);
  }
  mlir::Value add(mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::AddIOp::create(rewriter, loc, lhs, rhs);
  }
  mlir::Value multiply(mlir::Value lhs, int64_t rhs) {
    return mlir::arith::MulIOp::create(rewriter, loc, lhs, constantIndex(rhs));
  }
  mlir::Value divide(mlir::Value lhs, int64_t rhs) {
    return mlir::arith::DivUIOp::create(rewriter, loc, lhs, constantIndex(rhs));
  }
  mlir::Value getRemainder(mlir::Value lhs, int64_t rhs) {
    return mlir::arith::RemUIOp::create(rewriter, loc, lhs, constantIndex(rhs));
  }
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value lhs,
                      mlir::Value rhs) {
    return mlir::arith::CmpIOp::create(rewriter, loc, predicate, lhs, rhs);
  }
  mlir::Value loadShared(mlir::Value base, mlir::Value index);
  mlir::Value getSharedAddress(mlir::Value base, mlir::Value index) {
    return getScratchAddress(rewriter, loc, base, input.getElementType(),
                             index);
  }

  mlir::ConversionPatternRewriter &rewriter;
  mlir::Location loc;
  tile::ReduceOp op;
  mlir::RankedTensorType input;
  tile::BlockedAttr layout;
  ThreadGrid grid;
};

} // namespace bastile

#endif // BASTILE_PASSES_THREADS_REDUCER_H
