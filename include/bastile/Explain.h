//===- Explain.h - What kernels cost ----------------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_EXPLAIN_H
#define BASTILE_EXPLAIN_H

#include "bastile/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>
#include <vector>

namespace bastile {

/// What one kernel moves and computes, and how it is scheduled.
struct KernelCost {
  std::string name;
  /// The kernels of other row spaces that run in the same launch. Their costs
  /// are part of this one, as though each row space had as many rows.
  std::vector<std::string> merged;
  std::string schedule;
  /// Bytes read and written for each row, and bytes that do not depend on rows.
  int64_t bytesPerRow = 0;
  int64_t bytesShared = 0;
  /// Arithmetic and math ops for each row.
  int64_t operationsPerRow = 0;
  /// How often a program reads a row: once, or in each of several sweeps.
  int64_t sweeps = 1;
  /// Bytes of tiles that a block keeps in shared memory.
  int64_t keptBytes = 0;

  /// The seconds that moving the bytes of `rows` rows takes at the target's
  /// bandwidth: a lower bound for the kernel.
  double getSeconds(int64_t rows, const Target &target) const;
};

/// The costs of a module's kernels in a call of `rows` rows on `target`, launch
/// by launch; `scheduled` and `tiled` are the module lowered to
/// `Level::Scheduled` and `Level::Tiled`. A partial result has a row for each
/// program that runs.
std::vector<KernelCost> getKernelCosts(mlir::ModuleOp scheduled,
                                       mlir::ModuleOp tiled,
                                       const Target &target, int64_t rows);

} // namespace bastile

#endif // BASTILE_EXPLAIN_H
