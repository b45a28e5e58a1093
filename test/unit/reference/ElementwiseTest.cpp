//===- ElementwiseTest.cpp - Arithmetic and functions, by hand ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ReferenceTest.h"

using namespace bastile::test;

namespace {

class ElementwiseTest : public ReferenceTest {
protected:
  /// Writes the op on a row of numbers for each operand, of `type`.
  static std::string write(const std::string &op, size_t operands,
                           const std::string &element, size_t length,
                           const std::string &resultElement = "") {
    const std::string type =
        "tensor<?x" + std::to_string(length) + "x" + element + ">";
    std::string result = type;
    if (!resultElement.empty())
      result = "tensor<?x" + std::to_string(length) + "x" + resultElement + ">";
    std::string arguments, names;
    for (size_t i = 0; i != operands; ++i) {
      const std::string name = "%a" + std::to_string(i);
      arguments += (i ? ", " : "") + name + ": " + type;
      names += (i ? ", " : " ") + name;
    }
    std::string text = "func.func @f(" + arguments + ") -> " + result +
                       " {\n  %0 = " + op + names + " : " + type;
    if (!resultElement.empty() && resultElement != "i1")
      text += " to " + result;
    return text + "\n  return %0 : " + result + "\n}";
  }
  static std::vector<Given> toRows(const std::vector<Numbers> &operands) {
    std::vector<Given> rows;
    for (const Numbers &numbers : operands)
      rows.push_back({{1, static_cast<int64_t>(numbers.size())}, numbers});
    return rows;
  }

