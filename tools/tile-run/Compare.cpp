//===- Compare.cpp - Measuring errors
//-----------------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Compare.h"

#include "bastile/runtime/HostTypes.h"
#include <cassert>
#include <cmath>
#include <limits>

using namespace bastile;
using namespace bastile::run;

static double getRelativeError(double got, double expected) {
  if (got == expected || (std::isnan(got) && std::isnan(expected)))
    return 0;
  double error = std::fabs(got - expected) / std::fabs(expected);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

Comparison run::compare(const Tensor &actual,
                        const std::vector<double> &expected) {
  std::vector<double> numbers = actual.getNumbers();
  assert(numbers.size() == expected.size() && "shapes were checked");
  // A unit is at least this part of a number, so that most elements are seen
  // to be no worse than the worst so far without finding their unit.
  const double leastUnit = runtime::ulp(actual.type(), 1.0) / 2;
  Comparison result;
  for (size_t i = 0; i != numbers.size(); ++i) {
    const double got = numbers[i], want = expected[i];
    if (std::fabs(got - want) <= result.ulps * leastUnit * std::fabs(want) &&
        std::fabs(got - want) <= result.relative * std::fabs(want))
      continue;
    const double ulps = runtime::ulpDistance(actual.type(), got, want);
    // An overflow to infinity that the type demands is no error.
    if (ulps == 0)
      continue;
    result.relative = std::max(result.relative, getRelativeError(got, want));
    if (ulps <= result.ulps)
      continue;
    result.ulps = ulps;
    result.position = static_cast<int64_t>(i);
    result.got = got;
    result.expected = want;
  }
  return result;
}

double run::getDefaultTolerance(runtime::ElementType type) {
  return runtime::byteSize(type) <= 2 ? 1 : 32;
}
