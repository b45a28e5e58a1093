//===- BoundsTest.cpp - How far off a kernel may be -----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ReferenceTest.h"
#include <random>

using namespace bastile::test;

namespace {

constexpr double kUnit = 0x1p-24;

class BoundsTest : public ReferenceTest {
protected:
  static Given makeRows(int64_t rows, int64_t columns, uint64_t seed) {
    std::mt19937_64 engine(seed);
    std::normal_distribution<double> normal;
    Given given{{rows, columns}, {}};
    if (rows == 0)
      given.sizes = {columns};
    for (int64_t i = 0; i != std::max<int64_t>(rows, 1) * columns; ++i)
      // The numbers are exact in bfloat16.
      given.numbers.push_back(std::round(normal(engine) * 16) / 16);
    return given;
  }

  /// Whether the results of `wrong`, or with a seed its gradients, are beyond
  /// what is allowed for `right`.
  bool tells(const std::string &right, const std::string &wrong,
             const std::vector<Given> &inputs, bool inGradients = false) {
    llvm::SmallVector<Array> expected, got;
    mlir::func::FuncOp functions[] = {parse(right), parse(wrong)};
    llvm::SmallVector<Array> *all[] = {&expected, &got};
    for (auto [func, arrays] : llvm::zip_equal(functions, all)) {
      if (!inGradients) {
        auto results =
            bastile::reference::evaluate(func, toArrays(func, inputs));
        EXPECT_TRUE(succeeded(results));
        *arrays = std::move(*results);
        continue;
      }
      auto both =
          bastile::reference::differentiateSum(func, toArrays(func, inputs));
      EXPECT_TRUE(succeeded(both));
      for (auto &gradient : both->gradients)
        if (gradient)
          arrays->push_back(std::move(*gradient));
    }
    EXPECT_EQ(expected.size(), got.size());
    for (auto [one, other] : llvm::zip_equal(expected, got))
      for (int64_t i = 0; i != one.count(); ++i)
        if (std::fabs(one.numbers[i] - other.numbers[i]) > one.error(i))
          return true;
    return false;
  }
};

/// A norm of rows of `element`, which rounds to bfloat16 before the weight
/// multiplies if `rounds`.
std::string getNorm(const char *element, bool rounds, const char *divisor,
                    const char *eps) {
  std::string text = R"mlir(
    func.func @f(%x: TYPE, %w: tensor<512xf32>) -> TYPE {
      %v = EXTEND
      %square = arith.mulf %v, %v : tensor<?x512xf32>
      %sum = tile.reduce add %square : tensor<?x512xf32> -> tensor<?x1xf32>
      %n = arith.constant DIVISOR : f32
      %ns = tile.broadcast %n like %x : f32, TYPE -> tensor<?x1xf32>
      %mean = arith.divf %sum, %ns : tensor<?x1xf32>
      %e = arith.constant EPS : f32
      %es = tile.broadcast %e like %x : f32, TYPE -> tensor<?x1xf32>
      %shifted = arith.addf %mean, %es : tensor<?x1xf32>
      %rstd = math.rsqrt %shifted : tensor<?x1xf32>
      %scale = tile.broadcast %rstd like %x
          : tensor<?x1xf32>, TYPE -> tensor<?x512xf32>
      %product = arith.mulf %v, %scale : tensor<?x512xf32>
      %normalized = MIDDLE
      %ws = tile.broadcast %w like %x
          : tensor<512xf32>, TYPE -> tensor<?x512xf32>
      %y = arith.mulf %normalized, %ws : tensor<?x512xf32>
      %z = ROUND
      return %z : TYPE
    })mlir";
  const bool isWide = element == std::string("f32");
  auto replace = [&](const std::string &name, const std::string &by) {
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, name.size(), by);
  };
  const std::string wide = " : tensor<?x512xf32>";
  replace("EXTEND", isWide ? "tile.copy %x" + wide
                           : "arith.extf %x : TYPE to tensor<?x512xf32>");
  replace("ROUND", isWide ? "tile.copy %y" + wide
                          : "arith.truncf %y" + wide + " to TYPE");
  replace("MIDDLE",
          rounds ? "arith.extf %r : tensor<?x512xbf16> to tensor<?x512xf32>"
                 : "tile.copy %product" + wide);
  if (rounds)
    replace("      %normalized =",
            "      %r = arith.truncf %product" + wide +
                " to tensor<?x512xbf16>\n %normalized =");
  replace("TYPE", std::string("tensor<?x512x") + element + ">");
  replace("DIVISOR", divisor);
  replace("EPS", eps);
  return text;
}

TEST_F(BoundsTest, exactWhereNothingIsRounded) {
  auto results = evaluate(R"mlir(
    func.func @f(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
      %0 = arith.negf %x : tensor<?x2xf32>
      return %0 : tensor<?x2xf32>
    })mlir",
                          {{{1, 2}, {1, 2}}});
  EXPECT_EQ(results[0].error(0), 0);
}

