//===- SchedulePins.h - What a user asks of schedules -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_SCHEDULE_SCHEDULEPINS_H
#define BASTILE_PASSES_SCHEDULE_SCHEDULEPINS_H

#include "mlir/IR/BuiltinOps.h"
#include "passes/schedule/KernelSchedule.h"
#include "llvm/ADT/MapVector.h"

namespace bastile {

/// Fields of schedules that are pinned from outside of a module: in every
/// kernel, as in "rows = 2, threads = 128", or in those that are named, as in
/// "f_kernel: rows = 2; g_kernel: #tile.matmul<rows = 64>". Fields alone are of
/// the kind that the named kernel takes, and of `#tile.rows` where they are for
/// every kernel; a schedule that is written out is for kernels of its kind.
/// What is pinned for one kernel takes the place of what is pinned for all.
class SchedulePins {
public:
  /// Reads `text`, and reports what is wrong with it: the first thing that the
  /// attribute's own parser says, or a kernel that `module` does not have.
  static mlir::FailureOr<SchedulePins> parse(llvm::StringRef text,
                                             mlir::ModuleOp module);

  /// The fields for the kernel of this name alone; null if there are none.
  KernelScheduleInterface getOwn(llvm::StringRef kernel) const {
    return ofKernels.lookup(kernel);
  }
  /// The fields for every kernel that takes this kind of schedule; null if
  /// there are none.
  KernelScheduleInterface getCommon(mlir::TypeID kind) const {
    return ofKinds.lookup(kind);
  }

private:
  llvm::SmallMapVector<mlir::TypeID, KernelScheduleInterface, 2> ofKinds;
  llvm::SmallMapVector<llvm::StringRef, KernelScheduleInterface, 4> ofKernels;
};

} // namespace bastile

#endif // BASTILE_PASSES_SCHEDULE_SCHEDULEPINS_H
