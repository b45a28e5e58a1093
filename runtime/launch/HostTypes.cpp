//===- HostTypes.cpp - Element types in software --------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/HostTypes.h"

#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

using namespace bastile::runtime;

//===----------------------------------------------------------------------===//
// Floats of at most 16 bits
//===----------------------------------------------------------------------===//

namespace {
/// A binary format with a sign, in the order sign, exponent, mantissa.
struct FloatFormat {
  int exponentBits;
  int mantissaBits;
  double maxFinite;
  /// Whether the largest exponent means infinity and NaN as in IEEE 754. If
  /// not, only the pattern of all ones is NaN, and there is no infinity.
  bool hasInfinity;

  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  /// The exponent of the smallest normal number.
  int minExponent() const { return 1 - bias(); }
  uint16_t exponentMask() const { return (1 << exponentBits) - 1; }
  uint16_t mantissaMask() const { return (1 << mantissaBits) - 1; }
  int signShift() const { return exponentBits + mantissaBits; }
};
} // namespace

static FloatFormat floatFormat(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return {5, 10, 65504.0, /*hasInfinity=*/true};
  case ElementType::BF16:
    return {8, 7, 0x1.FEp127, /*hasInfinity=*/true};
  case ElementType::F8E4M3FN:
    return {4, 3, 448.0, /*hasInfinity=*/false};
  default:
    assert(type == ElementType::F8E5M2 && "not a small float");
    return {5, 2, 57344.0, /*hasInfinity=*/true};
  }
}

/// 2 to the power of `exponent`, a normal number. Tests and checks read and
/// write elements one by one, for which `std::ldexp` takes most of the time.
static double powerOf2(int exponent) {
  constexpr int bias = std::numeric_limits<double>::max_exponent - 1;
  constexpr int mantissaBits = std::numeric_limits<double>::digits - 1;
  assert(exponent > -bias && exponent <= bias && "not normal");
  const uint64_t bits = static_cast<uint64_t>(exponent + bias) << mantissaBits;
  double power;
  std::memcpy(&power, &bits, sizeof(power));
  return power;
}

static double decode(const FloatFormat &format, uint16_t bits) {
  const int exponent = bits >> format.mantissaBits & format.exponentMask();
  const int mantissa = bits & format.mantissaMask();
  const double sign = bits >> format.signShift() & 1 ? -1.0 : 1.0;
  if (exponent == format.exponentMask()) {
    if (format.hasInfinity && mantissa == 0)
      return sign * std::numeric_limits<double>::infinity();
    if (format.hasInfinity || mantissa == format.mantissaMask())
      return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  }
  if (exponent == 0)
    return sign * mantissa *
           powerOf2(format.minExponent() - format.mantissaBits);
  const int significand = mantissa | 1 << format.mantissaBits;
  return sign * significand *
         powerOf2(exponent - format.bias() - format.mantissaBits);
}

/// The exponent of a finite `value` in a format with subnormal numbers below
/// `minExponent`.
static int clampedExponent(double value, int minExponent) {
  if (value == 0.0)
    return minExponent;
  return std::max(std::ilogb(value), minExponent);
}

static uint16_t encode(const FloatFormat &format, double value) {
  const int sign = (std::signbit(value) ? 1 : 0) << format.signShift();
  const int infinity = format.exponentMask() << format.mantissaBits;
  if (std::isnan(value))
    return sign | infinity |
           (format.hasInfinity ? 1 << (format.mantissaBits - 1)
                               : format.mantissaMask());
  const double magnitude = std::fabs(value);
  const int overflow =
      format.hasInfinity ? infinity : infinity | format.mantissaMask();
  if (std::isinf(value))
    return sign | overflow;

  const int exponent = clampedExponent(magnitude, format.minExponent());
  // Scaling by a power of two is exact, so this rounds only once.
  const double significand =
      std::nearbyint(magnitude * powerOf2(format.mantissaBits - exponent));
  if (significand * powerOf2(exponent - format.mantissaBits) > format.maxFinite)
    return sign | overflow;
  // The leading one of a normal number adds 1 to the exponent field; without
  // one the number is subnormal. A carry out of the mantissa does the same.
  const int field = exponent - format.minExponent();
  return sign |
         ((field << format.mantissaBits) + static_cast<int>(significand));
}

//===----------------------------------------------------------------------===//
// Elements in memory
//===----------------------------------------------------------------------===//

template <typename T>
static double loadAs(const void *data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  return static_cast<double>(value);
}

template <typename T>
static void storeAs(void *data, T value) {
  std::memcpy(data, &value, sizeof(T));
}