TEST_F(BoundsTest, followTheTermsOfASum) {
  const std::string text = R"mlir(
    func.func @f(%x: tensor<?x4xf32>) -> tensor<?x1xf32> {
      %0 = tile.reduce add %x : tensor<?x4xf32> -> tensor<?x1xf32>
      return %0 : tensor<?x1xf32>
    })mlir";
  // Terms of 1000 cancel to 1.
  auto results = evaluate(text, {{{1, 4}, {1000, -1000, 1000, -999}}});
  EXPECT_EQ(results[0].numbers[0], 1);
  EXPECT_GT(results[0].error(0), 4 * 1000 * kUnit);
  EXPECT_LT(results[0].error(0), 12 * 4 * 1000 * kUnit);
}

TEST_F(BoundsTest, passThroughFunctions) {
  auto results = evaluate(R"mlir(
    func.func @f(%x: tensor<?x1xf32>, %y: tensor<?x1xf32>) -> tensor<?x1xf32> {
      %0 = arith.mulf %x, %y : tensor<?x1xf32>
      %1 = math.exp %0 : tensor<?x1xf32>
      return %1 : tensor<?x1xf32>
    })mlir",
                          {{{1, 1}, {5}}, {{1, 1}, {4}}});
  // The argument 20 is off by 20 units, and so is its exponential, relative to
  // itself.
  const double size = std::exp(20.0) * kUnit;
  EXPECT_GT(results[0].error(0), 20 * size);
  EXPECT_LT(results[0].error(0), 100 * size);
}

TEST_F(BoundsTest, nothingIsKnownAroundAPole) {
  const std::string text = R"mlir(
    func.func @f(%x: tensor<?x1xf32>, %y: tensor<?x1xf32>) -> tensor<?x1xf32> {
      %0 = arith.mulf %x, %y : tensor<?x1xf32>
      %1 = math.tan %0 : tensor<?x1xf32>
      return %1 : tensor<?x1xf32>
    })mlir";
  auto getError = [&](double x) {
    return evaluate(text, {{{1, 1}, {x}}, {{1, 1}, {1 + 0x1p-20}}})[0].error(0);
  };
  // The product is off by a unit, which a slope of 2 doubles.
  EXPECT_GT(getError(0.785398), 1.5 * kUnit);
  EXPECT_LT(getError(0.785398), 20 * kUnit);
  EXPECT_EQ(getError(1.5707963 / (1 + 0x1p-20)), kInfinity);
}

TEST_F(BoundsTest, roundingsLeaveNothingButTies) {
  const std::string text = R"mlir(
    func.func @f(%x: tensor<?x1xf32>, %y: tensor<?x1xf32>) -> tensor<?x1xbf16> {
      %0 = arith.addf %x, %y : tensor<?x1xf32>
      %1 = arith.truncf %0 : tensor<?x1xf32> to tensor<?x1xbf16>
      return %1 : tensor<?x1xbf16>
    })mlir";
  auto sure = evaluate(text, {{{1, 1}, {1}}, {{1, 1}, {0x1p-9}}});
  EXPECT_EQ(sure[0].numbers[0], 1);
  EXPECT_EQ(sure[0].error(0), 0);
  auto tie = evaluate(text, {{{1, 1}, {1}}, {{1, 1}, {0x1p-8 + 0x1p-32}}});
  EXPECT_EQ(tie[0].numbers[0], 1 + 0x1p-7);
  EXPECT_EQ(tie[0].error(0), 0x1p-7);
}

TEST_F(BoundsTest, conditionsMayBeEither) {
  const std::string text = R"mlir(
    func.func @f(%x: tensor<?x1xf32>, %y: tensor<?x1xf32>) -> tensor<?x1xf32> {
      %0 = arith.mulf %x, %y : tensor<?x1xf32>
      %is = arith.cmpf olt, %0, %y : tensor<?x1xf32>
      %1 = arith.select %is, %x, %y : tensor<?x1xi1>, tensor<?x1xf32>
      return %1 : tensor<?x1xf32>
    })mlir";
  // The product is 3 in float32, which is not less.
  auto unsure = evaluate(text, {{{1, 1}, {1 - 0x1p-25}}, {{1, 1}, {3}}});
  EXPECT_GE(unsure[0].error(0), 2);
  auto sure = evaluate(text, {{{1, 1}, {0.5}}, {{1, 1}, {3}}});
  EXPECT_LT(sure[0].error(0), 1e-6);
}

