//===- KernelShape.h - What scheduling needs of a kernel --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_SCHEDULE_KERNELSHAPE_H
#define BASTILE_PASSES_SCHEDULE_KERNELSHAPE_H

#include "dialect/Rows.h"

namespace bastile {

/// The rows that a kernel on whole tensors walks.
struct KernelShape {
  /// Elements of a row; statistics aside, all row tensors have as many, or a
  /// multiple if they are only taken apart or put together.
  int64_t rowLength = 1;
  /// Leading dimensions of the row tensors; 0 where there are none, but row
  /// vectors alone: a single row.
  int64_t leading = 0;
  /// The columns that an element of each group statistic stands for.
  llvm::SmallVector<int64_t> groups;
  /// Of each reduction of groups, their columns.
  llvm::SmallVector<int64_t> reducedGroups;
  /// The rows of the bands that are reduced, 0 if none are.
  int64_t band = 0;
  /// Bytes of the narrowest element in memory.
  int64_t minElementBytes = 8;
  bool usesFloat64 = false;
  /// How much is computed for each element, or each row, and how many ops of
  /// the host's processor that is, about, which computes functions by formulas.
  int64_t numOps = 0, numHostOps = 0;
  /// Whether a row is reduced, and how often one reduction waits for another.
  /// Those of groups do not count: they need no more than their columns.
  int64_t reductionDepth = 0;
  int64_t numReductions = 0;
  /// Where a row is walked tile by tile by several threads: how often, and the
  /// bytes of it that more than one walk reads.
  int64_t numSweeps = 1, rereadBytes = 0;
  /// Whether the first of these walks reads nothing but what all rows share.
  bool startsWithShared = false;
  /// Bytes that are loaded for each column of a row, those of what all rows
  /// share, and those that a reduction finds in registers and leaves there for
  /// what comes after it.
  int64_t loadedBytes = 0, sharedBytes = 0, keptBytes = 0;
  /// Whether rows are combined: each program its own, or one program all.
  bool hasPartialRows = false;
  /// How much of what each program combines are rows, not statistics.
  int64_t numLongPartialRows = 0;
  /// How often one program combines rows, all or those over some dimensions.
  int64_t numCombinedRows = 0;
  /// Where rows of their own are left: the leading dimensions over which rows
  /// are combined, and the sizes of those that are left.
  llvm::SmallVector<int64_t> combinedDimensions, keptSizes;
  /// Whether there may be nothing to do, which all programs are to notice.
  bool hasFactor = false;
  /// Whether what each column of a row needs is in that column of the others,
  /// and no number is carried from one row to the next.
  bool isAlongRows = false;

  /// Whether a program should walk many rows: what it leaves of them is long.
  bool combinesLongRows() const {
    return numLongPartialRows > 0 || numCombinedRows > 0;
  }

  /// Whether rows of `type` are what is left where rows are combined.
  bool isKept(mlir::RankedTensorType type) const {
    return !combinedDimensions.empty() && type.getRank() > 1 &&
           type.getShape().drop_back() == llvm::ArrayRef(keptSizes);
  }

  /// The fewest columns that are a whole number of groups of each size; 1 where
  /// there are none. They divide the row.
  int64_t getGroupColumns() const;

  static KernelShape get(tile::KernelOp kernel);

  /// The largest power of two of elements, up to `bytes` of the narrowest
  /// type, that divides the row and its groups.
  int64_t getVector(int64_t bytes) const;

  /// Whether vectors of so many elements do not divide the row, so that each
  /// row's begin ahead of it, where their addresses are aligned.
  bool isMisaligned(int64_t vector) const { return rowLength % vector != 0; }
  /// Whether they can: some of a row's vectors have to lie inside of it.
  bool allowsMisalignment(int64_t vector) const;
  /// Whether rows are walked in such vectors: they divide each row, or begin
  /// ahead of it, as they do on GPUs alone.
  bool takesVectors(int64_t vector, bool onHost) const {
    return !isMisaligned(vector) || (!onHost && allowsMisalignment(vector));
  }
  /// The columns that tiles of such vectors cover, wherever the rows begin.
  int64_t getSpan(int64_t vector) const {
    return isMisaligned(vector) ? rowLength + vector - 1 : rowLength;
  }
};

/// Whether `argument` of a kernel on tensors is read, rather than only there
/// for its sizes.
bool isRead(mlir::BlockArgument argument);

/// The maximum that `sum` takes off its row, if it adds up exp(x - max(x)): the
/// only sum that can be corrected when a larger maximum is found.
tile::ReduceOp getSubtractedMaximum(tile::ReduceOp sum);

/// Notes in `depths` that such sums are there as early as their maxima, as they
/// are where several threads walk a row. Ahead of any other use of `depths`.
void noteFollowingSums(tile::KernelOp kernel,
                       llvm::DenseMap<mlir::Value, int64_t> &depths);

/// The number of reductions of rows that `value` of a kernel on tensors waits
/// for. `depths` remembers what was found.
int64_t getReductionDepth(mlir::Value value,
                          llvm::DenseMap<mlir::Value, int64_t> &depths);

} // namespace bastile

#endif // BASTILE_PASSES_SCHEDULE_KERNELSHAPE_H
