//===- LowerTiles.h - Patterns that turn tiles into vectors -----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One file for each family of ops; LowerTiles.cpp puts them together. What a
// thread holds of a tile are its pieces: vectors, or scalars where the layout's
// vector is one element wide or the tile is a single column.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_THREADS_LOWERTILES_H
#define BASTILE_PASSES_THREADS_LOWERTILES_H

#include "dialect/Tile.h"
#include "mlir/Transforms/DialectConversion.h"

namespace bastile {

/// The layout of a distributed tile; null for any other type.
tile::BlockedAttr getLayout(mlir::Type type);

/// The type of one piece of a distributed tile.
mlir::Type getPieceType(mlir::RankedTensorType tile);

/// A piece of `type` whose elements are all `scalar`.
mlir::Value createConstantPiece(mlir::OpBuilder &builder, mlir::Location loc,
                                mlir::Type type, mlir::TypedAttr scalar);

/// The numbers from `first` on, as many as a piece of `type` has, of 32 bits:
/// for a vector, the sum of `first` and [0, 1, ...], in this order.
mlir::Value createCount(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::Value first, mlir::Type type);

/// Where a thread stands in the block.
struct ThreadPosition {
  /// Of the thread in the layout's grid.
  mlir::Value row, column;
};
ThreadPosition getThreadPosition(mlir::OpBuilder &builder, mlir::Location loc,
                                 tile::BlockedAttr layout);

/// The index of the calling thread in its block.
mlir::Value getThreadId(mlir::OpBuilder &builder, mlir::Location loc);

/// The index of the thread's block in its cluster.
mlir::Value getBlockRank(mlir::OpBuilder &builder, mlir::Location loc,
                         tile::BlockedAttr layout);

/// Column, relative to the tile's first, of the first element of the pieces in
/// the given repetition of the tile's layout along the row.
mlir::Value getPieceColumn(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::RankedTensorType tile, int64_t repeat);

/// Whether these pieces begin a group, in a tile that has an element for each
/// group and begins with one.
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
/// The sums of rows of kernels that have several.
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

void populateOneHotPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);

/// The sum of the elements of pieces of a row that are 0 in all columns but
/// one; null unless they are known to be that.
mlir::Value sumOneHot(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::ValueRange pieces);

/// Calls `visit` with the address of each piece that a thread keeps of a tile
/// of `type` in `slot` of a buffer, and its alignment.
void forEachKeptPiece(
    mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
    mlir::Value buffer, mlir::Value slot,
    llvm::function_ref<void(int64_t, mlir::Value, unsigned)> visit);

/// How the patterns see a buffer in shared memory.
mlir::Type getBufferPointerType(mlir::MLIRContext *context);

/// `type` with its elements as integers.
mlir::Type withIntegers(mlir::Type type);

/// The type in which a piece of `type` lies in memory: LLVM has no float of 8
/// bits.
mlir::Type getMemoryType(mlir::Type type);

/// `value` as one of `type`, which has as many bits.
mlir::Value bitcastTo(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Type type, mlir::Value value);

} // namespace bastile

#endif // BASTILE_PASSES_THREADS_LOWERTILES_H
