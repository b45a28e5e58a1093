//===- Trial.h - Calling, checking and timing a function -----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TOOLS_TILERUN_TRIAL_H
#define BASTILE_TOOLS_TILERUN_TRIAL_H

#include "Compare.h"
#include "Inputs.h"
#include "Program.h"
#include <optional>

namespace bastile::run {

struct TrialOptions {
  InputOptions inputs;
  /// Where to write outputs, and what they should be, by their names.
  NamedValues outputFiles, expectedFiles;
  /// In units in the last place; by default what `getDefaultTolerance` says,
  /// and for floats one more for each inner rounding.
  std::optional<double> tolerance;
  /// Whether outputs that may take the memory of an input do.
  bool inPlace = false;
  unsigned innerRoundings = 0;
  /// How often to run for the time; 0 for no time.
  unsigned repeat = 0;
};

/// One output compared with what is expected.
struct CheckedOutput {
  std::string name;
  runtime::ElementType type;
  runtime::Dimensions sizes;
  Comparison comparison;
  double tolerance = 0;

  bool passed() const { return comparison.ulps <= tolerance; }
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

/// Calls `function` of `program` and, if there is one, its `reference`.
runtime::Expected<TrialResult> runTrial(Program &program, Program *reference,
                                        const runtime::Function &function,
                                        const TrialOptions &options,
                                        ArrayFiles &files);

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_TRIAL_H
