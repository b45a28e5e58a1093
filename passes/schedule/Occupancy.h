//===- Occupancy.h - Blocks that are to share a multiprocessor --*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_SCHEDULE_OCCUPANCY_H
#define BASTILE_PASSES_SCHEDULE_OCCUPANCY_H

#include "dialect/Tile.h"

namespace bastile {

/// How many blocks a multiprocessor has to have room for, which bounds the
/// registers of each; 1 leaves that to the assembler. The blocks of a cluster
/// wait for each other, so that others have to run meanwhile.
inline int32_t getMinBlocksPerMultiprocessor(tile::RowsAttr schedule) {
  /// Threads of a multiprocessor that keep it busy while some of them wait.
  constexpr int64_t kThreadsToHide = 1024;
  // Blocks that load ahead have their next rows in registers, so all that are
  // launched have to fit.
  if (schedule.getStages() > 1)
    return schedule.getPersistent();
  bool waits = schedule.getBlocks() > 1;
  return waits ? std::max<int64_t>(1, kThreadsToHide / schedule.getThreads())
               : 1;
}

} // namespace bastile

#endif // BASTILE_PASSES_SCHEDULE_OCCUPANCY_H
