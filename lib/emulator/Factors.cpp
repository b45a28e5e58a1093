//===- Factors.cpp - The numbers of products ------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/Factors.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/bit.h"
#include <array>
#include <cstring>

using namespace bastile;

/// The numbers of all codes of a type of 8 bits.
static std::array<float, 256> listNumbers(const llvm::fltSemantics &type) {
  std::array<float, 256> numbers;
  for (unsigned code = 0; code < numbers.size(); ++code) {
    llvm::APFloat number(type, llvm::APInt(8, code));
    bool losesInfo = false;
    number.convert(llvm::APFloat::IEEEsingle(),
                   llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    numbers[code] = number.convertToFloat();
  }
  return numbers;
}

static float decodeHalf(uint16_t bits) {
  // Shifted into place, the exponent is too small by the difference of the
  // biases, 112; this multiplication corrects it, of subnormal numbers too.
  constexpr float correction = 0x1p112f;
  uint32_t magnitude = uint32_t(bits & 0x7fff) << 13;
  float number = llvm::bit_cast<float>(magnitude) * correction;
  constexpr uint32_t infinity = 0x7f800000;
  if ((bits & 0x7c00) == 0x7c00)
    number = llvm::bit_cast<float>(magnitude | infinity);
  return bits & 0x8000 ? -number : number;
}

template <typename Code, typename Decode>
static void decodeAll(const char *from, unsigned count, float *to,
                      unsigned stride, Decode decode) {
  for (unsigned i = 0; i < count; ++i) {
    Code code;
    std::memcpy(&code, from + i * sizeof(code), sizeof(code));
    to[i * stride] = decode(code);
  }
}

void bastile::decodeFactor(FactorType type, const char *from, unsigned count,
                           float *to, unsigned stride) {
  static const std::array<float, 256> e4m3 =
      listNumbers(llvm::APFloat::Float8E4M3FN());
  static const std::array<float, 256> e5m2 =
      listNumbers(llvm::APFloat::Float8E5M2());
  switch (type) {
  case FactorType::BF16:
    return decodeAll<uint16_t>(from, count, to, stride, [](uint16_t code) {
      return llvm::bit_cast<float>(uint32_t(code) << 16);
    });
  case FactorType::F16:
    return decodeAll<uint16_t>(from, count, to, stride, decodeHalf);
  case FactorType::F8E4M3:
    return decodeAll<uint8_t>(from, count, to, stride,
                              [&](uint8_t code) { return e4m3[code]; });
  case FactorType::F8E5M2:
    return decodeAll<uint8_t>(from, count, to, stride,
                              [&](uint8_t code) { return e5m2[code]; });
  }
}

void bastile::addProduct(float *__restrict sum, const float *__restrict a,
                         const float *__restrict b, unsigned rows,
                         unsigned depth, unsigned columns) {
  // Four terms at a time, so that a sum is loaded and stored a quarter as
  // often.
  for (unsigned row = 0; row < rows; ++row, sum += columns, a += depth)
    for (unsigned k = 0; k < depth; k += 4) {
      const float *b0 = b + k * columns, *b1 = b0 + columns, *b2 = b1 + columns,
                  *b3 = b2 + columns;
      float a0 = a[k], a1 = a[k + 1], a2 = a[k + 2], a3 = a[k + 3];
      for (unsigned column = 0; column < columns; ++column)
        sum[column] = sum[column] + a0 * b0[column] + a1 * b1[column] +
                      a2 * b2[column] + a3 * b3[column];
    }
}
