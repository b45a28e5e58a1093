//===- Compare.cpp - Measuring errors -------------------------------------===//
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

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

static double getRelativeError(double got, double expected) {
  if (got == expected || (std::isnan(got) && std::isnan(expected)))
    return 0;
  double error = std::fabs(got - expected) / std::fabs(expected);
  return std::isnan(error) ? kInfinity : error;
}

/// Notes an element with an error of `ulps` units in the last place, of which
/// `allowed` are allowed, if it is the worst so far.
static void record(Comparison &result, size_t position, double ulps,
                   double allowed, double ofAllowed, double got,
                   double expected) {
  result.ulps = std::max(result.ulps, ulps);
  result.relative = std::max(result.relative, getRelativeError(got, expected));
  if (ofAllowed <= result.ofAllowed)
    return;
  result.ofAllowed = ofAllowed;
  result.position = static_cast<int64_t>(position);
  result.got = got;
  result.expected = expected;
  result.error = ulps;
  result.allowed = allowed;
}

/// `error` as a part of the allowed error, which may be 0.
static double divide(double error, double allowed) {
  return error == 0 ? 0 : allowed == 0 ? kInfinity : error / allowed;
}

static Comparison compareIntegers(const Tensor &actual,
                                  const Expectation &expected,
                                  std::optional<double> tolerance) {
  const std::vector<int64_t> values = actual.getIntegers();
  Comparison result;
  for (size_t i = 0; i != values.size(); ++i) {
    const int64_t want = expected.integers[i];
    const auto [least, most] = std::minmax(values[i], want);
    // The difference may need all 64 bits.
    const auto difference = static_cast<double>(static_cast<uint64_t>(most) -
                                                static_cast<uint64_t>(least));
    const double error = expected.errors.empty() ? 0 : expected.errors[i];
    const double allowed = tolerance.value_or(error);
    if (allowed == kInfinity)
      ++result.unbounded;
    else if (difference != 0)
      record(result, i, difference, allowed, divide(difference, allowed),
             static_cast<double>(values[i]), static_cast<double>(want));
  }
  return result;
}

Comparison run::compare(const Tensor &actual, const Expectation &expected,
                        std::optional<double> tolerance) {
  if (!runtime::isFloat(actual.type()) && expected.numbers.empty())
    return compareIntegers(actual, expected, tolerance);
  const std::vector<double> numbers = actual.getNumbers();
  assert(numbers.size() == expected.numbers.size() && "shapes were checked");
  Comparison result;
  for (size_t i = 0; i != numbers.size(); ++i) {
    const double got = numbers[i], want = expected.numbers[i];
    const double bound = expected.errors.empty() ? 0 : expected.errors[i];
    if (!tolerance && bound == kInfinity) {
      ++result.unbounded;
      continue;
    }
    if (got == want || (std::isnan(got) && std::isnan(want)))
      continue;
    // An overflow to infinity that the type demands is no error.
    const double ulps = runtime::ulpDistance(actual.type(), got, want);
    if (ulps == 0)
      continue;
    if (tolerance) {
      record(result, i, ulps, *tolerance, divide(ulps, *tolerance), got, want);
      continue;
    }
    // The error of an infinity or NaN is infinite.
    double error = std::fabs(got - want);
    if (std::isnan(error))
      error = kInfinity;
    record(result, i, ulps, bound / runtime::ulp(actual.type(), want),
           divide(error, bound), got, want);
  }
  return result;
}

double run::getDefaultTolerance(runtime::ElementType type) {
  if (!runtime::isFloat(type))
    return 0;
  return runtime::byteSize(type) <= 2 ? 1 : 32;
}
