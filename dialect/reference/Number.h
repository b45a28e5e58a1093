//===- Number.h - A number, and how far off it may be -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Running error analysis: each number carries a bound of the error that a
// kernel may have, since it rounds. An operation passes on the errors of its
// operands, as much as its result depends on them, and adds its own rounding.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_REFERENCE_NUMBER_H
#define BASTILE_DIALECT_REFERENCE_NUMBER_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace bastile::reference {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// A float.
struct Number {
  Number(double value = 0, double error = 0, double unit = 0)
      : value(value), error(error), unit(unit) {}

  /// Without rounding.
  double value;
  /// How far off a kernel may be, absolutely. If infinite, a kernel may have
  /// any number or NaN; for an infinity or NaN that a kernel must have, the
  /// error is 0.
  double error;
  /// The unit roundoff of the type that a kernel computes in: half of the
  /// distance from 1 to the next number. It is 0 for constants, which adapt to
  /// their operands.
  double unit;
};

/// An integer, or a condition as 0 or 1.
struct Integer {
  int64_t value = 0;
  /// The error, as in `Number`; 1 for a condition that may be either.
  double error = 0;
};

/// A number for which a kernel may have anything.
inline Number getUnknown(double unit) { return {kNaN, kInfinity, unit}; }

/// `value` with an error: `error` from its operands, and `roundings` of its
/// own. `isSure` says that an infinity or NaN would be the same with slightly
/// different operands.
inline Number settle(double value, double error, double unit,
                     double roundings = 1, bool isSure = true) {
  if (!std::isfinite(value))
    return isSure ? Number(value, 0, unit) : getUnknown(unit);
  // This is half of the least number of float32; that of float64 does not
  // matter.
  const double least = unit > 0x1p-50 && roundings != 0 ? 0x1p-150 : 0;
  error += roundings * (unit * std::fabs(value) + least);
  return {value, std::isnan(error) ? kInfinity : error, unit};
}

inline double getUnit(const Number &a, const Number &b) {
  return std::max(a.unit, b.unit);
}

/// Whether the number's error is too small to take it to zero or past it.
inline bool hasSureSign(const Number &x) {
  return x.error == 0 || std::fabs(x.value) > x.error;
}

/// Whether the number is exact in float32, the type of this `unit`.
inline bool needsNoRounding(double value, double unit) {
  return unit > 0x1p-50 && static_cast<float>(value) == value;
}

inline Number operator-(const Number &x) { return {-x.value, x.error, x.unit}; }

inline Number operator+(const Number &a, const Number &b) {
  double error = a.error + b.error;
  const double sum = a.value + b.value, unit = getUnit(a, b);
  // Adding an exact zero rounds nothing.
  bool isExact = (a.value == 0 && a.error == 0) ||
                 (b.value == 0 && b.error == 0) ||
                 (error == 0 && needsNoRounding(sum, unit));
  return settle(sum, error, unit, isExact ? 0 : 1, error < kInfinity);
}
inline Number operator-(const Number &a, const Number &b) { return a + -b; }

inline Number operator*(const Number &a, const Number &b) {
  double error = a.error * b.error;
  if (a.error != 0)
    error += std::fabs(b.value) * a.error;
  if (b.error != 0)
    error += std::fabs(a.value) * b.error;
  const double product = a.value * b.value, unit = getUnit(a, b);
  bool isExact = a.error == 0 && b.error == 0 && needsNoRounding(product, unit);
  return settle(product, error, unit, isExact ? 0 : 1,
                hasSureSign(a) && hasSureSign(b));
}

/// The error includes that of an approximate reciprocal, two units in the last
/// place.
inline Number operator/(const Number &a, const Number &b) {
  const double quotient = a.value / b.value;
  if (b.error == 0)
    return settle(quotient, a.error == 0 ? 0 : a.error / std::fabs(b.value),
                  getUnit(a, b), 4, hasSureSign(a));
  if (!hasSureSign(b))
    return getUnknown(getUnit(a, b));
  return settle(quotient,
                (a.error + std::fabs(quotient) * b.error) /
                    (std::fabs(b.value) - b.error),
                getUnit(a, b), 4, hasSureSign(a));
}

/// a * b + c. The bound holds whether a kernel rounds the product or not.
inline Number fma(const Number &a, const Number &b, const Number &c) {
  Number result = a * b + c;
  result.value = std::fma(a.value, b.value, c.value);
  return result;
}

