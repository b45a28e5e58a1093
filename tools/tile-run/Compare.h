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

/// The expected elements of a tensor, in row-major order.
struct Expectation {
  /// The elements of a tensor of floats, or of integers.
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  /// How far off each element may be, absolutely: infinity if it may be
  /// anything. Empty if all elements are exact.
  std::vector<double> errors;
};

/// The largest errors of a tensor.
struct Comparison {
  /// The largest error of any element, in units in the last place, and as a
  /// part of the expected value.
  double ulps = 0, relative = 0;
  /// The largest error as a part of the allowed one, and its position; -1 if no
  /// element has an error.
  double ofAllowed = 0;
  int64_t position = -1;
  /// The element at that position, the expected one, and the error and the
  /// allowed error in units in the last place.
  double got = 0, expected = 0, error = 0, allowed = 0;
  /// How many elements may be anything.
  int64_t unbounded = 0;

  bool passed() const { return ofAllowed <= 1; }
};

/// Compares `actual` with as many expected elements. A `tolerance`, in units in
/// the last place, replaces the allowed errors. The error of an integer is the
/// difference.
Comparison compare(const Tensor &actual, const Expectation &expected,
                   std::optional<double> tolerance = std::nullopt);

/// The error allowed for results of `type` of which only the number is known,
/// in units in the last place. It is one for types of 16 bits and narrower,
/// where rounding the exact result costs up to a half. It is 32 for the types
/// that formulas compute in, where the exponential of a number in the tens
/// alone costs as much, as that number is rounded. Integers are exact.
double getDefaultTolerance(runtime::ElementType type);

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_COMPARE_H
