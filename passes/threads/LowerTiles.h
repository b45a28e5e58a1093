//===- LowerTiles.h - Patterns that turn tiles into vectors -----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each family of ops has a file of patterns; LowerTiles.cpp puts them together.
// A thread holds a tile in *pieces*: vectors, or scalars where the layout's
// vector is one element wide or the tile is a single column.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_THREADS_LOWERTILES_H
#define BASTILE_PASSES_THREADS_LOWERTILES_H

#include "dialect/Tile.h"
#include "mlir/Transforms/DialectConversion.h"
#include "passes/pieces/Pieces.h"

namespace bastile {

/// Where a thread stands in the block.
struct ThreadPosition {
  /// The row and column of the thread in the layout's grid.
  mlir::Value row, column;
};
ThreadPosition getThreadPosition(mlir::OpBuilder &builder, mlir::Location loc,
                                 tile::BlockedAttr layout);

/// The index of the thread's block in its cluster.
mlir::Value getBlockRank(mlir::OpBuilder &builder, mlir::Location loc,
                         tile::BlockedAttr layout);

/// The column of the first element of the thread's pieces in the given
/// repetition of the layout along the row, counted from the tile's first
/// column.
mlir::Value getPieceColumn(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::RankedTensorType tile, int64_t repeat);

/// Whether the thread's pieces in the given repetition begin a group, in a tile
/// that has an element for each group and begins with a whole group.
mlir::Value isGroupStart(mlir::OpBuilder &builder, mlir::Location loc,
                         tile::BlockedAttr layout, int64_t repeat);

/// Whether the pieces in the given repetition end before `limit` in every
/// thread, the tile's first column being `column`.
bool isSurelyInside(tile::BlockedAttr layout, int64_t repeat,
                    mlir::Value column, int64_t limit);

void populateMemoryPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
void populateReducePatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
/// Finds the sums of rows in kernels that have several, which use the same
/// shared memory in turn.
llvm::DenseSet<mlir::Operation *> findSumsTakingTurns(mlir::ModuleOp module);
void populateReduceRowsPatterns(
    const mlir::TypeConverter &converter, mlir::RewritePatternSet &patterns,
    const llvm::DenseSet<mlir::Operation *> &takingTurns);
void populateMisalignedPatterns(const mlir::TypeConverter &converter,
                                mlir::RewritePatternSet &patterns);
void populateSplitPatterns(const mlir::TypeConverter &converter,
                           mlir::RewritePatternSet &patterns);
void populateBufferPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);
/// Tiles with blocked layouts in programs over named dimensions.
void populateNamedMemoryPatterns(const mlir::TypeConverter &converter,
                                 mlir::RewritePatternSet &patterns);
/// Tiles whose rows are the columns of an operand, in such programs.
void populateTransposedLoadPatterns(const mlir::TypeConverter &converter,
                                    mlir::RewritePatternSet &patterns);
/// Products of operands in memory. Where both operands are contiguous along
/// the dimension that is summed over, a thread sums as many parts of it at a
/// time as a vector of `vectorBytes` bytes has elements; 0 for one.
void populateLoadDotPatterns(const mlir::TypeConverter &converter,
                             mlir::RewritePatternSet &patterns,
                             int64_t vectorBytes);
void populateOneHotPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);

/// The sum of a row's pieces if they are known to be one-hot, otherwise null.
mlir::Value sumOneHot(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::ValueRange pieces);

/// The first value of each operand: only tiles have several.
llvm::SmallVector<mlir::Value>
getFronts(llvm::ArrayRef<mlir::ValueRange> operands);

/// Calls `visit` with the number, the address and the alignment of each piece
/// that a thread keeps of a tile of `type` in `slot` of a buffer.
void forEachKeptPiece(
    mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
    mlir::Value buffer, mlir::Value slot,
    llvm::function_ref<void(int64_t, mlir::Value, unsigned)> visit);

} // namespace bastile

#endif // BASTILE_PASSES_THREADS_LOWERTILES_H
