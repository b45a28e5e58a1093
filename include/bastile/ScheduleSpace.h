//===- ScheduleSpace.h - The schedules worth timing -------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A tuner times schedules; which ones, the compiler says. Around the choice of
// the heuristic, the fields are varied one or a few at a time, completed and
// checked by the passes themselves, and dropped where a model of registers,
// occupancy and bytes in flight says that they cannot be fast.
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
  /// What `CompileOptions::schedule` pins it by; empty for the heuristic's own.
  std::string pins;
  /// The complete schedule.
  std::string fields;
};

/// The schedules of one launch, of one kernel or of several merged ones.
struct LaunchSpace {
  std::string function;
  /// The kernel's name; the first one's if several were merged.
  std::string kernel;
  /// The heuristic's choice, and then what is expected to be fast first.
  std::vector<ScheduleChoice> choices;
};

/// The most choices of a launch.
constexpr size_t kMostScheduleChoices = 24;

/// The spaces of all launches of `module`, which is as it was parsed and stays
/// so. `options` pins no schedule. Fails, with diagnostics, where compiling
/// does. On the host, the heuristic's choice is the only one.
mlir::FailureOr<std::vector<LaunchSpace>>
getScheduleSpaces(mlir::ModuleOp module, const CompileOptions &options);

} // namespace bastile

#endif // BASTILE_SCHEDULESPACE_H