TEST_F(BoundsTest, infinitiesAreSureOrNot) {
  const std::string text = R"mlir(
    func.func @f(%x: tensor<?x1xf32>, %y: tensor<?x1xf32>) -> tensor<?x1xf32> {
      %0 = arith.mulf %x, %y : tensor<?x1xf32>
      return %0 : tensor<?x1xf32>
    })mlir";
  auto check = [&](double x, double y, double wanted, double error) {
    auto results = evaluate(text, {{{1, 1}, {x}}, {{1, 1}, {y}}});
    EXPECT_EQ(results[0].numbers[0], wanted);
    EXPECT_EQ(results[0].error(0), error);
  };
  check(kInfinity, 2, kInfinity, 0);
  // These are beyond float32, and just at its end.
  check(1e30, 1e30, kInfinity, 0);
  check(0x1p127, 2 - 0x1p-25, 0x1p127 * (2 - 0x1p-25), kInfinity);
  // This is not, and does not become so where a kernel rounds it.
  constexpr double inside = 2 - 0x1p-22 - 0x1p-26;
  check(0x1p127, inside, 0x1p127 * inside, 0x1p103 * inside);
}

TEST_F(BoundsTest, tellWrongNormsApart) {
  const std::vector<Given> inputs = {makeRows(8, 512, 1), makeRows(0, 512, 2)};
  const std::string right = getNorm("f32", false, "512.0", "1.0e-5");
  EXPECT_FALSE(tells(right, right, inputs));
  // These differ by a row with one column less, another eps, and a missing
  // rounding.
  EXPECT_TRUE(tells(right, getNorm("f32", false, "511.0", "1.0e-5"), inputs));
  EXPECT_TRUE(tells(right, getNorm("f32", false, "512.0", "2.0e-5"), inputs));
  EXPECT_TRUE(tells(right, getNorm("f32", true, "512.0", "1.0e-5"), inputs));
  EXPECT_TRUE(
      tells(right, getNorm("f32", false, "511.0", "1.0e-5"), inputs, true));
}

TEST_F(BoundsTest, tellWhereNormsRound) {
  const std::vector<Given> inputs = {makeRows(8, 512, 1), makeRows(0, 512, 2)};
  const std::string llama = getNorm("bf16", true, "512.0", "1.0e-5");
  const std::string gemma = getNorm("bf16", false, "512.0", "1.0e-5");
  EXPECT_TRUE(tells(llama, gemma, inputs));
  EXPECT_TRUE(tells(gemma, llama, inputs));
  EXPECT_FALSE(tells(llama, llama, inputs));
  EXPECT_TRUE(tells(llama, getNorm("bf16", true, "508.0", "1.0e-5"), inputs));
}

TEST_F(BoundsTest, tellAnApproximation) {
  auto write = [](const char *rest) {
    return std::string(R"mlir(
    func.func @f(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
      %0 = math.exp %x : tensor<?x64xf32>
      %c = arith.constant )mlir") +
           rest + R"mlir( : f32
      %cs = tile.broadcast %c like %x
          : f32, tensor<?x64xf32> -> tensor<?x64xf32>
      %1 = arith.mulf %0, %cs : tensor<?x64xf32>
      %2 = tile.reduce add %1 : tensor<?x64xf32> -> tensor<?x1xf32>
      %3 = tile.broadcast %2 like %x
          : tensor<?x1xf32>, tensor<?x64xf32> -> tensor<?x64xf32>
      return %3 : tensor<?x64xf32>
    })mlir";
  };
  const std::vector<Given> inputs = {makeRows(4, 64, 3)};
  EXPECT_TRUE(tells(write("1.0"), write("1.001"), inputs));
  EXPECT_TRUE(tells(write("1.0"), write("1.00001"), inputs));
  EXPECT_FALSE(tells(write("1.0"), write("1.0"), inputs));
}

TEST_F(BoundsTest, tellAMissingRow) {
  // This is a sum over 8192 rows.
  auto sum = [](const char *least) {
    return std::string(R"mlir(
    func.func @f(%x: tensor<?x1xf32>, %number: tensor<?x1xf32>)
        -> tensor<1xf32> {
      %c = arith.constant )mlir") +
           least + R"mlir( : f32
      %cs = tile.broadcast %c like %x : f32, tensor<?x1xf32> -> tensor<?x1xf32>
      %is = arith.cmpf oge, %number, %cs : tensor<?x1xf32>
      %z = arith.constant 0.0 : f32
      %zs = tile.broadcast %z like %x : f32, tensor<?x1xf32> -> tensor<?x1xf32>
      %kept = arith.select %is, %x, %zs : tensor<?x1xi1>, tensor<?x1xf32>
      %0 = tile.reduce_rows add %kept : tensor<?x1xf32> -> tensor<1xf32>
      return %0 : tensor<1xf32>
    })mlir";
  };
  Given x = makeRows(8192, 1, 4), numbers{{8192, 1}, {}};
  for (int i = 0; i != 8192; ++i) {
    x.numbers[i] = std::fabs(x.numbers[i]) + 0.5;
    numbers.numbers.push_back(i);
  }
  EXPECT_TRUE(tells(sum("0.0"), sum("1.0"), {x, numbers}));
  EXPECT_TRUE(tells(sum("0.0"), sum("1.0"), {x, numbers}, true));
  EXPECT_FALSE(tells(sum("0.0"), sum("0.0"), {x, numbers}));
}

} // namespace
