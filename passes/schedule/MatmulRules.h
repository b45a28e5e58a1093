//===- MatmulRules.h - The schedules of products ----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_SCHEDULE_MATMULRULES_H
#define BASTILE_PASSES_SCHEDULE_MATMULRULES_H

#include "bastile/Target.h"
#include "passes/schedule/KernelSchedule.h"

namespace bastile {

/// The fields of a `#tile.matmul` while they are chosen; 0 for those that are
/// not yet.
struct MatmulFields {
  int64_t rows = 0, columns = 0, depth = 0, threads = 0, vector = 0, stages = 0;

  MatmulFields() = default;
  explicit MatmulFields(tile::MatmulAttr pinned)
      : rows(pinned.getRows()), columns(pinned.getColumns()),
        depth(pinned.getDepth()), threads(pinned.getThreads()),
        vector(pinned.getVector()), stages(pinned.getStages()) {}

  tile::MatmulAttr getAttr(mlir::MLIRContext *context) const {
    return tile::MatmulAttr::get(context, rows, columns, depth, threads, vector,
                                 stages);
  }

  /// Whether tensor cores multiply parts of both factors in shared memory.
  bool isStaged() const { return stages > 1; }
  /// How many sums of the product each thread holds.
  int64_t getSumsPerThread() const { return rows * columns / threads; }
};

/// What the heuristic chooses for a kernel that computes `dot`, where nothing
/// is pinned.
MatmulFields chooseMatmul(tile::DotOp dot, const Target &target);

/// The schedule that has the fields of `pinned` that are not 0. Each of the
/// others is what the heuristic chooses, or what it has to be beside those that
/// are pinned.
MatmulFields completeMatmul(MatmulFields pinned, tile::DotOp dot,
                            const Target &target);

/// Whether `target` can run `dot` by complete `fields`; if not, `error` begins
/// the diagnostic that says why.
mlir::LogicalResult
verifyMatmul(llvm::function_ref<mlir::InFlightDiagnostic()> error,
             const MatmulFields &fields, tile::DotOp dot, const Target &target);

/// Bytes of the parts of both factors that a block has in shared memory.
int64_t getStagedBytes(const MatmulFields &fields, tile::DotOp dot);

/// Complete schedules of `kernel` worth timing: the heuristic's choice, then
/// its neighbours, which differ in one field, and theirs.
ScheduleCandidates getMatmulCandidates(tile::KernelOp kernel,
                                       const Target &target);

} // namespace bastile

#endif // BASTILE_PASSES_SCHEDULE_MATMULRULES_H