  void expect(const std::string &op, const std::vector<Numbers> &operands,
              const Numbers &wanted, const std::string &element = "f64",
              const std::string &resultElement = "") {
    expectNear(get(write(op, operands.size(), element, operands[0].size(),
                         resultElement),
                   toRows(operands)),
               wanted, op);
  }
  /// The gradient of the result is 1.
  void expectGradients(const std::string &op,
                       const std::vector<Numbers> &operands,
                       const std::vector<Numbers> &wanted) {
    const size_t length = operands[0].size();
    auto gradients = getGradients(
        write(op, operands.size(), "f64", length), toRows(operands),
        {{1, static_cast<int64_t>(length)}, Numbers(length, 1)});
    ASSERT_EQ(gradients.size(), wanted.size()) << op;
    for (size_t i = 0; i != wanted.size(); ++i)
      expectNear(gradients[i], wanted[i],
                 op + ", operand " + std::to_string(i));
  }
};

TEST_F(ElementwiseTest, arithmetic) {
  expect("arith.addf", {{1, kInfinity}, {2, -kInfinity}}, {3, kNaN});
  expect("arith.subf", {{1, kInfinity}, {2, 1}}, {-1, kInfinity});
  expect("arith.mulf", {{3, 0}, {2, kInfinity}}, {6, kNaN});
  expect("arith.divf", {{3, 1, 0}, {2, 0, 0}}, {1.5, kInfinity, kNaN});
  expect("arith.remf", {{7, -7}, {4, 4}}, {3, -3});
  expect("arith.negf", {{3, -kInfinity}}, {-3, kInfinity});
  expect("arith.maximumf", {{1, kNaN}, {2, 5}}, {2, kNaN});
  expect("arith.maxnumf", {{1, kNaN}, {2, 5}}, {2, 5});
  expect("arith.minimumf", {{1, kNaN}, {2, 5}}, {1, kNaN});
  expect("arith.minnumf", {{1, kNaN}, {2, 5}}, {1, 5});
  expect("math.fma", {{2}, {3}, {4}}, {10});
}

TEST_F(ElementwiseTest, functions) {
  expect("math.exp", {{0, 1, -kInfinity, 1000}},
         {1, 2.718281828459045, 0, kInfinity});
  expect("math.exp2", {{0, 3, -1}}, {1, 8, 0.5});
  expect("math.expm1", {{0, 1e-10}}, {0, 1.00000000005e-10});
  expect("math.log", {{1, 0, -1}}, {0, -kInfinity, kNaN});
  expect("math.log2", {{8, 0.25}}, {3, -2});
  expect("math.log10", {{100}}, {2});
  expect("math.log1p", {{0, -1}}, {0, -kInfinity});
  expect("math.sqrt", {{4, -1, kInfinity}}, {2, kNaN, kInfinity});
  expect("math.rsqrt", {{4, 0}}, {0.5, kInfinity});
  expect("math.tanh", {{0, 100}}, {0, 1});
  expect("math.erf", {{0, 1}}, {0, 0.8427007929497149});
  expect("math.erfc", {{0, 1}}, {1, 0.15729920705028513});
  expect("math.sin", {{0, 1.5707963267948966, kInfinity}}, {0, 1, kNaN});
  expect("math.cos", {{0}}, {1});
  expect("math.absf", {{-3, 2}}, {3, 2});
  expect("math.powf", {{2, 0, 0, -2, -2}, {3, 0, -2, 3, 0.5}},
         {8, 1, kInfinity, -8, kNaN});
  expect("math.floor", {{1.5, -1.5}}, {1, -2});
  expect("math.ceil", {{1.5, -1.5}}, {2, -1});
  expect("math.round", {{1.5, 2.5, -2.5}}, {2, 3, -3});
  expect("math.roundeven", {{1.5, 2.5, -2.5}}, {2, 2, -2});
  expect("math.trunc", {{1.5, -1.5}}, {1, -1});
  expect("math.copysign", {{3, 3}, {-1, 1}}, {-3, 3});
  expect("math.atan2", {{1, 0, -0.0}, {1, -1, -1}},
         {0.7853981633974483, 3.141592653589793, -3.141592653589793});
  expect("math.tan", {{1}}, {1.5574077246549023});
  expect("math.asin", {{1, 2}}, {1.5707963267948966, kNaN});
  expect("math.acos", {{-1, 2}}, {3.141592653589793, kNaN});
  expect("math.atan", {{kInfinity}}, {1.5707963267948966});
  expect("math.sinh", {{1, 1000}}, {1.1752011936438014, kInfinity});
  expect("math.cosh", {{1, -1000}}, {1.5430806348152437, kInfinity});
  expect("math.asinh", {{1}}, {0.881373587019543});
  expect("math.acosh", {{2, 0}}, {1.3169578969248166, kNaN});
  expect("math.atanh", {{0.5, -1}}, {0.5493061443340549, -kInfinity});
  expect("math.cbrt", {{-8, kInfinity}}, {-2, kInfinity});
}

TEST_F(ElementwiseTest, classes) {
  const Numbers numbers = {1, 0, 0x1p-127, 0x1p-126, kInfinity, kNaN};
  auto test = [&](const char *name, const Numbers &wanted) {
    expect(name, {numbers}, wanted, "f32", "i1");
  };
  test("math.isfinite", {1, 1, 1, 1, 0, 0});
  test("math.isinf", {0, 0, 0, 0, 1, 0});
  test("math.isnan", {0, 0, 0, 0, 0, 1});
  test("math.isnormal", {1, 0, 0, 1, 0, 0});
  expect("math.isnormal", {{0x1p-15, 0x1p-14}}, {0, 1}, "f16", "i1");
}

TEST_F(ElementwiseTest, integers) {
  expect("arith.addi", {{100, -1}, {100, 1}}, {-56, 0}, "i8");
  expect("arith.muli", {{7}, {-3}}, {-21}, "i32");
  expect("arith.divsi", {{-7}, {2}}, {-3}, "i32");
  expect("arith.floordivsi", {{-7}, {2}}, {-4}, "i32");
  expect("arith.remsi", {{-7}, {2}}, {-1}, "i32");
  expect("arith.divui", {{-1}, {16}}, {15}, "i8");
  expect("arith.andi", {{12}, {10}}, {8}, "i64");
  expect("arith.xori", {{12}, {10}}, {6}, "i64");
  expect("arith.maxui", {{-1}, {3}}, {-1}, "i32");
  expect("arith.shli", {{3}, {2}}, {12}, "i32");
  expect("arith.shrsi", {{-8}, {1}}, {-4}, "i32");
  expect("arith.shrui", {{-8}, {1}}, {124}, "i8");
  expect("math.ctpop", {{7}}, {3}, "i32");
  expect("arith.cmpi ult,", {{-1, 3}, {5, 5}}, {0, 1}, "i32", "i1");
  expect("arith.cmpi slt,", {{-1, 3}, {5, 3}}, {1, 0}, "i32", "i1");
}

TEST_F(ElementwiseTest, casts) {
  expect("arith.sitofp", {{-3}}, {-3}, "i32", "f32");
  expect("arith.uitofp", {{-1}}, {255}, "i8", "f32");
  expect("arith.fptosi", {{-3.7, 3.7}}, {-3, 3}, "f32", "i8");
  expect("arith.extsi", {{-3}}, {-3}, "i8", "i64");
  expect("arith.extui", {{-3}}, {253}, "i8", "i64");
  expect("arith.trunci", {{259}}, {3}, "i64", "i8");
  expect("arith.bitcast", {{1, -2}}, {0x3f800000, double(int32_t(0xc0000000))},
         "f32", "i32");
  expect("arith.bitcast", {{0x3f800000}}, {1}, "i32", "f32");
  expect("arith.extf", {{1.5}}, {1.5}, "bf16", "f32");
  // Numbers are rounded to nearest, ties to even, and beyond the range to
  // infinity or NaN.
  expect("arith.truncf", {{1 + 0x1p-8, 1 + 3 * 0x1p-8, 1 + 0x1.01p-8, 3.4e38}},
         {1, 1 + 0x1p-6, 1 + 0x1p-7, kInfinity}, "f32", "bf16");
  expect("arith.truncf", {{65519, 65520, 0x1p-25, 0x1.8p-25}},
         {65504, kInfinity, 0, 0x1p-24}, "f32", "f16");
  expect("arith.truncf", {{17, 464, 465, 0x1p-10}}, {16, 448, kNaN, 0}, "f32",
         "f8E4M3FN");
}

TEST_F(ElementwiseTest, comparisons) {
  auto compare = [&](const char *predicate, const Numbers &wanted) {
    expect(std::string("arith.cmpf ") + predicate + ",",
           {{1, 2, 3, kNaN}, {2, 2, 2, 2}}, wanted, "f32", "i1");
  };
  compare("olt", {1, 0, 0, 0});
  compare("oge", {0, 1, 1, 0});
  compare("oeq", {0, 1, 0, 0});
  compare("une", {1, 0, 1, 1});
  compare("ord", {1, 1, 1, 0});
  compare("uno", {0, 0, 0, 1});
}

TEST_F(ElementwiseTest, gradients) {
  expectGradients("arith.addf", {{2}, {3}}, {{1}, {1}});
  expectGradients("arith.subf", {{2}, {3}}, {{1}, {-1}});
  expectGradients("arith.mulf", {{2}, {3}}, {{3}, {2}});
  expectGradients("arith.divf", {{2}, {4}}, {{0.25}, {-0.125}});
  expectGradients("math.fma", {{2}, {3}, {4}}, {{3}, {2}, {1}});
  expectGradients("math.exp", {{1}}, {{2.718281828459045}});
  expectGradients("math.exp2", {{1}}, {{1.3862943611198906}});
  expectGradients("math.expm1", {{1}}, {{2.718281828459045}});
  expectGradients("math.log", {{4}}, {{0.25}});
  expectGradients("math.log2", {{4}}, {{0.36067376022224085}});
  expectGradients("math.log1p", {{3}}, {{0.25}});
  expectGradients("math.sqrt", {{4}}, {{0.25}});
  expectGradients("math.rsqrt", {{4}}, {{-0.0625}});
  expectGradients("math.tanh", {{0.5}}, {{0.7864477329659274}});
  expectGradients("math.erf", {{1}}, {{0.41510749742059466}});
  expectGradients("math.erfc", {{1}}, {{-0.41510749742059466}});
  expectGradients("math.sin", {{1}}, {{0.5403023058681398}});
  expectGradients("math.cos", {{1}}, {{-0.8414709848078965}});
  expectGradients("math.tan", {{1}}, {{3.425518820814759}});
  expectGradients("math.asin", {{0.6}}, {{1.25}});
  expectGradients("math.acos", {{0.6}}, {{-1.25}});
  expectGradients("math.atan", {{2}}, {{0.2}});
  expectGradients("math.atan2", {{3, 0}, {4, 0}}, {{0.16, 0}, {-0.12, 0}});
  expectGradients("math.sinh", {{1}}, {{1.5430806348152437}});
  expectGradients("math.cosh", {{1}}, {{1.1752011936438014}});
  expectGradients("math.asinh", {{0.75}}, {{0.8}});
  expectGradients("math.acosh", {{1.25}}, {{4.0 / 3}});
  expectGradients("math.atanh", {{0.5}}, {{4.0 / 3}});
  expectGradients("math.cbrt", {{8}}, {{1.0 / 12}});
  expectGradients("math.log10", {{2}}, {{0.21714724095162591}});
  expectGradients("math.absf", {{-2, 0, 2}}, {{-1, 0, 1}});
  expectGradients("arith.remf", {{7, -7}, {4, 4}}, {{1, 1}, {-1, 1}});
  expectGradients("math.powf", {{2}, {3}}, {{12}, {5.545177444479562}});
  expectGradients("math.floor", {{1.5}}, {});
}

TEST_F(ElementwiseTest, gradientsAtCorners) {
  expectGradients("arith.maximumf", {{1, 2, 3}, {2, 2, 2}},
                  {{0, 0.5, 1}, {1, 0.5, 0}});
  expectGradients("arith.minimumf", {{1, 2, 3}, {2, 2, 2}},
                  {{1, 0.5, 0}, {0, 0.5, 1}});
  // x^0 is 1 everywhere, and 0^y is 0 or 1.
  expectGradients("math.powf", {{0, 0, 0, 0}, {0, 1, 2, -2}},
                  {{0, 1, 0, -kInfinity}, {0, 0, 0, -kInfinity}});
}

TEST_F(ElementwiseTest, aPowerOfAConstantHalfIsARoot) {
  auto write = [](const char *exponent) {
    return std::string(R"mlir(
    func.func @f(%x: tensor<?x3xf64>, %y: tensor<?x3xf64>) -> tensor<?x3xf64> {
      %n = arith.constant )mlir") +
           exponent + R"mlir( : f64
      %ns = tile.broadcast %n like %x : f64, tensor<?x3xf64> -> tensor<?x3xf64>
      %0 = math.powf %x, %ns : tensor<?x3xf64>
      return %0 : tensor<?x3xf64>
    })mlir";
  };
  const Given x = {{1, 3}, {-kInfinity, -0.0, 4}}, ones = {{1, 3}, {1, 1, 1}};
  expectNear(get(write("0.5"), {x, ones}), {kNaN, -0.0, 2}, "0.5");
  expectNear(get(write("-0.5"), {x, ones}), {kNaN, -kInfinity, 0.5}, "-0.5");
  expectNear(getGradients(write("0.5"), {x, ones}, ones)[0],
             {kNaN, -kInfinity, 0.25}, "gradient of 0.5");
  expectNear(getGradients(write("1.5"), {x, ones}, ones)[0], {kNaN, -0.0, 3},
             "gradient of 1.5");
  // With a given exponent, the power is C's.
  expect("math.powf", {{-kInfinity, 4}, {0.5, 0.5}}, {kInfinity, 2});
}

