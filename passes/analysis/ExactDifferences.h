//===- ExactDifferences.h - Where a product is to be rounded ----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ANALYSIS_EXACTDIFFERENCES_H
#define BASTILE_PASSES_ANALYSIS_EXACTDIFFERENCES_H

#include "mlir/IR/Operation.h"

namespace bastile {

/// Marks the sums and differences in `root` of a number and one that is chosen
/// from such numbers, as the maximum of a row is: p - max(p) is 0 for one
/// element and has one sign. If p is a product, contracting it would leave its
/// rounding error in place of 0: the root of the difference is NaN then, and
/// the exponential of one of large numbers infinite.
void markExactDifferences(mlir::Operation *root);

/// Whether the operands of `op`, a sum or difference, are to be rounded.
bool isExactDifference(mlir::Operation *op);
void setExactDifference(mlir::Operation *op);

} // namespace bastile

#endif // BASTILE_PASSES_ANALYSIS_EXACTDIFFERENCES_H
