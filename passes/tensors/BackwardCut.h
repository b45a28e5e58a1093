//===- BackwardCut.h - What a backward function reads -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TENSORS_BACKWARDCUT_H
#define BASTILE_PASSES_TENSORS_BACKWARDCUT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace bastile {

struct StreamedOps;

/// Chooses the cut of a backward function: which arguments, results and
/// statistics of the forward it reads, so that the fewest bytes are moved. All
/// values between these and the gradients are computed again.
///
/// A statistic that waits for a reduction is always read: a few bytes a row
/// cost less than another sweep over the row before the gradients can begin. So
/// is a product, which takes more operations than its result has bytes, or what
/// it was rounded to.
class BackwardCut {
public:
  /// `backward` begins with a copy of the ops of `forward`, some of which
  /// are `streamedOps`.
  BackwardCut(mlir::func::FuncOp forward, mlir::func::FuncOp backward,
              const StreamedOps &streamedOps);

  /// Requires `value`, because the backward returns it.
  void require(mlir::Value value) { required.push_back(value); }
  /// Chooses the cut, once all values are required.
  void choose();

  /// Whether the backward reads `argument` of the copy.
  bool isRead(mlir::Value argument) const {
    return current.read.contains(argument);
  }
  /// The forward's results that the backward reads.
  llvm::ArrayRef<unsigned> getResults() const { return results; }
  /// The statistics and products that the forward has to return in addition.
  llvm::ArrayRef<mlir::Value> getStatistics() const {
    return current.statistics.getArrayRef();
  }
  /// The forward's value of which `value` is the copy.
  mlir::Value getForward(mlir::Value value) const {
    return originals.lookup(value);
  }

private:
  /// The values that the backward reads if it may read some of the results.
  struct Reading {
    llvm::DenseSet<mlir::Value> read;
    llvm::SetVector<mlir::Value> statistics;
    llvm::SetVector<mlir::Value> cutResults;
    int64_t bytes = 0;
  };

  Reading trace(const llvm::DenseSet<mlir::Value> &available) const;
  bool isSavedProduct(mlir::Value value) const;
  bool isSaved(mlir::Value value) const;
  void deriveStatistics(const llvm::DenseSet<mlir::Value> &available);

  mlir::func::FuncOp forward;
  /// Copies of the forward's values.
  llvm::DenseMap<mlir::Value, mlir::Value> originals;
  /// Copies of statistics that wait for a reduction.
  llvm::DenseSet<mlir::Value> reduced;
  /// Copies of products, and of what is computed of them element by element.
  llvm::DenseSet<mlir::Value> ofProducts;
  /// Copies of what the forward computes of a streamed factor for each column:
  /// its memory never holds them. Computing them again takes fewer operations
  /// than leaving and reading them would take time.
  llvm::DenseSet<mlir::Value> streamed;
  /// The forward's results, by their copies.
  llvm::MapVector<mlir::Value, unsigned> resultNumbers;
  llvm::SmallVector<mlir::Value> required;
  /// Statistics that the backward computes from others.
  llvm::DenseSet<mlir::Value> derived;
  Reading current;
  llvm::SmallVector<unsigned> results;
};

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_BACKWARDCUT_H
