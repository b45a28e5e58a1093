//===- StreamedFactors.h - Factors that no memory holds ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The kernel of a product may compute the rows of its left factor itself, a
// part of the columns at a time, in place of reading what another kernel left:
// in softmax(q k^T) v, neither the scores nor their powers ever lie in memory.
// Such a factor is called streamed. Conditions:
//
// - One program has all columns of the product, so that nothing is computed
//   twice in a kernel.
// - Nothing but products with streamed factors needs the factor, or what it is
//   computed of, as a whole, unless a loop can leave that in memory: one along
//   the rows, of what waits for no reduction. Each kernel computes for itself
//   what its factors need.
// - The factor is computed element by element, of row statistics, and of
//   products whose own sums are short and go over no batch, as the loop over a
//   batch is around all that a kernel computes. Without such a product, rows in
//   memory are read fewer times by a kernel of their own.
// - A product among these is computed once: all reductions are complete after
//   one loop over the columns, as sums follow a maximum (FollowingSums.h).
//
// A product may sum over the rows of such a factor as well, as the gradients of
// the keys do: then the loop goes over the rows. No reduction along the rows is
// possible there.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ANALYSIS_STREAMEDFACTORS_H
#define BASTILE_PASSES_ANALYSIS_STREAMEDFACTORS_H

#include "bastile/Target.h"
#include "dialect/Dimensions.h"
#include "passes/analysis/FollowingSums.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace bastile {

class Rounds;

/// The products of a function whose left factors are streamed.
class StreamedFactors {
public:
  StreamedFactors(mlir::func::FuncOp func, const Rounds &rounds);

  using Ops = llvm::SetVector<mlir::Operation *>;
  /// Each such product with the ops on rows that its kernel computes for it:
  /// the factor's, and those on row statistics that follow from them.
  const llvm::MapVector<mlir::Operation *, Ops> &getProducts() const {
    return products;
  }
  /// Whether a product's kernel computes `op` for the product's factor, or what
  /// follows from its statistics.
  bool contains(mlir::Operation *op) const { return streamed.contains(op); }

private:
  bool isStreamed(tile::DotOp dot, const Ops &ops) const;
  bool fitsFactor(tile::DotOp dot, mlir::Operation *op) const;
  bool isReadEarlier(tile::DotOp dot, const Ops &ops) const;
  bool computesOnce(tile::DotOp dot, const Ops &ops) const;
  bool isNeededOutside(tile::DotOp dot, const Ops &ops) const;
  void addStatistics(mlir::Block &block);

  const Rounds &rounds;
  const FollowingSums following;
  llvm::MapVector<mlir::Operation *, Ops> products;
  llvm::DenseSet<mlir::Operation *> streamed;
};

/// The products of a function whose left factors are streamed, and the ops that
/// their kernels compute for them.
struct StreamedOps {
  llvm::DenseSet<mlir::Operation *> products, factors;
};

/// Those of `func`, also where gradients are still stopped.
StreamedOps findStreamedOps(mlir::func::FuncOp func);

/// Gives products of `func` that share ops of their streamed factors, but no
/// kernel of `target`, ops of their own.
void separateFactors(mlir::func::FuncOp func, const Target &target);

} // namespace bastile

#endif // BASTILE_PASSES_ANALYSIS_STREAMEDFACTORS_H
