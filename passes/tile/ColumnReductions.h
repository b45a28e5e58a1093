//===- ColumnReductions.h - Reductions along the row ------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A row that its tile holds is reduced at once. A longer one is reduced by a
// loop along it, in four steps: each thread combines what it loads, then the
// threads of a block combine their results, then the blocks of a cluster. A sum
// of powers that follows its maximum is relative to the maximum so far, and
// made relative to the next one in each of these steps.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TILE_COLUMNREDUCTIONS_H
#define BASTILE_PASSES_TILE_COLUMNREDUCTIONS_H

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
                   llvm::SmallVector<tile::ReduceOp> reductions)
      : builder(builder), tiling(tiling), emitter(emitter),
        reductions(std::move(reductions)) {}

  bool empty() const { return reductions.empty(); }

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
  size_t getFollowed(tile::ReduceOp maximum) const {
    return llvm::find(reductions, maximum) - reductions.begin();
  }
  mlir::Value combineFollowing(tile::ReduceOp sum, mlir::Value partial,
                               mlir::Value oldMaximum, mlir::Value newMaximum);
  mlir::Value getScale(mlir::Location loc, mlir::Value from, mlir::Value to);
  mlir::Value getBase(mlir::Location loc, mlir::Value maximum);
  llvm::SmallVector<mlir::Value> combineThreads(mlir::ValueRange partials);
  llvm::SmallVector<mlir::Value> combineBlocks(mlir::ValueRange parts);

  mlir::ImplicitLocOpBuilder &builder;
  const KernelTiling &tiling;
  TileEmitter &emitter;
  llvm::SmallVector<tile::ReduceOp> reductions;
};

} // namespace bastile

#endif // BASTILE_PASSES_TILE_COLUMNREDUCTIONS_H
