//===- ScheduleFields.h - A schedule while it is chosen ------- -*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_SCHEDULE_SCHEDULEFIELDS_H
#define BASTILE_PASSES_SCHEDULE_SCHEDULEFIELDS_H

#include "bastile/Target.h"
#include "passes/schedule/KernelSchedule.h"
#include "passes/schedule/KernelShape.h"
#include "passes/schedule/ThreadGrid.h"

namespace bastile {

/// The fields of a `#tile.rows` while they are chosen; 0 for those that are not
/// yet.
struct ScheduleFields {
  int64_t rows = 0, threads = 0, vector = 0, columns = 0, persistent = 0,
          cluster = 0, stages = 0;
  tile::Reread reread = tile::Reread::Unset;

  ScheduleFields() = default;
  explicit ScheduleFields(tile::RowsAttr pinned)
      : rows(pinned.getRows()), threads(pinned.getThreads()),
        vector(pinned.getVector()), columns(pinned.getColumns()),
        persistent(pinned.getPersistent()), cluster(pinned.getCluster()),
        stages(pinned.getStages()), reread(pinned.getReread()) {}

  tile::RowsAttr getAttr(mlir::MLIRContext *context) const {
    return tile::RowsAttr::get(context, rows, threads, vector, columns,
                               persistent, cluster, stages, reread);
  }

  /// Blocks that share a row.
  int64_t getBlocks() const { return std::max<int64_t>(1, cluster); }
  /// Groups of rows that are computed on or whose loads are under way.
  int64_t getStages() const { return std::max<int64_t>(1, stages); }
};

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

/// Chooses the schedule of a kernel that reduces bands of rows: a block holds
/// one band, as wide as a group of columns or a few warps, so that it reads
/// every element once.
void chooseBand(ScheduleFields &fields, const KernelShape &shape);

/// Chooses the fields that are 0 by the bytes and the reductions of `shape`.
void chooseForGPU(ScheduleFields &fields, const KernelShape &shape,
                  const Target &target);

/// Gives a thread less where it would spill: narrower vectors, on each of which
/// fewer values are alive, or a row that more blocks share. Takes the first
/// such schedule that fits, or the one that needs the fewest registers.
void relieveRegisters(ScheduleFields &fields, const ScheduleFields &given,
                      const KernelShape &shape, const Target &target);

/// Gives a thread less that keeps sums of rows beside much that outlives a
/// reduction, of which `relieveRegisters` knows nothing: one block of single
/// elements to a multiprocessor, narrower vectors or, where many threads spill
/// much, a row that more blocks share.
void relieveSpilled(ScheduleFields &fields, const ScheduleFields &given,
                    const KernelShape &shape, const Target &target);

/// Chooses the fields that are 0 for a kernel of `shape`.
void completeForGPU(ScheduleFields &fields, const KernelShape &shape,
                    const Target &target, mlir::MLIRContext *context);
void completeForHost(ScheduleFields &fields, const KernelShape &shape,
                     const Target &target);

/// Whether `kernel`, of `shape`, can run on `target` by complete `fields`; if
/// not, a diagnostic says why.
mlir::LogicalResult verifySchedule(tile::KernelOp kernel,
                                   const ScheduleFields &fields,
                                   const KernelShape &shape,
                                   const Target &target);

/// Whether a kernel of `shape` can run by `fields`, which `verifySchedule`
/// would have nothing to say against.
bool isValidSchedule(const ScheduleFields &fields, const KernelShape &shape,
                     const Target &target, mlir::MLIRContext *context);

/// The best schedule that has the fields of `fields` that are not 0, and room
/// for the groups of columns of a kernel of `shape`; none if no schedule has
/// both.
std::optional<ScheduleFields>
findScheduleForGroups(const ScheduleFields &fields, const KernelShape &shape,
                      const Target &target, mlir::MLIRContext *context);

/// Bytes of a row that a block of a loop keeps in shared memory if it keeps all
/// that later sweeps read again.
int64_t getKeptBytes(const ScheduleFields &fields, const KernelShape &shape);

/// Bytes of shared memory in which warps and blocks combine their results. A
/// program that reduces in a loop has this memory twice, and the two take
/// turns.
int64_t getScratchBytes(const ScheduleFields &fields, const KernelShape &shape,
                        const ThreadGrid &grid);
/// Whether a block has room for this memory.
bool hasScratchRoom(const ScheduleFields &fields, const KernelShape &shape,
                    const ThreadGrid &grid);

/// Bytes of the rows that are copied ahead to a block's shared memory.
int64_t getStagedBytes(const ScheduleFields &fields, const KernelShape &shape);

/// The ops on vectors of a program of the host, including those that functions
/// become. The code of the program is as long as its tile. 0 for tiles of few
/// vectors, whose ops are the source's own.
int64_t countUnrolledOps(const ScheduleFields &fields,
                         const KernelShape &shape);

/// The most vectors that a tile of the host has of a kernel of `shape`.
int64_t getMaxUnrolledVectors(const KernelShape &shape);

/// Whether a loop sweeps rows that are reduced, tile by tile.
bool isLoop(const ScheduleFields &fields, const KernelShape &shape);

/// Complete schedules of `kernel` worth timing: the heuristic's choice, then
/// the others, those expected to be fastest first.
ScheduleCandidates getRowsCandidates(tile::KernelOp kernel,
                                     const Target &target);

/// The schedule for operands of any alignment, given the schedule for aligned
/// operands.
ScheduleFields getUnaligned(ScheduleFields fields, const KernelShape &shape,
                            const Target &target, mlir::MLIRContext *context);

} // namespace bastile

#endif // BASTILE_PASSES_SCHEDULE_SCHEDULEFIELDS_H
