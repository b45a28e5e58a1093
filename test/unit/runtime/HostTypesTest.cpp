//===- HostTypesTest.cpp --------------------------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/HostTypes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

using namespace bastile::runtime;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double decode(ElementType type, uint16_t bits) {
  return loadElement(type, &bits);
}

uint16_t encode(ElementType type, double value) {
  uint16_t bits = 0;
  storeElement(type, &bits, value);
  return bits;
}

class SmallFloatTest : public testing::TestWithParam<ElementType> {
protected:
  ElementType type = GetParam();
  unsigned patternCount = 1u << (8 * byteSize(type));
  uint16_t signBit = patternCount / 2;
};

TEST_P(SmallFloatTest, everyPatternSurvives) {
  for (unsigned bits = 0; bits != patternCount; ++bits) {
    double value = decode(type, bits);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(decode(type, encode(type, value)))) << bits;
    else
      EXPECT_EQ(encode(type, value), bits) << value;
  }
}

TEST_P(SmallFloatTest, roundsBetweenEveryTwoNeighbours) {
  for (uint16_t bits = 0; bits + 1 != signBit; ++bits) {
    const double low = decode(type, bits);
    const double high = decode(type, bits + 1);
    if (!std::isfinite(low) || !std::isfinite(high))
      break;
    ASSERT_LT(low, high) << bits;
    const double middle = (low + high) / 2;
    const uint16_t even = bits % 2 == 0 ? bits : bits + 1;
    EXPECT_EQ(encode(type, middle), even) << middle;
    EXPECT_EQ(encode(type, std::nextafter(middle, 0.0)), bits) << middle;
    EXPECT_EQ(encode(type, std::nextafter(middle, infinity)), bits + 1)
        << middle;
    EXPECT_EQ(encode(type, -middle), even | signBit) << middle;
    EXPECT_EQ(ulp(type, low), high - low) << low;
    EXPECT_EQ(ulp(type, -middle), high - low) << middle;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SmallFloatTest,
                         testing::Values(ElementType::F16, ElementType::BF16,
                                         ElementType::F8E4M3FN,
                                         ElementType::F8E5M2),
                         [](const auto &info) {
                           return std::string(name(info.param));
                         });

TEST(HostTypesTest, decodesBf16AsTheUpperHalfOfF32) {
  for (unsigned bits = 0; bits != 0x10000; ++bits) {
    const uint32_t wide = bits << 16;
    float expected;
    std::memcpy(&expected, &wide, sizeof(expected));
    const double value = decode(ElementType::BF16, bits);
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(value)) << bits;
    else
      EXPECT_EQ(value, expected) << bits;
    EXPECT_EQ(std::signbit(value), std::signbit(expected)) << bits;
  }
}

TEST(HostTypesTest, knowsLandmarks) {
  EXPECT_EQ(decode(ElementType::F16, 0x3c00), 1.0);
  EXPECT_EQ(decode(ElementType::F16, 0x7bff), 65504.0);
  EXPECT_EQ(decode(ElementType::F16, 0x0400), 0x1p-14);
  EXPECT_EQ(decode(ElementType::F16, 0x8001), -0x1p-24);
  EXPECT_EQ(decode(ElementType::F16, 0xfc00), -infinity);
  EXPECT_EQ(decode(ElementType::F8E4M3FN, 0x38), 1.0);
  EXPECT_EQ(decode(ElementType::F8E4M3FN, 0x7e), 448.0);
  EXPECT_TRUE(std::isnan(decode(ElementType::F8E4M3FN, 0xff)));
  EXPECT_EQ(decode(ElementType::F8E4M3FN, 0x01), 0x1p-9);
  EXPECT_EQ(decode(ElementType::F8E5M2, 0x3c), 1.0);
  EXPECT_EQ(decode(ElementType::F8E5M2, 0x7b), 57344.0);
  EXPECT_EQ(decode(ElementType::F8E5M2, 0x7c), infinity);
}

TEST(HostTypesTest, overflows) {
  // The first value that no longer rounds to the largest finite one.
  EXPECT_EQ(roundTo(ElementType::F16, 65519.0), 65504.0);
  EXPECT_EQ(roundTo(ElementType::F16, 65520.0), infinity);
  EXPECT_EQ(roundTo(ElementType::BF16, -1e39), -infinity);
  EXPECT_EQ(roundTo(ElementType::F32, 1e39), infinity);
  EXPECT_EQ(roundTo(ElementType::F8E4M3FN, 464.0), 448.0);
  EXPECT_TRUE(std::isnan(roundTo(ElementType::F8E4M3FN, 465.0)));
  EXPECT_TRUE(std::isnan(roundTo(ElementType::F8E4M3FN, -infinity)));
  EXPECT_EQ(roundTo(ElementType::F8E5M2, -infinity), -infinity);
}

