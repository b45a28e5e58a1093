//===- Occupancy.h - Blocks that are to share a multiprocessor --*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_SCHEDULE_OCCUPANCY_H
#define BASTILE_PASSES_SCHEDULE_OCCUPANCY_H

#include "passes/schedule/ScheduleFields.h"

namespace bastile {

/// The number of registers on every GPU so far.
inline constexpr int64_t kRegistersPerMultiprocessor = 65536;

/// How many blocks a multiprocessor has to have room for, which bounds the
/// registers of each; 1 leaves that to the assembler. The blocks of a cluster
/// wait for each other, so that others have to run meanwhile.
inline int32_t getMinBlocksPerMultiprocessor(const ScheduleFields &fields) {
  /// Threads of a multiprocessor that keep it busy while some of them wait.
  constexpr int64_t kThreadsToHide = 1024;
  // Blocks that load ahead have their next rows in registers, so all that are
  // launched have to fit.
  if (fields.getStages() > 1)
    return fields.persistent;
  bool waits = fields.getBlocks() > 1;
  return waits ? std::max<int64_t>(1, kThreadsToHide / fields.threads) : 1;
}

} // namespace bastile

#endif // BASTILE_PASSES_SCHEDULE_OCCUPANCY_H
