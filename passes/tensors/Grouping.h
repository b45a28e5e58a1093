//===- Grouping.h - Which ops become one kernel -----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Ops on row tensors form row groups; two ops are of one group when one uses
// the other's result and both walk the same rows, or when both read the same
// row tensor. What combines all rows (`tile.reduce_rows`) ends a row group with
// one partial result a program; a vector group combines these and computes what
// follows on row vectors. Row vectors that depend on no rows are computed where
// they are read, and those that are returned in a group of their own.
//
// A row group that reads such a vector runs after it. Each op runs as late as
// its users allow, so that as little as possible runs before: the count of a
// loss's targets, say, and not all that the loss shares with it.
//
// Dynamic sizes of separate tensors are not known to agree, so ops that do not
// meet in a common tensor stay apart even if their types are equal.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TENSORS_GROUPING_H
#define BASTILE_PASSES_TENSORS_GROUPING_H

#include "dialect/Tile.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace bastile {

/// One kernel in the making.
struct Group {
  /// Ops to be computed, in the function's order; those on vectors and scalars
  /// and what is cheaper to compute again than to store may be in several.
  llvm::SetVector<mlir::Operation *> ops;
  /// What it reads: arguments and outputs of other groups.
  llvm::SetVector<mlir::Value> inputs;
  /// What others read or the function returns.
  llvm::SetVector<mlir::Value> outputs;
  /// Row groups: combinations of all rows, of which the group computes one row
  /// for each program.
  llvm::SmallVector<tile::ReduceRowsOp> partials;
  /// Vector groups: the combinations that the group finishes.
  llvm::SmallVector<tile::ReduceRowsOp> combined;
};

/// Divides the ops of `func` into groups, or reports why that cannot be.
llvm::FailureOr<llvm::SmallVector<Group>>
collectGroups(mlir::func::FuncOp func);

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_GROUPING_H
