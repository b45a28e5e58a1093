//===- TextCompiler.h - The compiler without MLIR's headers -----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The interface for bindings to other languages and for other build systems:
// text goes in, text and machine code come out, and a caller needs neither MLIR
// nor LLVM. Every function has a context of its own, so that any number of
// threads may compile at once.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEXTCOMPILER_H
#define BASTILE_TEXTCOMPILER_H

#include "bastile/GradientOptions.h"
#include "bastile/KernelSelection.h"
#include "bastile/runtime/Error.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bastile {

/// What to compile and how.
struct CompileRequest {
  /// The text of a module.
  std::string source;
  /// What messages call the source.
  std::string name = "source";
  /// A name that `Target::lookup` knows.
  std::string target;
  /// Fields pinned in every kernel's schedule, as in "rows = 2, threads = 128",
  /// or in kernels by name, as in "f_kernel: rows = 2; g_kernel: rows = 1".
  std::string schedule = {};
  GradientOptions gradients = {};
  KernelSelection kernels = {};
};

/// PTX, or an object of the host, and its metadata as JSON (docs/metadata.md).
struct CompiledText {
  std::string code;
  std::string metadata;
};

/// Compiles a module. An error holds the compiler's diagnostics, with the lines
/// of the source that they point to.
runtime::Expected<CompiledText> compileText(const CompileRequest &request);

/// JSON: what a module says as it stands, without being lowered. "functions"
/// has the name of each, and its "inputs" and "outputs", each with a name, an
/// element type and a shape, as metadata has those of inputs; "is_scheduled"
/// says whether the source pins a schedule; and "key" is equal for modules that
/// the same schedules suit (lib/driver/StructuralKey.h). Messages call the
/// source `name`.
runtime::Expected<std::string> describeSource(const std::string &source,
                                              const std::string &name);

/// The metadata alone, without generating code.
runtime::Expected<std::string> describeText(const CompileRequest &request);

/// JSON that says, for each function by name, how several calls, each with some
/// of the rows, make up each of its results: "rows", "same", "add", "max" or
/// "min", in a list; or null where rows cannot be parted.
runtime::Expected<std::string> describeSharing(const CompileRequest &request);

/// The module lowered to the level of this name: "tile", "decomposed", "fused",
/// "scheduled", "tiled", "distributed", "nvvm" or "llvm".
runtime::Expected<std::string> lowerText(const CompileRequest &request,
                                         std::string_view level);

/// What a kernel of a module moves and how it is scheduled (see KernelCost).
struct KernelReport {
  std::string name;
  std::string schedule;
  int64_t bytesPerRow = 0;
  int64_t bytesShared = 0;
  int64_t operationsPerRow = 0;
  int64_t sweeps = 1;
  /// The least time that the bytes take on the target, in seconds.
  double seconds = 0;
};

/// The kernels of a module, for a call with `rows` rows.
runtime::Expected<std::vector<KernelReport>>
explainText(const CompileRequest &request, int64_t rows);

/// A schedule worth timing (see ScheduleSpace.h).
struct ScheduleCandidate {
  /// The text that pins it; empty for the heuristic's own choice.
  std::string pins;
  /// The complete schedule.
  std::string fields;
};

/// The schedules worth timing of one launch, the heuristic's first.
struct LaunchCandidates {
  /// The function that launches it.
  std::string function;
  std::string kernel;
  std::vector<ScheduleCandidate> candidates;
};

/// The candidates of every launch of a module. The request must pin no
/// schedule; the pins of one candidate for each launch, joined by ';', are the
/// schedule to compile with.
runtime::Expected<std::vector<LaunchCandidates>>
enumerateSchedules(const CompileRequest &request);

/// An operand of a model op; one without a type is optional, and left out.
struct OperandType {
  std::string name;
  /// As in "tensor<?x2880xbf16>".
  std::optional<std::string> type;
};

/// The text of a module with one function, called like the op (without its
/// dialect), that applies model op `op` to its arguments. `attributes` are
/// names and values as in MLIR's generic form, `results` the types of the
/// results where those do not follow from the operands. The function returns
/// the results at the places in `returned`, or all if it is empty. Fails where
/// the op's verifier does.
runtime::Expected<std::string>
buildOpText(const std::string &op, const std::vector<OperandType> &operands,
            const std::vector<std::pair<std::string, std::string>> &attributes,
            const std::vector<std::string> &results = {},
            const std::vector<unsigned> &returned = {});

/// The names of all targets.
std::vector<std::string> getTargetNames();

/// The name of the best target for a GPU of `computeCapability` (90 for 9.0);
/// nothing if there is none.
std::optional<std::string> findTarget(int computeCapability);

/// The processor's name and features, on which host code depends.
std::string describeHost();

/// The version of the LLVM that generates code.
std::string getLlvmVersion();

/// Machine code of the host, loaded into this process; it is unloaded with the
/// object.
class HostCode {
public:
  /// Loads an object that `compileText` made.
  static runtime::Expected<std::shared_ptr<const HostCode>>
  load(const std::string &object);
  virtual ~HostCode();

  /// The address of a function; null if there is none of this name.
  virtual void *find(const std::string &name) const = 0;
};

} // namespace bastile

#endif // BASTILE_TEXTCOMPILER_H