/// Whether both are the same number, or both NaN.
inline bool isSame(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

/// `function` of `x`. It has to be monotone from one end of the error to the
/// other, or largest at an end.
template <typename Function>
Number apply(Function function, const Number &x, double roundings) {
  const double value = function(x.value);
  if (x.error == 0)
    return settle(value, 0, x.unit, roundings);
  if (!(x.error < kInfinity))
    return getUnknown(x.unit);
  const double low = function(x.value - x.error);
  const double high = function(x.value + x.error);
  if (!std::isfinite(value))
    return settle(value, 0, x.unit, 0,
                  isSame(low, value) && isSame(high, value));
  return settle(value,
                std::max(std::fabs(low - value), std::fabs(high - value)),
                x.unit, roundings);
}

/// `function` of two operands; it has to be monotone in each.
template <typename Function>
Number apply(Function function, const Number &x, const Number &y,
             double roundings) {
  if (y.error == 0) {
    Number result =
        apply([&](double x) { return function(x, y.value); }, x, roundings);
    result.unit = getUnit(x, y);
    return result;
  }
  Number low =
      apply([&](double x) { return function(x, y.value - y.error); }, x, 0);
  Number high =
      apply([&](double x) { return function(x, y.value + y.error); }, x, 0);
  const double value = function(x.value, y.value);
  const double error = std::max(std::fabs(low.value - value) + low.error,
                                std::fabs(high.value - value) + high.error);
  const bool isSure = low.error + high.error == 0 && isSame(low.value, value) &&
                      isSame(high.value, value);
  return settle(value, error, getUnit(x, y), roundings, isSure);
}

/// a / b, rounded towards zero.
inline Number divideTowardsZero(const Number &a, const Number &b) {
  const Number quotient = a / b;
  const bool isExact = a.error == 0 && b.error == 0;
  return apply(
      [](double x) { return std::trunc(x); },
      Number(quotient.value, isExact ? 0 : quotient.error, quotient.unit), 0);
}

/// A smooth function of `x`. A small error is multiplied by `slope`, which is
/// given an operand and the result: this takes a third of the time.
template <typename Function, typename Slope>
Number applySmooth(Function function, Slope slope, const Number &x,
                   double roundings) {
  if (!(x.error <= 0x1p-12 * std::fabs(x.value)))
    return apply(function, x, roundings);
  const double value = function(x.value);
  // Below this, the second-order term is less than an eighth of the first.
  const double error =
      x.error == 0 ? 0 : 1.125 * x.error * std::fabs(slope(x.value, value));
  return settle(value, error, x.unit, roundings);
}

/// How many roundings a kernel's functions are off by: those of the host are
/// within about 2 units in the last place; the approximations of a GPU, used
/// where the result has 16 bits or fewer, have up to 2 as well.
inline constexpr double kFunction = 5;

inline Number exp(const Number &x) {
  // For an operand in the tens, the product with log2(e) is rounded.
  Number result = applySmooth(
      [](double x) { return std::exp(x); }, [](double, double y) { return y; },
      x, kFunction + 2 * std::min(std::fabs(x.value), 1000.0));
  // Powers in a sum are flushed to zero where they are subnormal.
  if (x.unit > 0x1p-50 && std::isfinite(result.value))
    result.error += 0x1p-126;
  return result;
}

inline Number log(const Number &x) {
  Number result =
      applySmooth([](double x) { return std::log(x); },
                  [](double x, double) { return 1 / x; }, x, kFunction);
  // Near 1, an approximate logarithm has the same absolute error as elsewhere.
  if (std::isfinite(result.value))
    result.error += kFunction * x.unit;
  return result;
}

inline Number sqrt(const Number &x) {
  return applySmooth([](double x) { return std::sqrt(x); },
                     [](double, double y) { return 0.5 / y; }, x, kFunction);
}

inline Number rsqrt(const Number &x) {
  return applySmooth([](double x) { return 1 / std::sqrt(x); },
                     [](double x, double y) { return 0.5 * y / x; }, x,
                     kFunction);
}

inline Number sin(const Number &x) {
  // The sine is off by as much as the cosine from which it is computed.
  const double size = std::min(1.0, std::fabs(x.value));
  return settle(std::sin(x.value),
                std::min(x.error, 2.0) + kFunction * x.unit * size, x.unit, 1,
                x.error == 0);
}

inline Number cos(const Number &x) {
  return settle(std::cos(x.value), std::min(x.error, 2.0) + kFunction * x.unit,
                x.unit, 1, x.error == 0);
}

inline Number sinh(const Number &x) {
  return apply([](double x) { return std::sinh(x); }, x, kFunction);
}

inline Number cosh(const Number &x) {
  return apply([](double x) { return std::cosh(x); }, x, kFunction);
}

/// Within the error of a pole, the tangent may be anything.
inline Number tan(const Number &x) {
  const double slope = std::tan(x.value) * std::tan(x.value) + 1;
  // At twice the error from the pole, the slope may be up to four times as
  // large.
  if (x.error != 0 && !(x.error * std::sqrt(slope) < 0.5))
    return getUnknown(x.unit);
  return settle(std::tan(x.value), x.error == 0 ? 0 : 4 * x.error * slope,
                x.unit, kFunction);
}

/// The roundings of a^b where a kernel computes it as a power of 2.
inline double getPowerRoundings(double base, double exponent) {
  const double power = std::fabs(exponent * std::log2(std::fabs(base)));
  return kFunction * (1 + std::min(std::fabs(exponent), 1e3) +
                      (std::isfinite(power) ? std::min(power, 1e3) : 0));
}

inline Number pow(const Number &base, const Number &exponent) {
  return apply([](double x, double y) { return std::pow(x, y); }, base,
               exponent, getPowerRoundings(base.value, exponent.value));
}

/// A sum of many terms in any order. Its bound is that of roundings with random
/// signs, as the bound of the worst case would hide a missing term.
class Sum {
public:
  void add(const Number &term) {
    value += term.value;
    size += std::fabs(term.value);
    error += term.error;
    unit = std::max(unit, term.unit);
    count += term.value != 0 || term.error != 0;
  }
  Number get() const {
    const auto sum = static_cast<double>(value);
    if (!std::isfinite(sum))
      return settle(sum, 0, unit, 0, error < kInfinity);
    const double roundings =
        count > 1 ? kFirst + std::sqrt(static_cast<double>(count)) : 0;
    return settle(sum, error + roundings * unit * size, unit, 0);
  }

private:
  static constexpr double kFirst = 8;

  /// The sum has more digits than its terms, for sums that kernels compute in
  /// float64.
  long double value = 0;
  double size = 0, error = 0, unit = 0;
  int64_t count = 0;
};

} // namespace bastile::reference

#endif // BASTILE_DIALECT_REFERENCE_NUMBER_H
