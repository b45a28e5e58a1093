//===- ScheduleLoops.h - Loops over long rows on GPUs -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Parts of the heuristic of `ScheduleHeuristic.cpp`.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_SCHEDULE_SCHEDULELOOPS_H
#define BASTILE_PASSES_SCHEDULE_SCHEDULELOOPS_H

#include "passes/schedule/ScheduleFields.h"

namespace bastile {

/// Which of several equally good numbers of threads to choose.
enum class Prefer {
  /// The most threads: each holds less.
  Most,
  /// The fewest threads: blocks end, and make room for others, one by one.
  Fewest,
};

/// Finds the number of threads, from `minThreads` to `maxThreads` or the pinned
/// one, that leaves the fewest of `pieces` vectors padding while none holds
/// more than `maxPieces`; 0 if there is none.
int64_t findThreads(const ScheduleFields &fields, int64_t pieces,
                    int64_t minThreads, int64_t maxThreads, int64_t maxPieces,
                    Prefer prefer = Prefer::Most);

/// Whether a multiprocessor has shared memory for `blocks` blocks that each
/// keep `bytes` of rows.
bool haveRoom(int64_t blocks, int64_t bytes, const Target &target);

/// Chooses a loop over tiles for long rows whose values are more than registers
/// hold. Three blocks or more on a multiprocessor hide best what each waits
/// for; where blocks keep so much of a row that only two have room, blocks of
/// more threads are chosen. A cluster shares each row that takes several
/// sweeps, for one of two reasons: so that the shared memory that its blocks
/// keep leaves room for others or, where no cluster is large enough for that,
/// so that the rows being swept stay in the GPU's cache.
void chooseLoop(ScheduleFields &fields, const KernelShape &shape,
                const Target &target);

/// Chooses a loop for rows that are too long for one block, if its later sweeps
/// can read the row from shared memory and other blocks still have room, which
/// wait at other times: two others where one tensor is loaded, else one, or
/// none where no cluster holds a row in registers. A block that keeps a row of
/// a single tensor has many threads with a vector each. Returns false, and
/// chooses nothing, if rows do not fit like that.
bool chooseKeptRows(ScheduleFields &fields, const KernelShape &shape,
                    const Target &target);

/// Keeps rows in shared memory from one sweep to the next where they fit.
void chooseReread(ScheduleFields &fields, const KernelShape &shape,
                  const Target &target);

} // namespace bastile

#endif // BASTILE_PASSES_SCHEDULE_SCHEDULELOOPS_H
