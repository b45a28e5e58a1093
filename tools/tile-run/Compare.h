//===- Compare.h - Measuring errors ---------------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TOOLS_TILERUN_COMPARE_H
#define BASTILE_TOOLS_TILERUN_COMPARE_H

#include "Tensor.h"
#include <optional>

namespace bastile::run {

/// What the elements of a tensor should be, in row-major order.
struct Expectation {
  /// Of floats, or of integers.
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  /// How far off each may be, absolutely: infinity if it may be anything. Empty
  /// if all are exact.
  std::vector<double> errors;
};

/// The largest errors of a tensor.
struct Comparison {
  /// In units in the last place, and as a part of what is expected, anywhere.
  double ulps = 0, relative = 0;
  /// As a part of what is allowed, and where; -1 if no element has an error.
  double ofAllowed = 0;
  int64_t position = -1;
  /// What there is at that position; the error and what is allowed in units in
  /// the last place.
  double got = 0, expected = 0, error = 0, allowed = 0;
  /// How many elements may be anything.
  int64_t unbounded = 0;

  bool passed() const { return ofAllowed <= 1; }
};

/// Compares with as many elements expected. With a `tolerance`, that is what is
/// allowed, in units in the last place. The error of an integer is the
/// difference.
Comparison compare(const Tensor &actual, const Expectation &expected,
                   std::optional<double> tolerance = std::nullopt);

/// What is allowed for results of `type` of which only the number is known, in
/// units in the last place: one for 16 bits and narrower, where a rounding of
/// the exact result costs up to a half; 32 for the types that formulas are
/// computed in, where the exponential of a number in the tens alone costs as
/// much, that number being rounded. Integers are exact.
double getDefaultTolerance(runtime::ElementType type);

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_COMPARE_H
