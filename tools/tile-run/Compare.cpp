//===- Compare.cpp - Measuring errors
//-----------------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Compare.h"

#include "bastile/runtime/HostTypes.h"
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <vector>

using namespace bastile;
using namespace bastile::run;

static double getRelativeError(double got, double expected) {
  if (got == expected || (std::isnan(got) && std::isnan(expected)))
    return 0;
  double error = std::fabs(got - expected) / std::fabs(expected);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

/// Keeps what is worst of an element with an error.
static void record(Comparison &result, size_t position, double ulps, double got,
                   double expected) {
  result.relative = std::max(result.relative, getRelativeError(got, expected));
  if (ulps <= result.ulps)
    return;
  result.ulps = ulps;
  result.position = static_cast<int64_t>(position);
  result.got = got;
  result.expected = expected;
}

static Comparison compareIntegers(const Tensor &actual,
                                  const Tensor &expected) {
  const std::vector<int64_t> values = actual.getIntegers();
  const std::vector<int64_t> wanted = expected.getIntegers();
  Comparison result;
  for (size_t i = 0; i != values.size(); ++i) {
    const auto [least, most] = std::minmax(values[i], wanted[i]);
    // The difference may need all 64 bits.
    const uint64_t difference =
        static_cast<uint64_t>(most) - static_cast<uint64_t>(least);
    if (difference != 0)
      record(result, i, static_cast<double>(difference),
             static_cast<double>(values[i]), static_cast<double>(wanted[i]));
  }
  return result;
}

Comparison run::compare(const Tensor &actual, const Tensor &expected) {
  assert(actual.sizes() == expected.sizes() && "shapes were checked");
  if (!runtime::isFloat(actual.type()) && expected.type() == actual.type())
    return compareIntegers(actual, expected);
  const std::vector<double> numbers = actual.getNumbers();
  const std::vector<double> wanted = expected.getNumbers();
  // A unit is at least this part of a number, so that most elements are seen
  // to be no worse than the worst so far without finding their unit.
  const double leastUnit = runtime::ulp(actual.type(), 1.0) / 2;
  Comparison result;
  for (size_t i = 0; i != numbers.size(); ++i) {
    const double got = numbers[i], want = wanted[i];
    if (std::fabs(got - want) <= result.ulps * leastUnit * std::fabs(want) &&
        std::fabs(got - want) <= result.relative * std::fabs(want))
      continue;
    const double ulps = runtime::ulpDistance(actual.type(), got, want);
    // An overflow to infinity that the type demands is no error.
    if (ulps != 0)
      record(result, i, ulps, got, want);
  }
  return result;
}

double run::getDefaultTolerance(runtime::ElementType type) {
  if (!runtime::isFloat(type))
    return 0;
  return runtime::byteSize(type) <= 2 ? 1 : 32;
}
