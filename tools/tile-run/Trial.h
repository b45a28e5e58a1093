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
  /// Where to write outputs, and what they should be, by their names.
  NamedValues outputFiles, expectedFiles;
  /// In units in the last place; by default what the oracle says of each
  /// element, and for files what `getDefaultTolerance` does.
  std::optional<double> tolerance;
  /// Whether outputs that may take the memory of an input do.
  bool inPlace = false;
  /// How often to run for the time; 0 for no time.
  unsigned repeat = 0;
};

/// One output compared with what is expected.
struct CheckedOutput {
  std::string name;
  runtime::ElementType type;
  runtime::Dimensions sizes;
  Comparison comparison;

  bool passed() const { return comparison.passed(); }
};

/// What came of calling one function on inputs of one shape.
struct TrialResult {
  std::string function;
  std::vector<std::pair<std::string, runtime::Dimensions>> shapes;
  /// Empty if there was nothing to compare with.
  std::vector<CheckedOutput> outputs;
  /// The bytes of all inputs and outputs.
  int64_t bytes = 0;
  std::optional<double> seconds;

  bool passed() const;
};

/// Calls `function` of `program` and compares with what `oracle`, if there is
/// one, says. It is then called on what its forward has left, if it has one.
runtime::Expected<TrialResult> runTrial(Program &program, const Oracle *oracle,
                                        const runtime::Function &function,
                                        const TrialOptions &options,
                                        ArrayFiles &files);

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_TRIAL_H