TEST(HostTypesTest, roundsOnce) {
  // By way of f32 this would become a tie, and then round down to 1.
  EXPECT_EQ(roundTo(ElementType::BF16, 1.0 + 0x1p-8 + 0x1p-40), 1.0 + 0x1p-7);
}

TEST(HostTypesTest, convertsIntegers) {
  EXPECT_EQ(roundTo(ElementType::I32, 2.5), 2.0);
  EXPECT_EQ(roundTo(ElementType::I32, -3.5), -4.0);
  EXPECT_EQ(roundTo(ElementType::I8, 300.0), 127.0);
  EXPECT_EQ(roundTo(ElementType::I8, -300.0), -128.0);
  EXPECT_EQ(roundTo(ElementType::I32, nan), 0.0);
  EXPECT_EQ(roundTo(ElementType::I1, 1.0), 1.0);
  EXPECT_EQ(roundTo(ElementType::I1, 0.0), 0.0);
  int64_t value = 0;
  storeElement(ElementType::I64, &value, 1e30);
  EXPECT_EQ(value, INT64_MAX);
  storeElement(ElementType::I64, &value, -infinity);
  EXPECT_EQ(value, INT64_MIN);
}

TEST(HostTypesTest, keepsIntegersExact) {
  // These neighbours are the same double.
  const int64_t large = (int64_t(1) << 53) + 1;
  for (int64_t value : {large, INT64_MAX, INT64_MIN, int64_t(-1)}) {
    int64_t element = 0;
    storeInteger(ElementType::I64, &element, value);
    EXPECT_EQ(element, value);
    EXPECT_EQ(loadInteger(ElementType::I64, &element), value);
  }
  char element[4];
  storeInteger(ElementType::I32, element, -3);
  EXPECT_EQ(loadInteger(ElementType::I32, element), -3);
  storeInteger(ElementType::I8, element, 128);
  EXPECT_EQ(loadInteger(ElementType::I8, element), -128);
  storeInteger(ElementType::I1, element, 2);
  EXPECT_EQ(loadInteger(ElementType::I1, element), 0);
}

TEST(HostTypesTest, measuresUlps) {
  EXPECT_EQ(ulp(ElementType::F64, 1.0), 0x1p-52);
  EXPECT_EQ(ulp(ElementType::F32, 1.5), 0x1p-23);
  EXPECT_EQ(ulp(ElementType::F32, 0.0), 0x1p-149);
  EXPECT_EQ(ulp(ElementType::F32, 1e300), 0x1p104);
  EXPECT_EQ(ulp(ElementType::I64, 12345.0), 1.0);
  EXPECT_TRUE(std::isnan(ulp(ElementType::F32, infinity)));

  EXPECT_EQ(ulpDistance(ElementType::BF16, 1.0, 1.0 + 0x1p-8), 0.5);
  EXPECT_EQ(ulpDistance(ElementType::F32, -1.0, -1.0 - 0x1p-22), 2.0);
  EXPECT_EQ(ulpDistance(ElementType::F32, nan, nan), 0.0);
  EXPECT_EQ(ulpDistance(ElementType::F32, infinity, infinity), 0.0);
  EXPECT_EQ(ulpDistance(ElementType::F16, infinity, 1e6), 0.0);
  EXPECT_EQ(ulpDistance(ElementType::F16, infinity, -1e6), infinity);
  EXPECT_EQ(ulpDistance(ElementType::F16, infinity, 1.0), infinity);
  EXPECT_EQ(ulpDistance(ElementType::F16, nan, 1.0), infinity);
  EXPECT_EQ(ulpDistance(ElementType::F16, 1.0, nan), infinity);
}

TEST(ElementTypeTest, hasNames) {
  EXPECT_EQ(parseElementType("bf16"), ElementType::BF16);
  EXPECT_EQ(parseElementType("f8E4M3FN"), ElementType::F8E4M3FN);
  EXPECT_EQ(parseElementType("i64"), ElementType::I64);
  EXPECT_EQ(parseElementType("f8e5m2"), std::nullopt);
  EXPECT_EQ(name(ElementType::I1), "i1");
  EXPECT_EQ(byteSize(ElementType::I1), 1);
  EXPECT_EQ(byteSize(ElementType::F8E5M2), 1);
}

} // namespace
