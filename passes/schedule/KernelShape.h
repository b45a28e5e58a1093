//===- KernelShape.h - What scheduling needs of a kernel --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_SCHEDULE_KERNELSHAPE_H
#define BASTILE_PASSES_SCHEDULE_KERNELSHAPE_H

#include "dialect/KernelSpace.h"
#include "mlir/Pass/AnalysisManager.h"
#include "passes/analysis/FollowingSums.h"

namespace bastile {

/// What schedules are chosen by, of a kernel on whole tensors: the rows that
/// its programs go through, and what is computed on them. As an analysis of the
/// kernel it is found once, by the first pass that asks.
struct KernelShape {
  KernelShape(tile::KernelOp kernel, const KernelSpace &space);
  KernelShape(tile::KernelOp kernel, mlir::AnalysisManager &analyses)
      : KernelShape(kernel,
                    analyses.getAnalysis<KernelSpace, tile::KernelOp>()) {}

  /// How many columns the kernel has, those of its space; 1 for none.
  int64_t rowLength = 1;
  /// Leading dimensions of the row tensors; 0 where the kernel has row vectors
  /// alone, which are a single row.
  int64_t leading = 0;
  /// The columns that an element of each group statistic stands for.
  llvm::SmallVector<int64_t> groups;
  /// The columns of a group, for each reduction of groups.
  llvm::SmallVector<int64_t> reducedGroups;
  /// The rows of a band where bands are reduced, otherwise 0.
  int64_t band = 0;
  /// Bytes of the narrowest element in memory.
  int64_t minElementBytes = 8;
  bool usesFloat64 = false;
  /// The ops that are computed for each element or row, and about how many ops
  /// of the host's processor these are, which computes functions by formulas.
  int64_t numOps = 0, numHostOps = 0;
  /// How many reductions of a row there are, and how many of them wait for each
  /// other. Reductions of groups do not count: they need only the columns of a
  /// tile.
  int64_t reductionDepth = 0;
  int64_t numReductions = 0;
  /// Where several threads sweep a row tile by tile: the number of sweeps, and
  /// the bytes of the row that more than one sweep reads.
  int64_t numSweeps = 1, rereadBytes = 0;
  /// The sums that such sweeps compute together with a maximum.
  FollowingSums following;
  /// Whether the first sweep reads nothing but what all rows share.
  bool startsWithShared = false;
  /// Bytes for each column of a row: those that are loaded of the row itself,
  /// those of what all rows share, and those of values that are computed before
  /// a reduction and stay in registers until they are used after it.
  int64_t loadedBytes = 0, sharedBytes = 0, keptBytes = 0;
  /// The most computed values of a column that are alive at once.
  int64_t numLiveValues = 0;
  /// Whether rows are combined, by each program its own or by one program all.
  bool hasPartialRows = false;
  /// How many of the partial results of each program are rows rather than
  /// statistics.
  int64_t numLongPartialRows = 0;
  /// How many combinations one program makes of all rows, or of the rows over
  /// some dimensions.
  int64_t numCombinedRows = 0;
  /// Where rows are combined over some leading dimensions: those dimensions,
  /// and what the kernel's space says of the dimensions of rows that are left.
  llvm::SmallVector<int64_t> combinedDimensions;
  llvm::SmallVector<mlir::Attribute> keptRows;
  /// Whether there may be nothing to do (a scaling by 1 in place), which every
  /// program finds out by itself.
  bool hasFactor = false;
  /// Whether each column of a row is computed from the same column of other
  /// rows, and no number is carried from one row to the next.
  bool isAlongRows = false;

  /// Whether a program should go through many rows, because the partial result
  /// that it leaves is a whole row.
  bool combinesLongRows() const {
    return numLongPartialRows > 0 || numCombinedRows > 0;
  }

  /// Elements of a row that a block of 512 threads keeps in registers with
  /// ease.
  static constexpr int64_t kMostElementsHeld = 16384;

  /// Whether a row of one tensor alone is loaded.
  bool loadsOneTensor() const { return loadedBytes <= minElementBytes; }

  /// Whether sweeps over a row find sums together with the maximum that they
  /// follow, for which threads that hold the row wait first.
  bool sweepsSaveReductions() const { return reductionDepth >= numSweeps; }

  /// The fewest columns that hold a whole number of groups of each size; 1
  /// where there are no groups. They divide the row.
  int64_t getGroupColumns() const;

  /// The largest power of two of elements, up to `bytes` of the narrowest
  /// type, that divides the row and its groups.
  int64_t getVector(int64_t bytes) const;

  /// The vectors that threads of a GPU move, of up to `bytes`.
  int64_t chooseVector(int64_t bytes) const;
  /// Whether a vector is no longer than a register.
  bool fitsRegister(int64_t vector) const {
    return vector * minElementBytes <= kRegisterBytes;
  }
  /// Whether several tensors of a row are moved in small pieces, by vectors
  /// that fit a register or that may stick out of the row. Then it is the
  /// instructions for these that count, and not the registers for what is held.
  bool isPiecemeal(int64_t vector) const {
    return !loadsOneTensor() && rowLength <= kMostElementsHeld &&
           (isMisaligned(vector) || fitsRegister(vector));
  }

  /// Whether rows are misaligned for vectors of so many elements: the vectors
  /// do not divide the row, so the first vector of a row begins ahead of the
  /// row, at an aligned address.
  bool isMisaligned(int64_t vector) const { return rowLength % vector != 0; }
  /// Whether rows may be misaligned for such vectors: some vectors have to lie
  /// inside of the row.
  bool allowsMisalignment(int64_t vector) const;
  /// Whether programs can go through rows in such vectors: the vectors divide
  /// the row or, on GPUs alone, the rows may be misaligned.
  bool takesVectors(int64_t vector, bool onHost) const {
    return !isMisaligned(vector) || (!onHost && allowsMisalignment(vector));
  }
  /// The columns that tiles of such vectors cover, whatever the misalignment of
  /// the rows.
  int64_t getSpan(int64_t vector) const {
    return isMisaligned(vector) ? rowLength + vector - 1 : rowLength;
  }

private:
  static constexpr int64_t kRegisterBytes = 4;
};

} // namespace bastile

#endif // BASTILE_PASSES_SCHEDULE_KERNELSHAPE_H
