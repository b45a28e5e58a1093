//===- CopyAhead.h - Tiles on their way to shared memory --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TILE_COPYAHEAD_H
#define BASTILE_PASSES_TILE_COPYAHEAD_H

#include "dialect/Tile.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace bastile {

/// Attribute that `tile` leaves at loads for `keep-rows`, where a schedule says
/// that rows which several sweeps read stay in shared memory: a number. Loads
/// with one number load the same tiles of rows, each in a loop of its own.
constexpr llvm::StringLiteral kRowTilesAttrName = "tile.row_tiles";

/// A tile that a loop over the columns of a row loads, and the buffer in shared
/// memory that has a slot for each turn of the loop.
struct CopiedTile {
  tile::LoadOp load;
  tile::BufferOp buffer;
};

/// The loop that `load` is in, if it is in one.
mlir::scf::ForOp getLoop(tile::LoadOp load);

/// How many turns a loop over the columns of a row has; nothing for other
/// loops.
std::optional<int64_t> getTripCount(mlir::scf::ForOp loop);

/// The slot of the tile that the current turn of `loop` loads.
mlir::Value createSlot(mlir::OpBuilder &builder, mlir::scf::ForOp loop);

/// Creates a buffer for `slots` tiles like that of `load`, behind `offset`, and
/// advances `offset`.
tile::BufferOp createBuffer(tile::LoadOp load, int64_t slots, int64_t &offset);

/// Replaces `load` by taking the tile from a slot of `buffer`.
void replaceByTake(tile::LoadOp load, mlir::Value buffer, mlir::Value slot);

/// Whether a thread's pieces can be copied by the memory system: as wide as one
/// of its accesses, at addresses that follow from the loop alone.
bool canCopyAhead(tile::LoadOp load);

/// Makes `loop` copy tiles of its row to shared memory a few turns ahead.
void copyNextTiles(mlir::scf::ForOp loop, llvm::ArrayRef<CopiedTile> tiles);

/// Makes each loop over rows that loads whole rows copy them to shared memory
/// ahead of their use: with n `stages`, n - 1 rows ahead, into n slots. The
/// other loads of the loop stay.
void copyRowsAhead(tile::ProgramOp program);

} // namespace bastile

#endif // BASTILE_PASSES_TILE_COPYAHEAD_H