template <typename T>
static T saturate(double value) {
  static_assert(std::is_integral_v<T>);
  if (std::isnan(value))
    return 0;
  const double rounded = std::nearbyint(value);
  // The largest integer may not be a double, but one past it always is.
  if (rounded >= std::ldexp(1.0, std::numeric_limits<T>::digits))
    return std::numeric_limits<T>::max();
  if (rounded <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  return static_cast<T>(rounded);
}

double bastile::runtime::loadElement(ElementType type, const void *data) {
  switch (type) {
  case ElementType::F64:
    return loadAs<double>(data);
  case ElementType::F32:
    return loadAs<float>(data);
  case ElementType::F16:
  case ElementType::BF16: {
    uint16_t bits;
    std::memcpy(&bits, data, sizeof(bits));
    return decode(floatFormat(type), bits);
  }
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2: {
    uint8_t bits;
    std::memcpy(&bits, data, sizeof(bits));
    return decode(floatFormat(type), bits);
  }
  case ElementType::I1:
    return loadAs<uint8_t>(data) != 0.0;
  case ElementType::I8:
    return loadAs<int8_t>(data);
  case ElementType::I32:
    return loadAs<int32_t>(data);
  case ElementType::I64:
    return loadAs<int64_t>(data);
  }
  assert(false && "unknown type");
  return 0.0;
}

void bastile::runtime::storeElement(ElementType type, void *data,
                                    double value) {
  switch (type) {
  case ElementType::F64:
    return storeAs(data, value);
  case ElementType::F32:
    return storeAs(data, static_cast<float>(value));
  case ElementType::F16:
  case ElementType::BF16:
    return storeAs(data, encode(floatFormat(type), value));
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2:
    return storeAs(data,
                   static_cast<uint8_t>(encode(floatFormat(type), value)));
  case ElementType::I1:
    return storeAs(data, static_cast<uint8_t>(saturate<int64_t>(value) != 0));
  case ElementType::I8:
    return storeAs(data, saturate<int8_t>(value));
  case ElementType::I32:
    return storeAs(data, saturate<int32_t>(value));
  case ElementType::I64:
    return storeAs(data, saturate<int64_t>(value));
  }
  assert(false && "unknown type");
}

int64_t bastile::runtime::loadInteger(ElementType type, const void *data) {
  if (type == ElementType::I64) {
    int64_t value;
    std::memcpy(&value, data, sizeof(value));
    return value;
  }
  assert(!isFloat(type) && "not an integer");
  // A double holds all narrower integers.
  return static_cast<int64_t>(loadElement(type, data));
}

void bastile::runtime::storeInteger(ElementType type, void *data,
                                    int64_t value) {
  switch (type) {
  case ElementType::I1:
    return storeAs(data, static_cast<uint8_t>(value & 1));
  case ElementType::I8:
    return storeAs(data, static_cast<int8_t>(value));
  case ElementType::I32:
    return storeAs(data, static_cast<int32_t>(value));
  default:
    assert(type == ElementType::I64 && "not an integer");
    return storeAs(data, value);
  }
}

double bastile::runtime::roundTo(ElementType type, double value) {
  char element[sizeof(double)];
  storeElement(type, element, value);
  return loadElement(type, element);
}

//===----------------------------------------------------------------------===//
// Units in the last place
//===----------------------------------------------------------------------===//

double bastile::runtime::ulp(ElementType type, double reference) {
  if (!std::isfinite(reference))
    return std::numeric_limits<double>::quiet_NaN();
  if (!isFloat(type))
    return 1.0;

  int mantissaBits, minExponent, maxExponent;
  if (type == ElementType::F64 || type == ElementType::F32) {
    const bool isDouble = type == ElementType::F64;
    mantissaBits = isDouble ? 52 : 23;
    maxExponent = isDouble ? 1023 : 127;
    minExponent = 1 - maxExponent;
  } else {
    const FloatFormat format = floatFormat(type);
    mantissaBits = format.mantissaBits;
    minExponent = format.minExponent();
    maxExponent = std::ilogb(format.maxFinite);
  }
  const int exponent =
      std::min(clampedExponent(reference, minExponent), maxExponent);
  return std::ldexp(1.0, exponent - mantissaBits);
}

double bastile::runtime::ulpDistance(ElementType type, double actual,
                                     double reference) {
  if (std::isfinite(actual) && std::isfinite(reference))
    return std::fabs(actual - reference) / ulp(type, reference);
  const double rounded = roundTo(type, reference);
  const bool same =
      std::isnan(actual) ? std::isnan(rounded) : actual == rounded;
  return same ? 0.0 : std::numeric_limits<double>::infinity();
}
