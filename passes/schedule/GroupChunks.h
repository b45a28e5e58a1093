//===- GroupChunks.h - Which parts of groups warps hold ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_SCHEDULE_GROUPCHUNKS_H
#define BASTILE_PASSES_SCHEDULE_GROUPCHUNKS_H

#include "passes/schedule/ThreadGrid.h"

namespace bastile {

/// How groups of columns are spread over the lanes that hold a row. A chunk is
/// the vectors that the lanes of a warp hold at a time. A group may have parts
/// in several chunks, and a chunk may have parts of several groups.
///
/// The part that chunk c has of group g leaves its result in slot c + g of its
/// row. From one part of a row to the next, the chunk, the group or both
/// change, so no two parts share a slot, and the slots of a group follow each
/// other.
struct GroupChunks {
  /// Vectors of a chunk, of a group, and of all that a block has of a row.
  int64_t lanes, vectors, length;

  /// The chunks of a tile whose layout deals vectors of `vector` elements to
  /// `grid`, `repeats` times along the row.
  static GroupChunks get(const ThreadGrid &grid, int64_t repeats, int64_t group,
                         int64_t vector) {
    return {std::min(kWarp, grid.columns), group / vector,
            repeats * grid.columns};
  }

  /// The number of groups in a row; the last group may be cut.
  int64_t getGroups() const { return llvm::divideCeil(length, vectors); }
  bool isOneChunk() const { return length == lanes; }
  /// Whether every chunk is part of one group.
  bool areWhole() const { return vectors % lanes == 0; }
  /// The most parts that a group has.
  int64_t getParts() const {
    return areWhole() ? vectors / lanes : (vectors + lanes - 2) / lanes + 1;
  }
  /// The number of slots of a row, including those that a cut group does not
  /// fill.
  int64_t getSlots() const {
    return llvm::divideCeil(getGroups() * vectors, lanes) + getGroups();
  }
  /// Whether one warp combines the parts of each group for all threads, rather
  /// than each thread those of its own groups. A thread has `pieces` pieces.
  bool combinesOnce(int64_t pieces) const {
    constexpr int64_t kMostParts = 8, kMostLoads = 128;
    return getParts() > kMostParts || getParts() * pieces > kMostLoads;
  }

  /// Bytes of shared memory for a reduction of such groups in a tile of which a
  /// thread has pieces of `rowRepeats` rows.
  static int64_t getScratchBytes(const ThreadGrid &grid, int64_t rowRepeats,
                                 int64_t repeats, int64_t group,
                                 int64_t vector) {
    GroupChunks chunks = get(grid, repeats, group, vector);
    int64_t slots = chunks.getSlots();
    if (chunks.vectors % grid.columns == 0)
      slots = chunks.getGroups() *
              (grid.getWarpsPerRow() > 1 ? grid.getWarpsPerRow() : 0);
    else if (chunks.isOneChunk() || chunks.lanes % chunks.vectors == 0)
      slots = 0;
    else if (chunks.combinesOnce(rowRepeats * repeats))
      slots += chunks.getGroups();
    return grid.rows * rowRepeats * slots * 4;
  }
};

} // namespace bastile

#endif // BASTILE_PASSES_SCHEDULE_GROUPCHUNKS_H
