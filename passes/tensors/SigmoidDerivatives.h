//===- SigmoidDerivatives.h - Of the sigmoid and the softplus ---*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The sigmoid and the softplus of x are formulas of e = exp(-|x|), which choose
// by the sign of x so that nothing overflows (`dialect/Expression.cpp`):
//
//   sigmoid(x)  = (x >= 0 ? 1 : e) / (1 + e)
//   softplus(x) = max(x, 0) + log(1 + e)
//
// Step by step, each choice has a derivative of its own, and the sum of them
// all is a dozen ops. As a whole:
//
//   sigmoid'(x)  = e / (1 + e)^2
//   softplus'(x) = sigmoid(x)
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TENSORS_SIGMOIDDERIVATIVES_H
#define BASTILE_PASSES_TENSORS_SIGMOIDDERIVATIVES_H

#include "passes/tensors/Derivatives.h"

namespace bastile {

/// Adds the gradients of what `op` computes as a whole: the sigmoid, whose
/// numerator may have another factor, or the softplus. Returns false, and adds
/// nothing, if `op` is the last op of neither.
bool propagateThroughSigmoid(mlir::Operation *op, Gradients &gradients);

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_SIGMOIDDERIVATIVES_H
