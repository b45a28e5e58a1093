//===- LeastValues.h - What values are above --------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A row of which a mask hides all elements has the maximum minus infinity and
// the sum of powers 0, unless both have a term beside the elements:
//
//   m = max(max(x), c)                     is above minus infinity,
//   l = sum(exp(x - m)) + exp(c - m)       is above 0: a term has exponent m
//   l = sum(exp(x - m)) + c                is above 0 where c is
//
// So a kernel that reads m and l knows what becomes of hidden elements: the
// power of minus infinity less m is 0, and so is 0 / l.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ANALYSIS_LEASTVALUES_H
#define BASTILE_PASSES_ANALYSIS_LEASTVALUES_H

#include "mlir/IR/Value.h"
#include <optional>

namespace bastile {

/// A number that each element of `value`, a tensor of floats, is above, unless
/// the element is NaN; none if no such number is found.
std::optional<double> findLeast(mlir::Value value);

/// Whether `value` is a power, or a sum of powers along rows, or a number of at
/// least 0.
bool isNeverNegative(mlir::Value value);

} // namespace bastile

#endif // BASTILE_PASSES_ANALYSIS_LEASTVALUES_H
