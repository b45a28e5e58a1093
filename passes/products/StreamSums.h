//===- StreamSums.h - What a loop over k adds up ----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Reductions of streamed rows and products of them have accumulators that the
// loop over k carries. One that follows a maximum (FollowingSums.h) is relative
// to the maximum so far: in each step, it is scaled by exp(before - now), and
// what the step adds is relative to the maximum that includes the step (Milakov
// and Gimelshein, "Online normalizer calculation for softmax", 2018).
//
// Multiplying accumulators of products in each step takes instructions that the
// step's powers wait for, although the maximum hardly grows behind the first
// steps. So where a warp holds whole rows of many columns, its sums stay
// relative to an earlier maximum, their reference, until some row's maximum is
// over 2^8 as much: terms are then at most 2^8, which floats hold as exactly as
// terms of at most 1. The sums are made relative to the maximum behind the
// loop.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PRODUCTS_STREAMSUMS_H
#define BASTILE_PASSES_PRODUCTS_STREAMSUMS_H

#include "passes/building/Accumulators.h"
#include "passes/products/SpaceEmitter.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace bastile {

/// A product of a step of the loop.
struct StepProduct {
  tile::DotOp dot;
  /// The tile of a streamed left factor, null for one in memory, and whether
  /// its elements beyond the end of k are to be 0 yet (`mask`).
  mlir::Value left;
  bool hasEnd = false;
  /// What the steps before have added up, and the number of each row that makes
  /// it relative to what this step's terms are; null if it follows no maximum.
  /// If `isScaled` is there, the numbers are 1 where it is false.
  mlir::Value before, factor, isScaled;
  /// The accumulators behind this step that came ahead of the product.
  mlir::ValueRange done;
};

class StreamSums {
public:
  /// Returns the accumulator of a product behind a step.
  using AddProducts =
      llvm::function_ref<mlir::Value(const StepProduct &product)>;

  /// `isOneStep` says that the loop makes one step.
  StreamSums(mlir::ImplicitLocOpBuilder &builder, SpaceEmitter &emitter,
             const FollowingSums &following, bool isOneStep = false)
      : builder(builder), emitter(emitter), following(following),
        isOneStep(isOneStep) {}

  /// Adds an accumulator for `op`, a reduction or product.
  void add(mlir::Operation *op) { accumulators.add(op, following.lookup(op)); }
  llvm::ArrayRef<mlir::Operation *> getOps() const {
    return accumulators.getOps();
  }

  llvm::SmallVector<mlir::Value> createInitial();
  /// The accumulators behind a step of the loop that began with `before`.
  llvm::SmallVector<mlir::Value> combine(mlir::ValueRange before,
                                         AddProducts addProducts);
  /// `sum`, which is relative to the step before `product`, relative to its
  /// own.
  mlir::Value rescale(const StepProduct &product, mlir::Value sum);
  /// `left`, the left factor of `product` or what that was rounded to, without
  /// elements beyond the end of k, and with `masksRows` without those beyond
  /// the end of m: a product that sums over the tile's rows reads these as
  /// well. A rounded one takes half of the registers: what it is rounded from
  /// may be needed as it is.
  mlir::Value mask(const StepProduct &product, mlir::Value left,
                   bool masksRows = false) {
    return product.hasEnd || masksRows
               ? emitter.maskEnd(left, tile::ReduceKind::Add, masksRows)
               : left;
  }
  /// Makes what the accumulators were behind the loop the tiles of the ops.
  void finish(mlir::ValueRange totals);

private:
  /// What sums that follow one maximum have in common in a step: the number
  /// that terms are relative to, and the factor that makes earlier ones so.
  struct Step {
    mlir::Value subtracted, base, scale;
    /// The base in units of log 2, if powers are those of 2; else null.
    mlir::Value exponent;
    /// Whether the base is another one than in the step before, if it may stay
    /// the same while the maximum grows; else null.
    mlir::Value isScaled;
    /// The powers that have a tile, which several sums may have in common.
    llvm::SmallDenseSet<mlir::Value> powers;
  };

  bool takesAnyScale(mlir::Value subtracted) const;
  bool lags(const FollowingSum &sum) const;
  std::optional<size_t> findReference(mlir::Value subtracted) const;
  Step createStep(const FollowingSum &sum, mlir::ValueRange before,
                  mlir::ValueRange after);
  Step createLaggingStep(const FollowingSum &sum, mlir::Value reference,
                         mlir::Value maximum);
  mlir::RankedTensorType getResultType(mlir::Operation *op) const;
  mlir::RankedTensorType getAccumulatorType(mlir::Operation *op) const;
  Step &getStep(const FollowingSum &sum, mlir::ValueRange before,
                mlir::ValueRange after);
  void mapPower(const Power &power, Step &step);
  void mapTerms(const FollowingSum &sum, Step &step);
  mlir::Value emitTerms(mlir::Operation *op);
  mlir::Value emitCount(const FollowingSum &sum);
  mlir::Value finishFollowing(const FollowingSum &sum, mlir::Value total,
                              mlir::Value count, mlir::Value reference);
  mlir::Value scale(mlir::Value tile, mlir::Value row);
  mlir::Value splat(mlir::Type type, double number);
  mlir::Value isEqual(mlir::Value tile, double number);

  mlir::ImplicitLocOpBuilder &builder;
  SpaceEmitter &emitter;
  const FollowingSums &following;
  const bool isOneStep;
  Accumulators<mlir::Operation *> accumulators;
  /// What the powers of sums subtract that lag behind it. Behind the other
  /// accumulators, the loop carries the reference of each in units of log 2.
  llvm::SmallSetVector<mlir::Value, 1> lagging;
  llvm::SmallVector<Step> steps;
};

} // namespace bastile

#endif // BASTILE_PASSES_PRODUCTS_STREAMSUMS_H
