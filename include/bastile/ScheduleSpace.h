//===- ScheduleSpace.h - The schedules worth timing -------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The compiler tells a tuner which schedules are worth timing: those that the
// kind of schedule of each kernel proposes (passes/schedule/KernelSchedule.td)
// and that the passes take.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_SCHEDULESPACE_H
#define BASTILE_SCHEDULESPACE_H

#include "bastile/Compiler.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace bastile {

/// A schedule of a launch.
struct ScheduleChoice {
  /// The value of `CompileOptions::schedule` that pins it; empty for the
  /// heuristic's own.
  std::string pins;
  /// The complete schedule.
  std::string fields;
};

/// The schedules of one launch, of one kernel or of several merged ones.
struct LaunchSpace {
  std::string function;
  /// The kernel's name; the first one's if several were merged.
  std::string kernel;
  /// The heuristic's choice, then the others, those expected to be fastest
  /// first.
  std::vector<ScheduleChoice> choices;
};

/// The most choices that a launch gets, whatever the kind of its schedule.
constexpr size_t kMostScheduleChoices = 40;

/// The search spaces of all launches of `module`, a parsed module that stays
/// unchanged. `options` must pin no schedule. Fails, with diagnostics, where
/// compiling fails. On the host, the heuristic's choice is the only one.
mlir::FailureOr<std::vector<LaunchSpace>>
getScheduleSpaces(mlir::ModuleOp module, const CompileOptions &options);

} // namespace bastile

#endif // BASTILE_SCHEDULESPACE_H
