//===- Compiler.h - From tensors to the code of kernels ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_COMPILER_H
#define BASTILE_COMPILER_H

#include "bastile/GradientOptions.h"
#include "bastile/KernelSelection.h"
#include "bastile/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/JSON.h"
#include <string>

namespace mlir {
class PassManager;
} // namespace mlir

namespace bastile {

/// How far to lower a module, in the order that it goes through.
enum class Level {
  Tile,
  Decomposed,
  Fused,
  Scheduled,
  Tiled,
  Distributed,
  NVVM
};

/// A level as command lines and Python call it, and what a module there has.
struct LevelName {
  Level level;
  const char *name, *description;
};

/// All levels, in their order.
inline constexpr LevelName levelNames[] = {
    {Level::Tile, "tile", "the input, parsed and verified"},
    {Level::Decomposed, "decomposed", "primitives on tensors"},
    {Level::Fused, "fused", "kernels on tensors"},
    {Level::Scheduled, "scheduled", "kernels with schedules"},
    {Level::Tiled, "tiled", "programs on tiles"},
    {Level::Distributed, "distributed", "tiles with layouts"},
    {Level::NVVM, "nvvm", "the LLVM and NVVM dialects"}};

struct CompileOptions {
  /// What to compile for; must be set.
  const Target *target = nullptr;
  /// Fields pinned in every kernel's schedule, as in "rows = 2, threads = 128",
  /// or in kernels by name, as in "f_kernel: rows = 2; g_kernel: rows = 1".
  std::string schedule;
  GradientOptions gradients = {};
  KernelSelection kernels = {};
  /// Keep the source's lines in the code, for profilers.
  bool lineInfo = true;
  /// Verify the module after each pass, to find mistakes of passes.
  bool verifyPasses = false;
  /// Called on each pass manager before it runs, for timing and printing.
  llvm::function_ref<llvm::LogicalResult(mlir::PassManager &)> configure = {};
};

/// Lowers `module` to `level`. If `metadata` is not null and the level lies
/// past `Tiled`, it receives the launch metadata (docs/metadata.md). Errors are
/// reported as diagnostics.
llvm::LogicalResult lower(mlir::ModuleOp module, Level level,
                          const CompileOptions &options,
                          llvm::json::Value *metadata = nullptr);

/// Whether `module` has programs on tiles. Before it is lowered, these are
/// written by hand.
bool hasPrograms(mlir::ModuleOp module);

/// Does what `lower` does first: lowers `module` to the programs on tiles that
/// code is asked for, as the pass `tile` makes them, and describes all of their
/// variants in `metadata`. Nothing has been simplified, as most variants are
/// never asked for.
llvm::LogicalResult lowerToPrograms(mlir::ModuleOp module,
                                    const CompileOptions &options,
                                    llvm::json::Value &metadata);

/// Does what `lower` does next: simplifies the programs of a module and lowers
/// them to `level`, which is `Tiled` or a later one. Programs that are written
/// by hand stay as they are until then.
llvm::LogicalResult lowerPrograms(mlir::ModuleOp module, Level level,
                                  const CompileOptions &options,
                                  bool areWritten);

/// Formats `metadata` as the comment block at the head of a PTX file.
std::string formatMetadataComment(const llvm::json::Value &metadata);

} // namespace bastile

#endif // BASTILE_COMPILER_H
