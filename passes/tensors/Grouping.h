//===- Grouping.h - Which ops become one kernel -----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Ops on row tensors form row groups. Two ops join one group when one uses the
// other's result and both have the same rows, or when both read the same row
// tensor; statistics aside, both go along one dimension then, or one along
// groups of the other's (dialect/Dimensions.h). No ops join that need each
// other's values through another group. A combination of all rows
// (`tile.reduce_rows`) ends a row group with one partial result for each
// program; a vector group combines the partial results and computes the ops on
// row vectors that follow. Row vectors that depend on no rows are computed in
// each group that reads them, and those that the function returns in a group of
// their own.
//
// A row group that reads a combination of all rows runs in a later round. Each
// op runs in the last round that its users allow, so that as little as possible
// runs before: of a mean loss, the count of the targets, not all ops that the
// loss shares with the count.
//
// Dynamic sizes of separate tensors are not known to agree, so ops that do not
// meet in a common tensor stay in separate groups even if their types are
// equal.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TENSORS_GROUPING_H
#define BASTILE_PASSES_TENSORS_GROUPING_H

#include "dialect/Dimensions.h"
#include "dialect/Tile.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace bastile {

/// The ops that become one kernel.
struct Group {
  /// The ops that the kernel computes, in the function's order. Ops on vectors
  /// and scalars, and ops that are cheaper to compute again than to store, may
  /// be in several groups.
  llvm::SetVector<mlir::Operation *> ops;
  /// The values that the kernel reads: arguments and outputs of other groups.
  llvm::SetVector<mlir::Value> inputs;
  /// Values of which the kernel needs nothing but sizes that an input has, too,
  /// each with the input.
  llvm::SmallVector<std::pair<mlir::Value, mlir::Value>, 0> sizeSources;
  /// The values that other groups read or the function returns.
  llvm::SetVector<mlir::Value> outputs;
  /// Of row groups: the combinations of all rows of which each program computes
  /// a partial result.
  llvm::SmallVector<tile::ReduceRowsOp> partials;
  /// Of vector groups: the combinations that the group finishes.
  llvm::SmallVector<tile::ReduceRowsOp, 1> combined;
};

/// Divides the ops of `func`, whose values have `dimensions`, into groups, or
/// reports why that cannot be.
llvm::FailureOr<llvm::SmallVector<Group>>
collectGroups(mlir::func::FuncOp func, const ValueDimensions &dimensions);

/// Where a kernel on rows reads several values that the kernel of a product
/// computes, such as a softmax and its powers, it computes them again of the
/// product, if that leaves fewer bytes in memory.
void recomputeFollowers(llvm::MutableArrayRef<Group> groups);

/// Gives each number of a row that the kernel of a product would leave, and
/// that is none of its columns, to a kernel on rows, if only a call knows how
/// many columns there are: of none, no program would be there to store it.
/// `owners` are the groups of `func`'s ops.
void separateNumbers(mlir::func::FuncOp func,
                     llvm::SmallVectorImpl<Group> &groups,
                     llvm::DenseMap<mlir::Operation *, size_t> &owners,
                     const ValueDimensions &dimensions);

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_GROUPING_H
