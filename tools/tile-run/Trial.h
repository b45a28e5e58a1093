//===- Trial.h - Calling, checking and timing a function -----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TOOLS_TILERUN_TRIAL_H
#define BASTILE_TOOLS_TILERUN_TRIAL_H

#include "Compare.h"
#include "Inputs.h"
#include "Oracle.h"
#include "Program.h"
#include <optional>

namespace bastile::run {

struct TrialOptions {
  InputOptions inputs;
  /// Files to write outputs to, and files with expected outputs, by the
  /// outputs' names.
  NamedValues outputFiles, expectedFiles;
  /// The allowed error in units in the last place. By default it is the
  /// oracle's for each element, and that of `getDefaultTolerance` for files.
  std::optional<double> tolerance;
  /// Whether outputs take the memory of inputs where they may.
  bool inPlace = false;
  /// How many runs are timed; 0 for no timing.
  unsigned repeat = 0;
};

/// One output compared with its expectation.
struct CheckedOutput {
  std::string name;
  runtime::ElementType type;
  runtime::Dimensions sizes;
  Comparison comparison;

  bool passed() const { return comparison.passed(); }
};

/// The outcome of calling one function on inputs of one shape.
struct TrialResult {
  std::string function;
  std::vector<std::pair<std::string, runtime::Dimensions>> shapes;
  /// The compared outputs; empty if there was nothing to compare with.
  std::vector<CheckedOutput> outputs;
  /// The variants that ran, in order.
  std::vector<std::string> variants;
  /// The bytes of all inputs and outputs.
  int64_t bytes = 0;
  std::optional<double> seconds;

  bool passed() const;
};

/// Calls `function` of `program` and compares its outputs with those of
/// `oracle`, if there is one. A backward is called on the results of its
/// forward.
runtime::Expected<TrialResult> runTrial(Program &program, const Oracle *oracle,
                                        const runtime::Function &function,
                                        const TrialOptions &options,
                                        ArrayFiles &files);

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_TRIAL_H
