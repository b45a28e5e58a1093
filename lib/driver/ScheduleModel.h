//===- ScheduleModel.h - What a schedule asks of a GPU ----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_DRIVER_SCHEDULEMODEL_H
#define BASTILE_LIB_DRIVER_SCHEDULEMODEL_H

#include "bastile/Target.h"
#include "dialect/Tile.h"
#include "passes/schedule/KernelShape.h"

namespace bastile {

/// What a schedule is expected to take of a multiprocessor.
struct ScheduleEstimate {
  /// Registers of a thread.
  double registers = 0;
  /// Whether a thread has fewer than that, so that some would go to memory.
  bool spills = false;
  /// Blocks that a multiprocessor holds at once.
  int64_t blocks = 0;
  /// Bytes that these ask for before they compute.
  double bytesInFlight = 0;
  /// Elements computed for each one of the row.
  double padding = 1;
  /// How often what is read is read.
  double sweeps = 1;
};

/// A kernel on tensors, as far as the speed of its schedules depends on it.
class ScheduleModel {
public:
  ScheduleModel(tile::KernelOp kernel, const Target &target);

  const KernelShape &shape() const { return kernelShape; }

  ScheduleEstimate estimate(tile::ScheduleAttr schedule) const;

  /// Whether a schedule like this cannot be fast: by the machine's limits, or
  /// by those of the heuristic's `choice` where that is beyond them.
  bool rulesOut(const ScheduleEstimate &estimate,
                const ScheduleEstimate &choice) const;

  /// The time of `estimate` relative to others, 1 for the least that the bytes
  /// allow.
  double getRelativeTime(const ScheduleEstimate &estimate) const;

private:
  /// By Little's law, the bytes that keep the memory of a multiprocessor busy.
  double getBytesNeeded() const;

  KernelShape kernelShape;
  const Target &target;
  /// Sums of rows that are kept for a column.
  int64_t sums = 0;
  int64_t operands = 0;
};

} // namespace bastile

#endif // BASTILE_LIB_DRIVER_SCHEDULEMODEL_H
