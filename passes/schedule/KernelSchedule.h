//===- KernelSchedule.h - Schedules of kernels ------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_SCHEDULE_KERNELSCHEDULE_H
#define BASTILE_PASSES_SCHEDULE_KERNELSCHEDULE_H

#include "bastile/Target.h"
#include "dialect/Tile.h"
#include "mlir/Pass/AnalysisManager.h"

namespace bastile {

/// Complete schedules of a kernel that are worth timing.
struct ScheduleCandidates {
  /// The heuristic's choice, then the others, those expected to be fastest
  /// first.
  llvm::SmallVector<tile::ScheduleInterface> schedules;
  /// How many of them are timed at most, of those that the later passes take.
  size_t most = 0;
};

} // namespace bastile

#include "passes/schedule/KernelSchedule.h.inc"

namespace bastile {

/// A schedule of the kind that `kernel` takes, with all fields left open.
KernelScheduleInterface getOpenSchedule(tile::KernelOp kernel);

/// Lets the attributes of schedules be asked what KernelScheduleInterface says.
void registerKernelSchedules(mlir::DialectRegistry &registry);

/// The same for one kind each.
void registerRowsSchedule(mlir::MLIRContext &context);
void registerMatmulSchedule(mlir::MLIRContext &context);

/// All schedules that `kernel` has.
llvm::SmallVector<tile::ScheduleInterface> getSchedules(tile::KernelOp kernel);

/// Checks that `kernel` has a complete schedule of the kind that it takes, as
/// the pass `schedule` gives it one.
mlir::LogicalResult verifyIsScheduled(tile::KernelOp kernel);

/// Whether a block of `target` may have `threads` threads; if not, `error`
/// begins the diagnostic that says why.
mlir::LogicalResult
verifyThreads(llvm::function_ref<mlir::InFlightDiagnostic()> error,
              int64_t threads, const Target &target);

/// The name of the kind of `schedule`, as in "#tile.rows".
std::string getKindName(mlir::Attribute schedule);

/// The fields of `schedule` as a pin of them is written: "rows = 2, ...".
std::string printFields(tile::ScheduleInterface schedule);

/// Has a kind of schedule complete and check schedules of one kernel.
class ScheduleProbe {
public:
  ScheduleProbe(tile::KernelOp kernel, const Target &target);
  ~ScheduleProbe();

  /// The complete schedule that follows from `schedule`; null if there is none.
  tile::ScheduleInterface complete(KernelScheduleInterface schedule);

  /// An analysis of the kernel.
  template <typename T>
  const T &getAnalysis() {
    mlir::AnalysisManager manager = analyses;
    return manager.getAnalysis<T, tile::KernelOp>();
  }

private:
  tile::KernelOp kernel;
  const Target &target;
  mlir::ModuleAnalysisManager analyses;
};

} // namespace bastile

#endif // BASTILE_PASSES_SCHEDULE_KERNELSCHEDULE_H
