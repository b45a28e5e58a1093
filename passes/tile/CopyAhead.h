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

/// A tile that a loop over the columns of a row loads, and the buffer that has
/// a slot for each of the loop's turns.
struct CopiedTile {
  tile::LoadOp load;
  tile::BufferOp buffer;
};

/// The loop that `load` is in, if it is in one.
mlir::scf::ForOp getLoop(tile::LoadOp load);

/// How often a loop over the columns of a row runs; nothing for other loops.
std::optional<int64_t> getTripCount(mlir::scf::ForOp loop);

/// The slot of the tile that `loop` is at.
mlir::Value createSlot(mlir::OpBuilder &builder, mlir::scf::ForOp loop);

/// Memory for `slots` tiles of what is loaded, behind `offset`, which it
/// advances.
tile::BufferOp createBuffer(tile::LoadOp load, int64_t slots, int64_t &offset);

/// Takes what is loaded from a slot of `buffer` instead.
void replaceByTake(tile::LoadOp load, mlir::Value buffer, mlir::Value slot);

/// Whether a thread's pieces can be copied by the memory system: as wide as one
/// of its accesses, at addresses that follow from the loop alone.
bool canCopyAhead(tile::LoadOp load);

/// Has `loop` copy tiles of its row a few turns ahead.
void copyNextTiles(mlir::scf::ForOp loop, llvm::ArrayRef<CopiedTile> tiles);

/// Has each loop over rows that loads the tiles of whole ones copy them, as
/// many rows ahead as the kernel's schedule has stages less one, to as many
/// slots. What other loads a loop has stay.
void copyRowsAhead(tile::KernelOp kernel);

} // namespace bastile

#endif // BASTILE_PASSES_TILE_COPYAHEAD_H
