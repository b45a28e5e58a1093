//===- ThreadGrid.h - How a block's threads stand over a tile ---*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_SCHEDULE_THREADGRID_H
#define BASTILE_PASSES_SCHEDULE_THREADGRID_H

#include "dialect/Tile.h"
#include "dialect/Warps.h"
#include "llvm/Support/MathExtras.h"

namespace bastile {

/// The threads of a block as rows and columns over its part of a tile, and the
/// blocks of a cluster that share the tile's columns.
struct ThreadGrid {
  int64_t rows;
  int64_t columns;
  int64_t blocks;

  /// The grid for a complete schedule: all threads along the row if it has as
  /// many vectors, otherwise several rows at once. Fails if the tile does not
  /// divide evenly, or if a row would be held by part of a warp that is not a
  /// power of two, as shuffles need it. In a cluster, rows are held by whole
  /// warps, whose lanes exchange what they reduce with the other blocks.
  static mlir::FailureOr<ThreadGrid> get(tile::RowsAttr schedule) {
    int64_t threads = schedule.getThreads();
    int64_t blocks = schedule.getBlocks();
    int64_t pieces = schedule.getColumns() / schedule.getVector();
    if (pieces % blocks != 0)
      return mlir::failure();
    pieces /= blocks;
    int64_t columns = std::min(threads, pieces);
    if (columns == 0 || pieces % columns != 0 || threads % columns != 0)
      return mlir::failure();
    int64_t rows = threads / columns;
    bool aligned = columns >= kWarp
                       ? columns % kWarp == 0
                       : blocks == 1 && llvm::isPowerOf2_64(columns);
    if (schedule.getRows() % rows != 0 || (threads > 1 && !aligned))
      return mlir::failure();
    return ThreadGrid{rows, columns, blocks};
  }

  /// Warps of a block that hold one row.
  int64_t getWarpsPerRow() const { return llvm::divideCeil(columns, kWarp); }

  /// Shared memory that one reduction of a tile with `tileRows` rows needs to
  /// combine warps and blocks: a float for each row and partial result.
  int64_t getScratchBytes(int64_t tileRows) const {
    int64_t warps = getWarpsPerRow() > 1 ? getWarpsPerRow() : 0;
    return tileRows * (warps + (blocks > 1 ? blocks : 0)) * 4;
  }

  /// Rows of threads that combine what they hold of each column by shuffles.
  int64_t getRowsPerWarp() const {
    return std::max<int64_t>(1, kWarp / columns);
  }
  /// What is left of each column after that, for warps to combine.
  int64_t getRowPartials() const {
    return llvm::divideCeil(rows, getRowsPerWarp());
  }

  /// Shared memory that combining the rows of `tileColumns` columns needs: a
  /// float for each column and partial result.
  int64_t getRowScratchBytes(int64_t tileColumns) const {
    return getRowPartials() > 1 ? getRowPartials() * tileColumns * 4 : 0;
  }
};

} // namespace bastile

#endif // BASTILE_PASSES_SCHEDULE_THREADGRID_H