TEST_F(ElementwiseTest, aNumberTakesNothingAtATie) {
  const std::string text = R"mlir(
    func.func @f(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
      %limit = arith.constant 2.0 : f32
      %limits = tile.broadcast %limit like %x
          : f32, tensor<?x3xf32> -> tensor<?x3xf32>
      %0 = arith.minimumf %x, %limits : tensor<?x3xf32>
      return %0 : tensor<?x3xf32>
    })mlir";
  EXPECT_EQ(getGradients(text, {{{1, 3}, {1, 2, 3}}}, {{1, 3}, {5, 5, 5}})[0],
            Numbers({5, 5, 0}));
}

TEST_F(ElementwiseTest, gradientsAreNotRoundedByCasts) {
  // Only the value is rounded in the middle, not the gradient.
  const std::string text = R"mlir(
    func.func @f(%x: tensor<?x1xf32>, %y: tensor<?x1xf32>) -> tensor<?x1xf32> {
      %0 = arith.truncf %x : tensor<?x1xf32> to tensor<?x1xbf16>
      %1 = arith.extf %0 : tensor<?x1xbf16> to tensor<?x1xf32>
      %2 = arith.mulf %1, %y : tensor<?x1xf32>
      return %2 : tensor<?x1xf32>
    })mlir";
  const double x = 1 + 0x1p-10, y = 3 + 0x1p-12;
  EXPECT_EQ(get(text, {{{1, 1}, {x}}, {{1, 1}, {y}}}), Numbers({y}));
  EXPECT_EQ(getGradients(text, {{{1, 1}, {x}}, {{1, 1}, {y}}}, {{1, 1}, {1}}),
            std::vector<Numbers>({{y}, {1}}));
}

