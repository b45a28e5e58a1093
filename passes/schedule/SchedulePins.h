//===- SchedulePins.h - What a user asks of schedules -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_SCHEDULE_SCHEDULEPINS_H
#define BASTILE_PASSES_SCHEDULE_SCHEDULEPINS_H

#include "dialect/Tile.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

namespace bastile {

/// Fields of schedules that are pinned from outside of a module: in every
/// kernel, as in "rows = 2, threads = 128", or in those that are named, as in
/// "f_kernel: rows = 2; g_kernel: threads = 128". What is pinned for one kernel
/// takes the place of what is pinned for all.
class SchedulePins {
public:
  /// Reads `text`, and reports what is wrong with it: the first thing that the
  /// attribute's own parser says, or a kernel that `module` does not have.
  static mlir::FailureOr<SchedulePins> parse(llvm::StringRef text,
                                             mlir::ModuleOp module);

  /// The fields for the kernel of this name alone; null if there are none.
  tile::ScheduleAttr getOwn(llvm::StringRef kernel) const {
    return ofKernels.lookup(kernel);
  }
  /// The fields for every kernel; null if there are none.
  tile::ScheduleAttr getCommon() const { return common; }

private:
  tile::ScheduleAttr common;
  llvm::SmallMapVector<llvm::StringRef, tile::ScheduleAttr, 4> ofKernels;
};

/// The fields of `schedule` as a pin of them is written: "rows = 2, ...".
std::string printFields(tile::ScheduleAttr schedule);

} // namespace bastile

#endif // BASTILE_PASSES_SCHEDULE_SCHEDULEPINS_H
