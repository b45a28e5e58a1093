//===- ColumnReductions.h - Reductions along the row ------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A row that its tile holds is reduced at once. A longer one is reduced by a
// loop along it, in four steps: each thread combines what it loads, then the
// threads of a block combine their results, then the blocks of a cluster. A sum
// that follows a maximum (FollowingSums.h) is relative to the maximum so far,
// and made relative to the next one in each of these steps.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TILE_COLUMNREDUCTIONS_H
#define BASTILE_PASSES_TILE_COLUMNREDUCTIONS_H

#include "passes/building/Accumulators.h"
#include "passes/tile/TileEmitter.h"

namespace bastile {

/// Reduces `tile`, a masked tile of whole rows, as `reduce` says, in all blocks
/// that share the rows.
mlir::Value reduceColumns(mlir::ImplicitLocOpBuilder &builder,
                          const KernelTiling &tiling, tile::ReduceOp reduce,
                          mlir::Value tile);

/// The reductions that one loop along the row combines.
class ColumnReductions {
public:
  ColumnReductions(mlir::ImplicitLocOpBuilder &builder,
                   const KernelTiling &tiling, TileEmitter &emitter,
                   llvm::ArrayRef<tile::ReduceOp> reductions)
      : builder(builder), tiling(tiling), emitter(emitter) {
    for (tile::ReduceOp reduce : reductions)
      accumulators.add(reduce, tiling.getFollowing(reduce));
  }

  bool empty() const { return accumulators.empty(); }

  /// Creates the partial results as they are before the first column.
  llvm::SmallVector<mlir::Value> createInitial();
  /// Adds the current columns to the partial results.
  llvm::SmallVector<mlir::Value> combine(mlir::ValueRange partials);
  /// Combines the partial results of all threads, each of which has seen its
  /// own columns, and makes them the tiles of the reductions.
  void finish(mlir::ValueRange partials);

private:
  mlir::RankedTensorType getPartialType(tile::ReduceOp reduce) const;
  mlir::Value fold(tile::ReduceOp reduce, mlir::Value tile);
  llvm::SmallVector<mlir::Value> combineThreads(mlir::ValueRange partials);
  void combineBlocks(mlir::ValueRange parts);

  // Sums that follow a maximum.
  mlir::Value combineFollowing(tile::ReduceOp reduce, const FollowingSum &sum,
                               mlir::Value partial, mlir::Value count,
                               mlir::Value oldMaximum, mlir::Value newMaximum);
  mlir::Value emitTerms(tile::ReduceOp reduce, const FollowingSum &sum,
                        mlir::Value base);
  mlir::Value emitCount(tile::ReduceOp reduce, const FollowingSum &sum);
  mlir::Value getScaleOfEqual(mlir::Location loc, mlir::Value from,
                              mlir::Value to, mlir::Value count);
  mlir::Value getTermScale(mlir::Type type, bool isInverse) const;
  mlir::Value finishFollowing(tile::ReduceOp reduce, const FollowingSum &sum,
                              mlir::Value total, mlir::Value count);
  void finish(tile::ReduceOp reduce, mlir::Value total, mlir::Value count);

  mlir::ImplicitLocOpBuilder &builder;
  const KernelTiling &tiling;
  TileEmitter &emitter;
  Accumulators<tile::ReduceOp> accumulators;
  /// The powers whose current tiles have been scaled.
  llvm::DenseSet<mlir::Value> scaled;
};

} // namespace bastile

#endif // BASTILE_PASSES_TILE_COLUMNREDUCTIONS_H
