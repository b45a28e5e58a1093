//===- Pieces.h - What a thread holds of a tile -----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A thread holds a tile in *pieces*: vectors, or scalars where the layout's
// vector is one element wide or the tile is a single column.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PIECES_PIECES_H
#define BASTILE_PASSES_PIECES_PIECES_H

#include "dialect/Tile.h"
#include "mlir/IR/Builders.h"

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

/// Which of `width` elements, a vector of conditions, are among the first
/// `count`.
mlir::Value createMask(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value count, int64_t width);

/// The index of the calling thread in its block.
mlir::Value getThreadId(mlir::OpBuilder &builder, mlir::Location loc);

/// The number of the calling warp in its block, which the assembler knows to be
/// the same for all lanes.
mlir::Value getWarpId(mlir::OpBuilder &builder, mlir::Location loc);

/// The index of the thread's block in a cluster of `blocks`.
mlir::Value createBlockRank(mlir::OpBuilder &builder, mlir::Location loc,
                            int64_t blocks);

/// Loads a piece of `type` from `pointer`.
mlir::Value loadPiece(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Type type, mlir::Value pointer, unsigned alignment,
                      bool isInvariant = false);

/// Loads a vector of `type` from `pointer`, with zeros for the elements that
/// `mask` leaves out, whose memory is not read.
mlir::Value loadMasked(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Type type, mlir::Value pointer, mlir::Value mask,
                       unsigned alignment);

/// Stores `piece` to `pointer`.
void storePiece(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value piece,
                mlir::Value pointer, unsigned alignment);

/// The type to which the patterns convert a buffer in shared memory.
mlir::Type getBufferPointerType(mlir::MLIRContext *context);

/// `type` with integers of as many bits for its elements.
mlir::Type withIntegers(mlir::Type type);

/// The elements of pieces in their order.
llvm::SmallVector<mlir::Value> unpackPieces(mlir::OpBuilder &builder,
                                            mlir::Location loc,
                                            mlir::ValueRange pieces);

/// The reverse: pieces of `type`, whose elements have a form in LLVM.
llvm::SmallVector<mlir::Value> packPieces(mlir::OpBuilder &builder,
                                          mlir::Location loc, mlir::Type type,
                                          mlir::ValueRange elements);

/// The type in which a piece of `type` lies in memory: LLVM has no float of 8
/// bits.
mlir::Type getMemoryType(mlir::Type type);

/// `value` as a value of `type`, which has as many bits.
mlir::Value bitcastTo(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Type type, mlir::Value value);

/// Whether both conditions hold; null is a condition that always does.
mlir::Value combine(mlir::OpBuilder &builder, mlir::Location loc,
                    mlir::Value lhs, mlir::Value rhs);

/// Stores a piece as a whole or not at all, without a branch. A `condition`
/// that is null always holds.
void storeIf(mlir::OpBuilder &builder, mlir::Location loc,
             mlir::Value condition, mlir::Value piece, mlir::Value pointer,
             unsigned alignment);

/// Loads a number of the type of `other` from `pointer` if `condition` holds;
/// otherwise, the result is `other`, and nothing is read.
mlir::Value loadIf(mlir::OpBuilder &builder, mlir::Location loc,
                   mlir::Value condition, mlir::Value other,
                   mlir::Value pointer, unsigned alignment);

/// Combines pieces, and then the elements of the result, to one number.
mlir::Value combinePieces(mlir::OpBuilder &builder, mlir::Location loc,
                          tile::ReduceKind kind, mlir::ValueRange pieces);

/// Keeps LLVM from writing out `loop`, which has no attribute for it yet.
void keepRolled(mlir::Operation *loop);

/// Waits until the phase with the last bit `parity` has ended at the barrier.
void waitForPhase(mlir::OpBuilder &builder, mlir::Location loc,
                  mlir::Value barrier, mlir::Value parity);

} // namespace bastile

#endif // BASTILE_PASSES_PIECES_PIECES_H
