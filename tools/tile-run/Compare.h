//===- Compare.h - Measuring errors ---------------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TOOLS_TILERUN_COMPARE_H
#define BASTILE_TOOLS_TILERUN_COMPARE_H

#include "Tensor.h"
namespace bastile::run {

/// The largest errors of a tensor.
struct Comparison {
  /// In units in the last place, and where; -1 if no element has an error.
  double ulps = 0;
  int64_t position = -1;
  double got = 0, expected = 0;
  /// As a part of what is expected, anywhere.
  double relative = 0;
};

/// Compares with `expected`, of the same shape and of float64 or the same type.
/// The error of an integer is the difference.
Comparison compare(const Tensor &actual, const Tensor &expected);

/// What is allowed by default for results of `type`, in units in the last
/// place: one for 16 bits and narrower, where a rounding of the exact result
/// costs up to a half; 32 for the types that formulas are computed in, where
/// the exponential of a number in the tens alone costs as much, that number
/// being rounded. Integers are exact.
double getDefaultTolerance(runtime::ElementType type);

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_COMPARE_H
