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
inline int32_t getMinBlocksPerMultiprocessor(tile::ScheduleAttr schedule) {
  /// Threads that hide what some of them wait for.
  constexpr int64_t kThreadsToHide = 1024;
  // As many as are launched, if they load ahead: each has its rows under way.
  if (schedule.getStages() > 1)
    return schedule.getPersistent();
  bool waits = schedule.getBlocks() > 1;
  return waits ? std::max<int64_t>(1, kThreadsToHide / schedule.getThreads())
               : 1;
}

} // namespace bastile

#endif // BASTILE_PASSES_SCHEDULE_OCCUPANCY_H
