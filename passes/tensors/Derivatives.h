//===- Derivatives.h - The derivative of each primitive ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TENSORS_DERIVATIVES_H
#define BASTILE_PASSES_TENSORS_DERIVATIVES_H

#include "dialect/Expression.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace bastile {

/// The gradients of values, added up as they are found from results to
/// arguments. Each has the shape of its value and the precision that formulas
/// of the value are computed in.
class Gradients {
public:
  /// `active` are the values that depend on the arguments of the derivative.
  /// The gradients of other values are not computed.
  Gradients(mlir::ImplicitLocOpBuilder &builder,
            const llvm::DenseSet<mlir::Value> &active)
      : builder(builder), active(active) {}

  bool isActive(mlir::Value value) const { return active.contains(value); }
  const llvm::DenseSet<mlir::Value> &getActive() const { return active; }

  /// The gradient of `value` so far; null if nothing has been added.
  mlir::Value lookup(mlir::Value value) const { return sums.lookup(value); }
  void add(mlir::Value value, const tile::Expr &gradient);
  void add(mlir::Value value, mlir::Value gradient);

  mlir::ImplicitLocOpBuilder &getBuilder() const { return builder; }

private:
  mlir::ImplicitLocOpBuilder &builder;
  const llvm::DenseSet<mlir::Value> &active;
  llvm::DenseMap<mlir::Value, mlir::Value> sums;
};

/// Whether values of `type` have gradients.
bool isDifferentiable(mlir::Type type);

/// Whether a result of `op` depends on one of `values` other than by its sizes.
bool dependsOnAny(mlir::Operation *op,
                  const llvm::DenseSet<mlir::Value> &values);

/// Adds to the gradients of the active operands of `op` the terms that follow
/// from its results' gradients. Fails, with a diagnostic, if the op has no
/// derivative here.
llvm::LogicalResult propagateGradients(mlir::Operation *op,
                                       Gradients &gradients);

/// Adds the gradients of what `op` computes as a whole: the sigmoid, whose
/// numerator may have another factor, or the softplus. Returns false, and adds
/// nothing, if `op` is the last op of neither.
bool propagateThroughSigmoid(mlir::Operation *op, Gradients &gradients);

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_DERIVATIVES_H
