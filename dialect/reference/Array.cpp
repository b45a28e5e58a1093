//===- Array.cpp - Dense arrays of numbers with their errors --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/reference/Array.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile::reference;

Format::Format(FloatType type) {
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  precision = llvm::APFloat::semanticsPrecision(semantics);
  minExponent = llvm::APFloat::semanticsMinExponent(semantics);
  hasInfinity = llvm::APFloat::semanticsHasInf(semantics);
  llvm::APFloat most = llvm::APFloat::getLargest(semantics);
  bool losesInfo;
  most.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven,
               &losesInfo);
  largest = most.convertToDouble();
  // This is the middle between the largest number and infinity. Types narrower
  // than float32 are rounded, however small the number.
  if (precision < 53)
    limit = precision < 24 ? 0 : largest * (1 + 0x1p-25);
}

/// 2^exponent.
static double getPowerOfTwo(int exponent) {
  return llvm::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

double Format::round(double value) const {
  if (!std::isfinite(value))
    return hasInfinity || std::isnan(value) ? value : kNaN;
  if (precision == 53)
    return value;
  const auto bits = llvm::bit_cast<uint64_t>(value);
  const int exponent =
      std::max(static_cast<int>(bits >> 52 & 0x7ff) - 1023, minExponent);
  // Adding a number whose last bit is worth as much as the format's rounds to
  // that bit.
  const double shift = 1.5 * getPowerOfTwo(exponent + 53 - precision);
  const double rounded = std::copysign((value + shift) - shift, value);
  if (std::fabs(rounded) <= largest)
    return rounded;
  return hasInfinity ? std::copysign(kInfinity, value) : kNaN;
}

Number Format::round(const Number &number) const {
  return apply([this](double value) { return round(value); }, number, 0);
}

Number Format::holdAny(const Number &number) const {
  if (precision < 24)
    return round(number);
  if (precision == 53 || !std::isfinite(number.value))
    return number;
  // To round takes no number of the format out of it.
  constexpr double rounding = 1 + 0x1p-20;
  if (std::fabs(number.value) <= largest &&
      number.error <= rounding * number.unit * std::fabs(number.value))
    return number;
  // Within its error, the number may be finite or beyond the format.
  if (std::fabs(number.value) - number.error < limit)
    return {number.value, kInfinity, number.unit};
  return {std::copysign(kInfinity, number.value), 0, number.unit};
}

Array::Array(Type elementType, llvm::ArrayRef<int64_t> sizes)
    : type(elementType), shape(sizes) {
  if (auto floatType = dyn_cast<FloatType>(type)) {
    floats = Format(floatType);
    numbers.resize(count());
  } else {
    integers.resize(count());
  }
}

int64_t Array::rows() const {
  int64_t rows = 1;
  for (int64_t size : sizes().drop_back(shape.empty() ? 0 : 1))
    rows *= size;
  return rows;
}

int64_t Array::bytes() const {
  return static_cast<int64_t>(numbers.size() * sizeof(double) +
                              integers.size() * sizeof(int64_t) +
                              errors.size() * sizeof(double));
}

void Array::beginErrors() { errors.resize(count()); }

void Array::set(int64_t index, const Integer &integer) {
  integers[index] = wrap(type, integer.value);
  setError(index, integer.error);
}

unsigned bastile::reference::getWidth(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

int64_t bastile::reference::wrap(Type type, int64_t value) {
  const unsigned width = getWidth(type);
  if (width == 1)
    return value & 1;
  return llvm::SignExtend64(static_cast<uint64_t>(value), width);
}
