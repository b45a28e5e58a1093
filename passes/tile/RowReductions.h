//===- RowReductions.h - Combining rows in a program ------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TILE_ROWREDUCTIONS_H
#define BASTILE_PASSES_TILE_ROWREDUCTIONS_H

#include "passes/tile/TileEmitter.h"

namespace bastile {

/// Combines the rows of `tile` to one.
mlir::Value combineTileRows(mlir::OpBuilder &builder, mlir::Value tile,
                            tile::ReduceKind kind);

/// Combines the rows of `tile`, which holds a band and is masked, and repeats
/// the result for all of the band's rows.
mlir::Value combineBand(mlir::OpBuilder &builder, const KernelTiling &tiling,
                        tile::ReduceBandsOp reduce, mlir::Value tile);

/// The combinations of all rows that a program goes through. Each has an
/// accumulator: in registers or, where a row does not fit those, in memory, in
/// the program's row of the partial results.
class RowAccumulators {
public:
  RowAccumulators(mlir::ImplicitLocOpBuilder &builder,
                  const KernelTiling &tiling, TileEmitter &emitter);

  /// Whether some sum is compensated: what each addition rounds off is added up
  /// as well. A program of the host goes through so many rows that a plain
  /// running sum would lose digits.
  bool areCompensated() const;
  /// The combinations whose accumulators are in memory.
  llvm::ArrayRef<tile::ReduceRowsOp> getInMemory() const { return inMemory; }

  //===--------------------------------------------------------------------===//
  // In registers
  //===--------------------------------------------------------------------===//

  /// Creates the accumulators as they are before the first row.
  llvm::SmallVector<mlir::Value> createInitial();
  /// Makes `values` the accumulators that rows are added to. A program of a
  /// single group of rows has none and starts them.
  void set(mlir::ValueRange values) { accumulators = values; }
  /// Adds the current rows.
  void add();
  /// The accumulators with the rows that were added last.
  llvm::ArrayRef<mlir::Value> getSums() const { return sums; }

  /// Adds the sums of a block of rows to `totals`, which are followed by what
  /// rounding took from each so far. Returns both.
  llvm::SmallVector<mlir::Value> addCompensated(mlir::ValueRange totals,
                                                mlir::ValueRange block);
  /// The sums of `totals` and of what rounding took from them.
  llvm::SmallVector<mlir::Value> finishCompensated(mlir::ValueRange totals);

  /// Stores partial results of the program, whose number down the rows is
  /// `rowProgram`, and makes the others the tiles of the combinations.
  void finish(mlir::ValueRange totals, mlir::Value rowProgram);

  //===--------------------------------------------------------------------===//
  // In memory
  //===--------------------------------------------------------------------===//

  /// Sets the program's row of the partial results to the neutral value. No
  /// barrier is needed, because each thread later reads only what it wrote
  /// itself.
  void clearInMemory(mlir::Value rowProgram);
  /// Adds the current columns of the current rows.
  void addInMemory(tile::ReduceRowsOp reduce, mlir::Value rowProgram);

private:
  bool isInRegisters(tile::ReduceRowsOp reduce) const;
  bool isCompensated(tile::ReduceRowsOp reduce) const;
  mlir::Value getMemory(tile::ReduceRowsOp reduce);

  mlir::ImplicitLocOpBuilder &builder;
  const KernelTiling &tiling;
  TileEmitter &emitter;
  /// The combinations whose accumulators are in registers, and all others.
  llvm::SmallVector<tile::ReduceRowsOp> reductions, inMemory;
  mlir::ValueRange accumulators;
  llvm::SmallVector<mlir::Value> sums;
};

} // namespace bastile

#endif // BASTILE_PASSES_TILE_ROWREDUCTIONS_H
