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

namespace bastile {

/// The layout of a distributed tile; null for any other type.
tile::BlockedAttr getLayout(mlir::Type type);

/// The layout of a distributed tile of any kind; null for any other type.
tile::LayoutInterface getAnyLayout(mlir::Type type);

/// The type of one piece of a distributed tile.
mlir::Type getPieceType(mlir::RankedTensorType tile);

/// A piece of `type` whose elements are all `scalar`.
mlir::Value createConstantPiece(mlir::OpBuilder &builder, mlir::Location loc,
                                mlir::Type type, mlir::TypedAttr scalar);

/// As many numbers from `first` on as a piece of `type` has, of 32 bits. For a
/// vector, they are the sum of `first` and [0, 1, ...], in this order.
mlir::Value createCount(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::Value first, mlir::Type type);

/// Where a thread stands in the block.
struct ThreadPosition {
  /// The row and column of the thread in the layout's grid.
  mlir::Value row, column;
};
ThreadPosition getThreadPosition(mlir::OpBuilder &builder, mlir::Location loc,
                                 tile::BlockedAttr layout);

/// The index of the calling thread in its block.
mlir::Value getThreadId(mlir::OpBuilder &builder, mlir::Location loc);

/// The number of the calling warp in its block, which the assembler knows to be
/// the same for all lanes.
mlir::Value getWarpId(mlir::OpBuilder &builder, mlir::Location loc);

/// The index of the thread's block in its cluster.
mlir::Value getBlockRank(mlir::OpBuilder &builder, mlir::Location loc,
                         tile::BlockedAttr layout);

/// The index of the thread's block in a cluster of `blocks`.
mlir::Value createBlockRank(mlir::OpBuilder &builder, mlir::Location loc,
                            int64_t blocks);

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
void populateOneHotPatterns(const mlir::TypeConverter &converter,
                            mlir::RewritePatternSet &patterns);

/// Notes at loads and stores of a program over named dimensions what its
/// arguments say of the dimensions of operands, for the patterns of these.
void nameDimensions(tile::ProgramOp program);
void populateFragmentMemoryPatterns(const mlir::TypeConverter &converter,
                                    mlir::RewritePatternSet &patterns);
void populateFragmentPatterns(const mlir::TypeConverter &converter,
                              mlir::RewritePatternSet &patterns);
void populateBarrierPatterns(const mlir::TypeConverter &converter,
                             mlir::RewritePatternSet &patterns);
void populateTensorCopyPatterns(const mlir::TypeConverter &converter,
                                mlir::RewritePatternSet &patterns);
void populateDotPatterns(const mlir::TypeConverter &converter,
                         mlir::RewritePatternSet &patterns);

/// The sum of a row's pieces if they are known to be one-hot, otherwise null.
mlir::Value sumOneHot(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::ValueRange pieces);

/// The first value of each operand: only tiles have several.
llvm::SmallVector<mlir::Value>
getFronts(llvm::ArrayRef<mlir::ValueRange> operands);

/// Loads a piece of `type` from `pointer`.
mlir::Value loadPiece(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Type type, mlir::Value pointer, unsigned alignment,
                      bool isInvariant = false);

/// Stores `piece` to `pointer`.
void storePiece(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value piece,
                mlir::Value pointer, unsigned alignment);

/// Calls `visit` with the number, the address and the alignment of each piece
/// that a thread keeps of a tile of `type` in `slot` of a buffer.
void forEachKeptPiece(
    mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
    mlir::Value buffer, mlir::Value slot,
    llvm::function_ref<void(int64_t, mlir::Value, unsigned)> visit);

/// The type to which the patterns convert a buffer in shared memory.
mlir::Type getBufferPointerType(mlir::MLIRContext *context);

/// `type` with integers of as many bits for its elements.
mlir::Type withIntegers(mlir::Type type);

/// The type in which a piece of `type` lies in memory: LLVM has no float of 8
/// bits.
mlir::Type getMemoryType(mlir::Type type);

/// `value` as a value of `type`, which has as many bits.
mlir::Value bitcastTo(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Type type, mlir::Value value);

} // namespace bastile

#endif // BASTILE_PASSES_THREADS_LOWERTILES_H
