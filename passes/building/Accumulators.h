//===- Accumulators.h - What a loop carries of its reductions ---*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_BUILDING_ACCUMULATORS_H
#define BASTILE_PASSES_BUILDING_ACCUMULATORS_H

#include "mlir/IR/ValueRange.h"
#include "passes/analysis/FollowingSums.h"
#include <optional>

namespace bastile {

/// The order in which a loop carries the accumulators of ops that reduce: one
/// for each op, then, for each sum whose terms may all be left out, one that
/// says how many it has.
template <typename OpT>
class Accumulators {
public:
  /// Adds `op`, which is `sum` if it follows a maximum, else null.
  void add(OpT op, const FollowingSum *sum) {
    ops.push_back(op);
    if (sum && sum->mayBeEmpty())
      counted.push_back(op);
  }

  bool empty() const { return ops.empty(); }
  llvm::ArrayRef<OpT> getOps() const { return ops; }
  llvm::ArrayRef<OpT> getCounted() const { return counted; }

  /// The number of the accumulator of `result`, which one of the ops computes.
  size_t getNumber(mlir::Value result) const {
    auto computes = [&](OpT op) { return op == result.getDefiningOp(); };
    return llvm::find_if(ops, computes) - ops.begin();
  }
  /// The number of what counts the terms of `op`; none if it always has some.
  std::optional<size_t> getCountNumber(OpT op) const {
    const auto *it = llvm::find(counted, op);
    if (it == counted.end())
      return std::nullopt;
    return ops.size() + (it - counted.begin());
  }
  /// What counts the terms of `op` among the values that the loop carries; null
  /// if it always has some.
  mlir::Value getCount(OpT op, mlir::ValueRange carried) const {
    std::optional<size_t> number = getCountNumber(op);
    return number ? carried[*number] : mlir::Value();
  }

private:
  llvm::SmallVector<OpT> ops, counted;
};

} // namespace bastile

#endif // BASTILE_PASSES_BUILDING_ACCUMULATORS_H
