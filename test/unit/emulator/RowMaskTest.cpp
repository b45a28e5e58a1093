//===- RowMaskTest.cpp - Tiles that are wider than the row ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// Beyond its end, a row repeats its last vector. Reductions of values computed
// from the row must not see that.
//
//===----------------------------------------------------------------------===//

#include "CompiledTest.h"
#include <cmath>
#include <limits>

using namespace bastile;
using namespace bastile::test;
using runtime::ElementType;

namespace {

constexpr int64_t kColumns = 100;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Runs functions of x: tensor<?x100xf32> that give a number for each row.
class RowMaskTest : public CompiledTest {
protected:
  /// Runs `body` on two rows of c / 10, whose last element is `last`.
  void run(const std::string &body, float last = 9.9f) {
    compile("func.func @f(%x: tensor<?x100xf32>) -> tensor<?x1xf32> {\n" +
            body + "  return %r : tensor<?x1xf32>\n}");
    if (HasFatalFailure())
      return;
    Buffer x(ElementType::F32, 2, kColumns), out(ElementType::F32, 2, 1);
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t column = 0; column < kColumns; ++column)
        x.set(row, column, column + 1 == kColumns ? last : column / 10.0f);
    EXPECT_EQ(
        CompiledTest::run({x.view()}, {out.view()}, Emulator::Order::Forward),
        "");
    result = out.get(0, 0);
    EXPECT_TRUE(result == out.get(1, 0) ||
                (std::isnan(result) && std::isnan(out.get(1, 0))));
  }

  double result = 0;
};

/// %e is exp(x - max(x)), after the lines that it needs.
const std::string kPowers = R"mlir(
    %m = tile.reduce max %x : tensor<?x100xf32> -> tensor<?x1xf32>
    %b = tile.broadcast %m like %x
        : tensor<?x1xf32>, tensor<?x100xf32> -> tensor<?x100xf32>
    %d = arith.subf %x, %b : tensor<?x100xf32>
    %e = math.exp %d : tensor<?x100xf32>
)mlir";
const std::string kSum = R"mlir(
    %s = tile.reduce add %e : tensor<?x100xf32> -> tensor<?x1xf32>
)mlir";
/// %r is the difference of the sum and the minimum.
const std::string kLess = R"mlir(
    %r = arith.subf %s, %n : tensor<?x1xf32>
)mlir";

double sumOfPowers() {
  double sum = 0;
  for (int64_t column = 0; column < kColumns; ++column)
    sum += std::exp(column / 10.0 - 9.9);
  return sum;
}

TEST_F(RowMaskTest, SumOfPowers) {
  run(kPowers + R"mlir(
    %r = tile.reduce add %e : tensor<?x100xf32> -> tensor<?x1xf32>
)mlir");
  EXPECT_NEAR(result, sumOfPowers(), 1e-4);
}

TEST_F(RowMaskTest, MinimumOfPowersThatAreSummed) {
  const std::string minimum = R"mlir(
    %n = tile.reduce min %e : tensor<?x100xf32> -> tensor<?x1xf32>
)mlir";
  run(kPowers + kSum + minimum + kLess);
  EXPECT_NEAR(result, sumOfPowers() - std::exp(-9.9), 1e-4);
  run(kPowers + minimum + kSum + kLess);
  EXPECT_NEAR(result, sumOfPowers() - std::exp(-9.9), 1e-4);
}

TEST_F(RowMaskTest, MinimumOfDifferencesWhosePowersAreSummed) {
  const std::string minimum = R"mlir(
    %n = tile.reduce min %d : tensor<?x100xf32> -> tensor<?x1xf32>
)mlir";
  run(kPowers + kSum + minimum + kLess);
  EXPECT_NEAR(result, sumOfPowers() + 9.9, 1e-4);
  run(kPowers + minimum + kSum + kLess);
  EXPECT_NEAR(result, sumOfPowers() + 9.9, 1e-4);
}

TEST_F(RowMaskTest, SumOfPowersOfAnotherMaximum) {
  // A power of infinity less a finite number is infinite within the row.
  run(R"mlir(
    %negative = arith.negf %x : tensor<?x100xf32>
    %m = tile.reduce max %negative : tensor<?x100xf32> -> tensor<?x1xf32>
    %b = tile.broadcast %m like %x
        : tensor<?x1xf32>, tensor<?x100xf32> -> tensor<?x100xf32>
    %d = arith.subf %x, %b : tensor<?x100xf32>
    %e = math.exp %d : tensor<?x100xf32>
    %r = tile.reduce add %e : tensor<?x100xf32> -> tensor<?x1xf32>
)mlir",
      kInfinity);
  EXPECT_EQ(result, kInfinity);
}

TEST_F(RowMaskTest, MinimumOfTheMaximaOfGroups) {
  compile(R"mlir(
    func.func @f(%x: tensor<?x96xf32>) -> tensor<?x1xf32> {
      %g = tile.reduce max %x : tensor<?x96xf32> -> tensor<?x6xf32>
      %b = tile.broadcast %g like %x
          : tensor<?x6xf32>, tensor<?x96xf32> -> tensor<?x96xf32>
      %r = tile.reduce min %b : tensor<?x96xf32> -> tensor<?x1xf32>
      return %r : tensor<?x1xf32>
    })mlir");
  if (HasFatalFailure())
    return;
  // The maximum of the last group is not in its last vector.
  Buffer x(ElementType::F32, 2, 96), out(ElementType::F32, 2, 1);
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t column = 0; column < 96; ++column)
      x.set(row, column, column < 80 ? 10 : column == 81 ? 5 : 1);
  EXPECT_EQ(
      CompiledTest::run({x.view()}, {out.view()}, Emulator::Order::Forward),
      "");
  EXPECT_EQ(out.get(0, 0), 5);
  EXPECT_EQ(out.get(1, 0), 5);
}

TEST_F(RowMaskTest, SumOfPowersOfWhatRowsShare) {
  compile(R"mlir(
    func.func @f(%x: tensor<?x1000xf32>, %w: tensor<1000xf32>)
        -> tensor<?x1000xf32> {
      %b = tile.broadcast %w like %x
          : tensor<1000xf32>, tensor<?x1000xf32> -> tensor<?x1000xf32>
      %c = arith.subf %b, %b : tensor<?x1000xf32>
      %e = math.exp %c : tensor<?x1000xf32>
      %s = tile.reduce add %e : tensor<?x1000xf32> -> tensor<?x1xf32>
      %t = tile.broadcast %s like %x
          : tensor<?x1xf32>, tensor<?x1000xf32> -> tensor<?x1000xf32>
      %r = arith.addf %x, %t : tensor<?x1000xf32>
      return %r : tensor<?x1000xf32>
    })mlir");
  if (HasFatalFailure())
    return;
  std::mt19937 random(1);
  Buffer x(ElementType::F32, 2, 1000), w(ElementType::F32, 1, 1000),
      out(ElementType::F32, 2, 1000);
  x.fill(random);
  w.fill(random);
  EXPECT_EQ(CompiledTest::run({x.view(), w.view(/*isVector=*/true)},
                              {out.view()}, Emulator::Order::Forward),
            "");
  EXPECT_FLOAT_EQ(out.get(1, 999), x.get(1, 999) + 1000);
}

} // namespace
