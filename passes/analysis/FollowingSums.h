//===- FollowingSums.h - Sums that follow a maximum -------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Where several threads sweep a row tile by tile, one sweep finds a maximum m
// and sums that are linear in exp(x - m): each thread adds up terms relative to
// the largest x so far, and scales its sum when it meets a larger one. Such a
// sum follows m. Its terms are exp(x - m), multiplied by numbers or divided by
// them, added, subtracted, and left out by conditions, where
//
// - x is what m is the maximum of, and m may be the larger of that maximum and
//   of a number of the row, such as the logit of a sink;
// - the numbers and conditions, the coefficients, do not wait for m;
// - all terms may be divided by one number l, which leaves the sum: l is at
//   least the sum of exp(x - m) over the same x, so that no term is larger than
//   its coefficient. exp(x - m - log(l)) and exp(x - (m + log(l))) are
//   exp(x - m) / l.
//
// A product sums such terms as well, those of its left factor, each multiplied
// by an element of its right one: softmax(x) v follows the maximum of x.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ANALYSIS_FOLLOWINGSUMS_H
#define BASTILE_PASSES_ANALYSIS_FOLLOWINGSUMS_H

#include "dialect/Tile.h"
#include "llvm/ADT/MapVector.h"

namespace bastile {

/// A condition of a select, and whether what is meant is the value for true.
struct Branch {
  mlir::Value condition;
  bool isTrue;

  bool operator==(const Branch &other) const {
    return condition == other.condition && isTrue == other.isTrue;
  }
};

/// One exp(x - m) in the terms of a sum.
struct Power {
  mlir::Value result;
  /// What stands for x.
  mlir::Value exponent;
  /// The broadcast that is subtracted: of m or, where the power is divided by
  /// l, of m + log(l).
  mlir::Value subtracted;
  /// The broadcast of log(l), where that is subtracted for itself; else null.
  mlir::Value logarithm;
  /// Whether the power is divided by l through its exponent.
  bool isDivided = false;
  /// The power counts where all of these hold, and is 0 elsewhere.
  llvm::SmallVector<Branch, 2> branches;
};

/// What is known of a sum that follows a maximum.
struct FollowingSum {
  /// x and its maximum, and m, a statistic: the maximum or, with a number of
  /// the row, the larger of the two. Where no power counts, it may be a
  /// constant.
  mlir::Value exponent, maximum, subtracted;
  /// The statistic l, null if there is none, and the broadcasts of it and of
  /// its reciprocal in the terms.
  mlir::Value divisor;
  llvm::SmallVector<mlir::Value, 2> divisors, reciprocals;
  llvm::SmallVector<Power, 2> powers;
  /// Whether terms are anything but powers that are added, or left out.
  bool hasCoefficients = false;
  /// Whether m is another number as long as the maximum is so small that all
  /// powers are 0: it may be smaller later.
  bool mayDecrease = false;
  /// Whether the sum is that of exp(x - max(x)), and nothing else.
  bool isPlain = false;

  /// Whether some select stands in what l divides: terms of 0 are divided, too.
  bool dividesZeros = false;

  /// Whether a row's powers may all be left out: the sum is not that of powers
  /// then, which need not be numbers.
  bool mayBeEmpty() const {
    return llvm::none_of(
        powers, [](const Power &power) { return power.branches.empty(); });
  }
};

/// How many reductions each value of a kernel on tensors waits for. Where loops
/// sweep rows, a reduction at a time, that is the first sweep that can compute
/// the value, counted from 0.
class ReductionDepths {
public:
  /// Counts reductions of rows, products of computed factors among them.
  ReductionDepths();
  /// Counts ops of which `isReduction` is true.
  explicit ReductionDepths(bool (*isReduction)(mlir::Operation *))
      : isReduction(isReduction) {}

  int64_t get(mlir::Value value);
  /// The sweep that computes `reduction`.
  int64_t getSweep(mlir::Operation *reduction) {
    return get(reduction->getResult(0)) - 1;
  }

  /// Has `sum` wait for no more reductions than `maximum`, which it follows.
  void follow(mlir::Operation *sum, mlir::Value maximum) {
    depths[sum->getResult(0)] = get(maximum);
  }

private:
  bool (*isReduction)(mlir::Operation *);
  llvm::DenseMap<mlir::Value, int64_t> depths;
};

/// The sums among ops on tensors, reductions and products, that follow a
/// maximum.
class FollowingSums {
public:
  FollowingSums() = default;
  explicit FollowingSums(mlir::Block &block);

  /// What is known of `sum`; null if it follows no maximum.
  const FollowingSum *lookup(mlir::Operation *sum) const {
    const auto *it = sums.find(sum);
    return it == sums.end() ? nullptr : &it->second;
  }
  bool areAllPlain() const;
  /// Leaves out all sums but those of exp(x - max(x)).
  void keepPlain();

  /// The depths of values where these sums wait for no more reductions than
  /// the maximum that each of them follows.
  ReductionDepths getDepths() const;

private:
  llvm::MapVector<mlir::Operation *, FollowingSum> sums;
};

/// The maximum that `sum` subtracts from its row, if it adds up exp(x - max(x))
/// and nothing else.
tile::ReduceOp getSubtractedMaximum(tile::ReduceOp sum);

} // namespace bastile

#endif // BASTILE_PASSES_ANALYSIS_FOLLOWINGSUMS_H
