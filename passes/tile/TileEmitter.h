//===- TileEmitter.h - The tiles of values, in a program's loops *- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TILE_TILEEMITTER_H
#define BASTILE_PASSES_TILE_TILEEMITTER_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/building/LoopTiles.h"
#include "passes/tile/KernelTiling.h"

namespace bastile {

/// Builds the tiles of a kernel's values at the current place of a program.
/// In a loop along the row, what has columns is built in the loop, and what all
/// columns share ahead of it (LoopTiles.h).
class TileEmitter {
public:
  TileEmitter(mlir::ImplicitLocOpBuilder &builder, const KernelTiling &tiling,
              tile::ProgramOp program)
      : builder(builder), tiling(tiling), program(program) {}

  //===--------------------------------------------------------------------===//
  // The current place
  //===--------------------------------------------------------------------===//

  /// Goes on to the rows from `newRow` on, and forgets no tile.
  void setRow(mlir::Value newRow);
  /// Goes on to row `newRow` of those that are left after rows were combined.
  void setCombinedRow(mlir::Value newRow) { row = newRow; }
  void setColumn(mlir::Value newColumn) { column = newColumn; }
  mlir::Value getColumn() const { return column; }
  /// Rows from `end` on belong to another program; by default, they are those
  /// behind the operand's last row.
  void setRowEnd(mlir::Value end) { rowEnd = end; }
  /// The row behind the last one that the program may compute.
  mlir::Value getRowEnd();
  /// The number of rows of the operands.
  mlir::Value getRowCount();

  /// Forgets the tiles of rows and columns, because a loop goes on to others.
  void clear() { tiles.clear(); }
  /// Enters `loop`, which goes along the row from the current column on, and
  /// leaves the builder inside of it.
  void enterColumnLoop(mlir::Operation *loop, mlir::Value newColumn);
  /// Leaves the loop along the row; the current column is `newColumn` again.
  void leaveColumnLoop(mlir::Value newColumn);

  //===--------------------------------------------------------------------===//
  // Tiles
  //===--------------------------------------------------------------------===//

  /// Returns the tile of `value`, building what it needs.
  mlir::Value emit(mlir::Value value);
  /// The tile of the operand of `reduce`, whose elements beyond the row are
  /// neutral.
  mlir::Value emitMasked(tile::ReduceOp reduce) {
    return mask(reduce, emit(reduce.getInput()));
  }
  /// `tile`, elements of which `reduce` combines, neutral beyond the row.
  mlir::Value mask(tile::ReduceOp reduce, mlir::Value tile);
  /// The tile of `value`, whose rows beyond the last row of the operand are
  /// neutral to `kind`.
  mlir::Value emitRowMasked(mlir::Value value, tile::ReduceKind kind);
  /// Builds the tiles that result `index` of the kernel is stored from.
  void emitResult(unsigned index);

  /// Makes `tile` that of `value` at the current place.
  void map(mlir::Value value, mlir::Value tile) {
    tiles.map(value, tile, tiling.hasColumns(value));
  }
  /// Makes `tile` that of `value` in all rows of the current band.
  void mapInBand(mlir::Value value, mlir::Value tile) {
    bandTiles.map(value, tile);
  }
  void clearBand() { bandTiles.clear(); }

  //===--------------------------------------------------------------------===//
  // Loads and stores
  //===--------------------------------------------------------------------===//

  /// Loads the arguments that the kernel reads.
  void emitArguments();
  /// Loads what the kernel reads of the rows from `first` on, and nothing else,
  /// and returns the loads that are made ahead of their use.
  llvm::SmallVector<mlir::Value> emitLoadsAhead(mlir::Value first);
  /// Makes `loads` those that `emitArguments` returns instead of making them.
  void setLoadsAhead(mlir::ValueRange loads) { ahead = loads; }

  /// Stores result `index` of the kernel, except a partial one.
  void emitStore(unsigned index);
  /// Stores all results of the kernel, except partial ones.
  void emitStores();
  /// Stores `tile`, of `value`, in the rows of `memory` from `firstRow` on.
  void emitStore(mlir::Value tile, mlir::Value memory, mlir::Value firstRow,
                 mlir::Value value, int64_t piece = 0, int64_t pieces = 1,
                 std::optional<int64_t> band = std::nullopt);

  /// The kernel's operand and result `index` in memory.
  mlir::Value getMemory(unsigned index) {
    return program.getArgument(program.getNumSizes() + index);
  }
  mlir::Value getResultMemory(unsigned index) {
    return getMemory(tiling.getKernel().getNumArguments() + index);
  }

private:
  mlir::Value emitOp(mlir::Operation *op, mlir::OpResult result);
  mlir::Value emitIota(tile::IotaOp iota);
  mlir::Value emitLoad(mlir::BlockArgument argument, int64_t piece = 0,
                       int64_t pieces = 1,
                       std::optional<int64_t> band = std::nullopt);
  mlir::Value createLoad(mlir::BlockArgument argument, int64_t piece,
                         int64_t pieces, std::optional<int64_t> band);
  void markRowTiles(tile::LoadOp load, mlir::BlockArgument argument,
                    int64_t piece, int64_t pieces);
  mlir::Value emitSplit(tile::SplitOp split, int64_t piece);
  mlir::Value getFirstColumn(int64_t width);
  mlir::Value constantIndex(int64_t value);

  mlir::ImplicitLocOpBuilder &builder;
  const KernelTiling &tiling;
  tile::ProgramOp program;

  /// The first row and column of the current tile, and the row behind the last
  /// that the program may compute, if that is not the operand's last one.
  mlir::Value row, column, rowEnd;
  /// The misalignment of each of the tile's rows; null where rows are aligned.
  mlir::Value misalignment;

  /// Tiles of the current band, and those of the current rows and columns.
  mlir::IRMapping bandTiles;
  LoopTiles tiles;
  /// What loops along the row load of rows: the argument, the piece, and how
  /// many pieces there are. The place of each is its number.
  llvm::SetVector<std::tuple<unsigned, int64_t, int64_t>> loadedTiles;

  /// Loads of a group of rows, in the order in which the program makes them.
  /// `collected` receives the loads that are made ahead; `ahead` holds those
  /// that were made before the current group was reached and are still to be
  /// used.
  llvm::SmallVector<mlir::Value> *collected = nullptr;
  mlir::ValueRange ahead;
};

} // namespace bastile

#endif // BASTILE_PASSES_TILE_TILEEMITTER_H
