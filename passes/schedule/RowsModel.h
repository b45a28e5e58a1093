//===- RowsModel.h - The resources of a GPU for schedules -------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_SCHEDULE_ROWSMODEL_H
#define BASTILE_PASSES_SCHEDULE_ROWSMODEL_H

#include "bastile/Target.h"
#include "dialect/Tile.h"
#include "passes/schedule/ScheduleFields.h"

namespace bastile {

/// The number of registers on every GPU so far.
inline constexpr int64_t kRegistersPerMultiprocessor = 65536;

/// The most registers that each thread has where a multiprocessor runs
/// `threads` threads.
int64_t getMostRegisters(int64_t threads);

/// How many blocks a multiprocessor has to have room for, which bounds the
/// registers of each; 1 leaves that to the assembler. The blocks of a cluster
/// wait for each other, so that others have to run meanwhile, as far as threads
/// have registers for what they hold (passes/target/HeldRegisters.h).
inline int32_t getMinBlocksPerMultiprocessor(const ScheduleFields &fields) {
  /// Threads of a multiprocessor that keep it busy while some of them wait.
  constexpr int64_t kThreadsToHide = 1024;
  // Blocks that load ahead have their next rows in registers, so all that are
  // launched have to fit. Stages of programs that are not persistent are
  // refused once the schedule is complete.
  if (fields.getStages() > 1)
    return std::max<int64_t>(1, fields.persistent);
  if (fields.getBlocks() == 1)
    return 1;
  const int64_t blocks = std::max<int64_t>(1, kThreadsToHide / fields.threads);
  // No more blocks run than a persistent grid has.
  return fields.persistent > 0 ? std::min(blocks, fields.persistent) : blocks;
}

/// The resources of a multiprocessor that a schedule is expected to take.
struct RowsEstimate {
  /// Registers of a thread.
  double registers = 0;
  /// Whether a thread needs more registers than it can have, so that some are
  /// spilled to memory.
  bool spills = false;
  /// Blocks that a multiprocessor holds at once.
  int64_t blocks = 0;
  /// Bytes that these blocks load before they compute.
  double bytesInFlight = 0;
  /// Lanes that compute, for each element of the row: 1 if none is idle.
  double padding = 1;
  /// How often a program reads a row.
  double sweeps = 1;
};

/// The registers that a thread needs where it holds its part of a row, and
/// where it sweeps the row. The numbers are fitted to what the assembler takes
/// of about a hundred kernels.
double estimateRegisters(const ScheduleFields &fields,
                         const KernelShape &shape);

/// The registers with fewer of which a thread that keeps sums of rows spills,
/// fitted to what the assembler did with 4000 schedules of random formulas.
double estimateSummingRegisters(const ScheduleFields &fields,
                                const KernelShape &shape);

/// The registers that such a thread needs beside these where much of a row
/// outlives a reduction, fitted to 200 backwards of random formulas.
double estimateOutlivingRegisters(const ScheduleFields &fields,
                                  const KernelShape &shape);

/// Whether so many values of a formula are alive at once that registers for
/// them, rather than for what is loaded, decide. The bounds on bytes are those
/// of the formulas of norms.
bool isCrowded(const KernelShape &shape);

/// The registers that a thread of such a schedule can have.
int64_t getAvailableRegisters(const ScheduleFields &fields);

/// The speed of the schedules of a kernel on rows.
class RowsModel {
public:
  RowsModel(const KernelShape &shape, const Target &target)
      : kernelShape(shape), target(target) {}

  const KernelShape &shape() const { return kernelShape; }

  RowsEstimate estimate(tile::RowsAttr schedule) const;

  /// Whether a schedule cannot be fast, by the machine's limits, or by those of
  /// the heuristic's `choice` where that choice exceeds them.
  bool rulesOut(const RowsEstimate &estimate, const RowsEstimate &choice) const;

  /// The time of `estimate` relative to the least that its bytes allow, which
  /// is 1.
  double getRelativeTime(const RowsEstimate &estimate) const;

private:
  /// By Little's law, the bytes that keep the memory of a multiprocessor busy.
  double getBytesNeeded() const;

  const KernelShape &kernelShape;
  const Target &target;
};

} // namespace bastile

#endif // BASTILE_PASSES_SCHEDULE_ROWSMODEL_H