TEST_F(ElementwiseTest, sumsOfGradients) {
  const std::string text = R"mlir(
    func.func @f(%x: tensor<?x1xf64>) -> (tensor<?x1xf64>, tensor<?x1xf64>) {
      %0 = arith.mulf %x, %x : tensor<?x1xf64>
      %1 = arith.mulf %0, %x : tensor<?x1xf64>
      return %1, %0 : tensor<?x1xf64>, tensor<?x1xf64>
    })mlir";
  EXPECT_EQ(getGradients(text, {{{1, 1}, {2}}}, {{1, 1}, {1}})[0],
            Numbers({12}));
  mlir::func::FuncOp func = parse(text);
  llvm::SmallVector<Array> inputs = toArrays(func, {{{1, 1}, {2}}});
  llvm::SmallVector<std::optional<Array>> seeds = {inputs[0], inputs[0]};
  auto all = bastile::reference::differentiate(func, inputs, seeds);
  ASSERT_TRUE(succeeded(all));
  EXPECT_EQ(all->gradients[0]->numbers, Numbers({2 * 12 + 2 * 4}));
  auto first = bastile::reference::differentiateSum(func, inputs);
  ASSERT_TRUE(succeeded(first));
  EXPECT_EQ(first->gradients[0]->numbers, Numbers({12}));
}

} // namespace
