//===- MaskConditions.h - Which elements a mask leaves ----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A mask is a select on comparisons of positions. What it hides adds nothing to
// the sums of a loop over k:
//
//   x = select(k <= r, s, -inf)      a maximum of x sees no x of k > r,
//   e = exp(x - max(x))              and e is 0 there, so that no sum or
//   product
//                                    of e sees it either
//
// Where all elements of a tile are hidden, the loop leaves it out; where none
// is, the tile of s is that of x. A backward reads max(x) from memory; then e
// is a power of minus infinity less minus infinity, and not 0, in rows of which
// the mask hides all elements, unless the maximum is known to be a number
// (LeastValues.h).
//
// Numbers of rows may be those of the row in memory, as where select hides what
// is ahead of first[r].
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ANALYSIS_MASKCONDITIONS_H
#define BASTILE_PASSES_ANALYSIS_MASKCONDITIONS_H

#include "dialect/KernelSpace.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/analysis/FollowingSums.h"

namespace bastile {

/// That row * r + column * k + constant, with a multiple of each of `numbers`,
/// is not negative, for the element of row r that has the streamed number k.
struct MaskCondition {
  int64_t row = 0, column = 0, constant = 0;
  /// Integers of the call, of the matrix, or of the row or column, in memory,
  /// and what they are multiplied by.
  llvm::SmallVector<std::pair<mlir::BlockArgument, int64_t>, 1> numbers = {};

  bool operator==(const MaskCondition &other) const {
    return row == other.row && column == other.column &&
           constant == other.constant && numbers == other.numbers;
  }
  /// Adds `factor` times what `other` says is not negative.
  void add(const MaskCondition &other, int64_t factor);
};

/// Whether `number`, of a condition, is one of each row or column.
bool isOfRow(mlir::BlockArgument number);
bool hasNumbersOfRows(const MaskCondition &condition);

using MaskConditions = llvm::SmallVector<MaskCondition, 4>;

/// A select that hides elements: elsewhere it has those of `shown`.
struct Mask {
  mlir::Value shown;
  /// Where all of these hold, the element is shown.
  MaskConditions conditions;

  /// The mask that `select`, of a left factor, is; none if no linear conditions
  /// of positions and of numbers of rows show elements.
  static std::optional<Mask> get(mlir::arith::SelectOp select,
                                 const KernelSpace &space);
};

/// What is known of the elements that a loop over k visits.
struct Visited {
  /// What holds for every element that adds something to a sum of the loop.
  MaskConditions conditions;
  /// Masks by rows and columns of the left factor, which tells where elements
  /// add nothing only as long as each mask shows some element of every row.
  llvm::SmallVector<MaskConditions, 1> masks;
};

/// What holds in a loop over k of `sums`, reductions and products.
Visited findVisited(llvm::ArrayRef<mlir::Operation *> sums,
                    const FollowingSums &following, const KernelSpace &space);

/// What holds in the only loop over k of a kernel whose body is `body`.
Visited findVisited(mlir::Block &body, const KernelSpace &space);

} // namespace bastile

#endif // BASTILE_PASSES_ANALYSIS_MASKCONDITIONS_H
