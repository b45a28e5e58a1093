//===- PrimitivesTest.cpp - The primitives on numbers by hand -------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "ReferenceTest.h"

using namespace bastile::test;

namespace {

/// A function of %x with one op, written with its types.
std::string wrap(const std::string &argument, const std::string &op,
                 const std::string &result) {
  return "func.func @f(%x: " + argument + ") -> " + result +
         " {\n  %0 = " + op + "\n  return %0 : " + result + "\n}";
}

class PrimitivesTest : public ReferenceTest {
protected:
  /// The input has two rows of four columns.
  const Given x = {{2, 4}, {1, -2, 3, 4, 5, 6, 7, 0}};

  void expect(const std::string &op, const std::string &result,
              const Numbers &wanted) {
    expectNear(get(wrap("tensor<?x4xf32>", op, result), {x}), wanted, op);
  }
  /// The gradient of %x, given that of the result.
  void expectGradient(const std::string &op, const std::string &result,
                      const Given &seed, const Numbers &wanted) {
    auto gradients =
        getGradients(wrap("tensor<?x4xf32>", op, result), {x}, seed);
    ASSERT_EQ(gradients.size(), 1u) << op;
    expectNear(gradients[0], wanted, op);
  }
};

TEST_F(PrimitivesTest, reduce) {
  const std::string statistic = "tensor<?x1xf32>";
  auto op = [](const char *kind, const char *result) {
    return std::string("tile.reduce ") + kind + " %x : tensor<?x4xf32> -> " +
           result;
  };
  expect(op("add", "tensor<?x1xf32>"), statistic, {6, 18});
  expect(op("max", "tensor<?x1xf32>"), statistic, {4, 7});
  expect(op("min", "tensor<?x1xf32>"), statistic, {-2, 0});
  expect(op("add", "tensor<?x2xf32>"), "tensor<?x2xf32>", {-1, 7, 11, 7});
  expectGradient(op("add", "tensor<?x2xf32>"), "tensor<?x2xf32>",
                 {{2, 2}, {1, 2, 3, 4}}, {1, 1, 2, 2, 3, 3, 4, 4});
  expectGradient(op("max", "tensor<?x1xf32>"), statistic, {{2, 1}, {10, 20}},
                 {0, 0, 0, 10, 0, 0, 20, 0});
}

TEST_F(PrimitivesTest, reduceSharesAmongEqual) {
  const std::string text =
      wrap("tensor<?x4xf32>",
           "tile.reduce max %x : tensor<?x4xf32> -> tensor<?x1xf32>",
           "tensor<?x1xf32>");
  expectNear(getGradients(text, {{{1, 4}, {2, 5, 5, 1}}}, {{1, 1}, {3}})[0],
             {0, 1.5, 1.5, 0}, "ties");
}

TEST_F(PrimitivesTest, reduceRows) {
  const std::string row = "tensor<4xf32>";
  const std::string types = " %x : tensor<?x4xf32> -> tensor<4xf32>";
  expect("tile.reduce_rows add" + types, row, {6, 4, 10, 4});
  expect("tile.reduce_rows max" + types, row, {5, 6, 7, 4});
  expectGradient("tile.reduce_rows add" + types, row, {{4}, {1, 2, 3, 4}},
                 {1, 2, 3, 4, 1, 2, 3, 4});
  expectGradient("tile.reduce_rows max" + types, row, {{4}, {1, 2, 3, 4}},
                 {0, 0, 0, 4, 1, 2, 3, 0});
}

TEST_F(PrimitivesTest, reduceRowsOverSomeLeadingSizes) {
  const Given all = {{2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 3, 1, 2}};
  const std::string type = "tensor<?x?x2xf32>";
  auto check = [&](const char *kind, const char *result, const Given &seed,
                   const Numbers &wanted, const Numbers &gradient) {
    const std::string text = wrap(type,
                                  std::string("tile.reduce_rows ") + kind +
                                      " %x : " + type + " -> " + result,
                                  result);
    auto results = evaluate(text, {all});
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(results[0].sizes(), llvm::ArrayRef<int64_t>(seed.sizes));
    EXPECT_EQ(results[0].numbers, wanted) << kind << " to " << result;
    EXPECT_EQ(getGradients(text, {all}, seed)[0], gradient)
        << kind << " to " << result;
    // The sums are rounded, which depends on their terms, none of them
    // negative.
    for (int64_t i = 0; i != results[0].count(); ++i)
      if (kind == std::string("add"))
        EXPECT_GT(results[0].error(i), wanted[i] * 0x1p-24);
      else
        EXPECT_EQ(results[0].error(i), 0);
  };
  check("add", "tensor<?x1x2xf32>", {{2, 1, 2}, {1, 2, 3, 4}}, {9, 12, 17, 13},
        {1, 2, 1, 2, 1, 2, 3, 4, 3, 4, 3, 4});
  check("add", "tensor<1x?x2xf32>", {{1, 3, 2}, {1, 2, 3, 4, 5, 6}},
        {8, 10, 12, 7, 6, 8}, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6});
  check("add", "tensor<1x1x2xf32>", {{1, 1, 2}, {1, 2}}, {26, 25},
        {1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2});
  check("max", "tensor<1x?x2xf32>", {{1, 3, 2}, {1, 2, 3, 4, 5, 6}},
        {7, 8, 9, 4, 5, 6}, {0, 0, 0, 4, 5, 6, 1, 2, 3, 0, 0, 0});
}

TEST_F(PrimitivesTest, reduceRowsKeepsASizeOfOne) {
  // A dynamic size that is left stays dynamic, even where it happens to be 1 or
  // 0.
  const std::string text =
      wrap("tensor<?x?x2xf32>",
           "tile.reduce_rows add %x : tensor<?x?x2xf32> -> tensor<?x1x2xf32>",
           "tensor<?x1x2xf32>");
  EXPECT_EQ(get(text, {{{1, 2, 2}, {1, 2, 3, 4}}}), Numbers({4, 6}));
  auto none = evaluate(text, {{{0, 2, 2}, {}}});
  EXPECT_EQ(none[0].sizes(), llvm::ArrayRef<int64_t>({0, 1, 2}));
  EXPECT_EQ(get(text, {{{2, 0, 2}, {}}}), Numbers({0, 0, 0, 0}));
}

TEST_F(PrimitivesTest, reduceNoRows) {
  const std::string types = " %x : tensor<?x2xf32> -> tensor<2xf32>";
  for (auto [kind, neutral] :
       {std::pair("add", 0.0), std::pair("max", -kInfinity),
        std::pair("min", kInfinity)})
    EXPECT_EQ(get(wrap("tensor<?x2xf32>",
                       std::string("tile.reduce_rows ") + kind + types,
                       "tensor<2xf32>"),
                  {{{0, 2}, {}}}),
              Numbers({neutral, neutral}));
}

TEST_F(PrimitivesTest, whatFollowsASumOfNoRows) {
  EXPECT_EQ(get(R"mlir(func.func @f(%x: tensor<?x2xf32>, %w: tensor<2xf32>)
                           -> tensor<2xf32> {
    %0 = tile.reduce_rows add %x : tensor<?x2xf32> -> tensor<2xf32>
    %1 = arith.addf %0, %w : tensor<2xf32>
    return %1 : tensor<2xf32>
  })mlir",
                {{{0, 2}, {}}, {{2}, {3, 4}}}),
            Numbers({3, 4}));
}

TEST_F(PrimitivesTest, bands) {
  const Given rows = {{3, 2}, {1, 5, 3, 4, 7, 8}};
  const std::string type = "tensor<?x2xf32>";
  auto run = [&](const std::string &op) {
    return get(wrap(type, op, type), {rows});
  };
  EXPECT_EQ(run("tile.reduce_bands max %x of 2 : tensor<?x2xf32>"),
            Numbers({3, 5, 3, 5, 7, 8}));
  EXPECT_EQ(run("tile.reduce_bands add %x of 2 : tensor<?x2xf32>"),
            Numbers({4, 9, 4, 9, 7, 8}));
  const std::string pack = "tile.pack_bands %x of 2 : tensor<?x2xf32> -> "
                           "tensor<?x2xf32>";
  EXPECT_EQ(run(pack), Numbers({1, 5, 7, 8}));
  EXPECT_EQ(
      getGradients(wrap(type, pack, type), {rows}, {{2, 2}, {1, 2, 3, 4}})[0],
      Numbers({1, 2, 0, 0, 3, 4}));
  const std::string repeat = R"mlir(
    func.func @f(%s: tensor<?x1xf32>, %x: tensor<?x2xf32>) -> tensor<?x1xf32> {
      %0 = tile.repeat_bands %s of 2 like %x
          : tensor<?x1xf32>, tensor<?x2xf32> -> tensor<?x1xf32>
      return %0 : tensor<?x1xf32>
    })mlir";
  EXPECT_EQ(get(repeat, {{{2, 1}, {1, 2}}, rows}), Numbers({1, 1, 2}));
  // An operand that only gives sizes has no gradient.
  auto gradients =
      getGradients(repeat, {{{2, 1}, {1, 2}}, rows}, {{3, 1}, {1, 2, 4}});
  EXPECT_EQ(gradients, std::vector<Numbers>({{3, 4}}));
}

TEST_F(PrimitivesTest, broadcast) {
  auto check = [&](const std::string &source, const Given &given,
                   const Numbers &wanted, const Numbers &gradient) {
    const std::string text = "func.func @f(%s: " + source +
                             ", %x: tensor<?x4xf32>) -> tensor<?x4xf32> {\n"
                             "  %0 = tile.broadcast %s like %x : " +
                             source +
                             ", tensor<?x4xf32> -> tensor<?x4xf32>\n"
                             "  return %0 : tensor<?x4xf32>\n}";
    EXPECT_EQ(get(text, {given, x}), wanted) << source;
    EXPECT_EQ(
        getGradients(text, {given, x}, {{2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}}),
        std::vector<Numbers>({gradient}))
        << source;
  };
  check("tensor<4xf32>", {{4}, {1, 2, 3, 4}}, {1, 2, 3, 4, 1, 2, 3, 4},
        {6, 8, 10, 12});
  check("tensor<1xf32>", {{1}, {3}}, {3, 3, 3, 3, 3, 3, 3, 3}, {36});
  check("tensor<?x1xf32>", {{2, 1}, {3, 5}}, {3, 3, 3, 3, 5, 5, 5, 5},
        {10, 26});
  check("tensor<?x2xf32>", {{2, 2}, {1, 2, 3, 4}}, {1, 1, 2, 2, 3, 3, 4, 4},
        {3, 7, 11, 15});
  check("tensor<1x4xf32>", {{1, 4}, {1, 2, 3, 4}}, {1, 2, 3, 4, 1, 2, 3, 4},
        {6, 8, 10, 12});
}

TEST_F(PrimitivesTest, broadcastRepeatsLeadingSizes) {
  const std::string text = R"mlir(
    func.func @f(%s: tensor<1x?x1x1xf32>, %x: tensor<?x?x?x1xf32>)
        -> tensor<?x?x?x1xf32> {
      %0 = tile.broadcast %s like %x
          : tensor<1x?x1x1xf32>, tensor<?x?x?x1xf32> -> tensor<?x?x?x1xf32>
      return %0 : tensor<?x?x?x1xf32>
    })mlir";
  const Given angles = {{1, 2, 1, 1}, {10, 20}};
  const Given heads = {{2, 2, 3, 1}, Numbers(12)};
  EXPECT_EQ(get(text, {angles, heads}),
            Numbers({10, 10, 10, 20, 20, 20, 10, 10, 10, 20, 20, 20}));
  EXPECT_EQ(getGradients(text, {angles, heads},
                         {{2, 2, 3, 1}, {1, 1, 1, 2, 2, 2, 4, 4, 4, 8, 8, 8}}),
            std::vector<Numbers>({{15, 30}}));
}

TEST_F(PrimitivesTest, splitAndJoin) {
  auto check = [&](const std::string &how, int count,
                   const std::vector<Numbers> &pieces) {
    std::string names = "%p0", types = "tensor<?x1xf32>";
    for (int i = 1; i != count; ++i) {
      names += ", %p" + std::to_string(i);
      types += ", tensor<?x1xf32>";
    }
    const std::string split = "  " + names + " = tile.split " + how +
                              " %x : tensor<?x4xf32> -> " + types + "\n";
    auto results =
        evaluate("func.func @f(%x: tensor<?x4xf32>) -> (" + types + ") {\n" +
                     split + "  return " + names + " : " + types + "\n}",
                 {{{1, 4}, {1, 2, 3, 4}}});
    ASSERT_EQ(results.size(), pieces.size());
    for (size_t i = 0; i != pieces.size(); ++i)
      EXPECT_EQ(results[i].numbers, pieces[i]) << how << i;
    const std::string back =
        "func.func @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {\n" + split +
        "  %0 = tile.join " + how + " " + names + " : " + types +
        " -> tensor<?x4xf32>\n  return %0 : tensor<?x4xf32>\n}";
    EXPECT_EQ(get(back, {x}), x.numbers) << how;
    EXPECT_EQ(getGradients(back, {x}, x)[0], x.numbers) << how;
  };
  check("", 4, {{1}, {2}, {3}, {4}});
  check("interleaved", 4, {{1}, {2}, {3}, {4}});
  check("interleaved parts(2)", 4, {{1}, {2}, {3}, {4}});

  auto pieces = [&](const std::string &how) {
    auto results = evaluate(
        "func.func @f(%x: tensor<?x4xf32>) -> (tensor<?x2xf32>, "
        "tensor<?x2xf32>) {\n  %0, %1 = tile.split " +
            how +
            " %x : tensor<?x4xf32> -> tensor<?x2xf32>, tensor<?x2xf32>\n"
            "  return %0, %1 : tensor<?x2xf32>, tensor<?x2xf32>\n}",
        {x});
    return std::vector<Numbers>{results[0].numbers, results[1].numbers};
  };
  EXPECT_EQ(pieces(""), std::vector<Numbers>({{1, -2, 5, 6}, {3, 4, 7, 0}}));
  EXPECT_EQ(pieces("interleaved"),
            std::vector<Numbers>({{1, 3, 5, 7}, {-2, 4, 6, 0}}));
}

TEST_F(PrimitivesTest, partsAreSplitEach) {
  std::string type = "tensor<?x2xf32>";
  auto results = evaluate(
      R"mlir(func.func @f(%x: tensor<?x8xf32>) -> (tensor<?x2xf32>,
          tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>) {
        %a, %b, %c, %d = tile.split interleaved parts(2) %x : tensor<?x8xf32>
            -> tensor<?x2xf32>, tensor<?x2xf32>, tensor<?x2xf32>,
               tensor<?x2xf32>
        return %a, %b, %c, %d : tensor<?x2xf32>, tensor<?x2xf32>,
            tensor<?x2xf32>, tensor<?x2xf32>
      })mlir",
      {{{1, 8}, {0, 1, 2, 3, 4, 5, 6, 7}}});
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].numbers, Numbers({0, 2}));
  EXPECT_EQ(results[1].numbers, Numbers({1, 3}));
  EXPECT_EQ(results[2].numbers, Numbers({4, 6}));
  EXPECT_EQ(results[3].numbers, Numbers({5, 7}));
}

TEST_F(PrimitivesTest, aPieceThatIsNotUsedHasNoGradient) {
  const std::string text = R"mlir(
    func.func @f(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
      %0, %1 = tile.split interleaved %x
          : tensor<?x4xf32> -> tensor<?x2xf32>, tensor<?x2xf32>
      return %1 : tensor<?x2xf32>
    })mlir";
  EXPECT_EQ(getGradients(text, {x}, {{2, 2}, {1, 2, 3, 4}})[0],
            Numbers({0, 1, 0, 2, 0, 3, 0, 4}));
}

TEST_F(PrimitivesTest, iotaAndConditions) {
  const std::string text = R"mlir(
    func.func @f(%x: tensor<?x4xf32>, %t: tensor<?x1xi64>) -> tensor<?x4xf32> {
      %columns = tile.iota like %x : tensor<?x4xi32>, tensor<?x4xf32>
      %narrow = arith.trunci %t : tensor<?x1xi64> to tensor<?x1xi32>
      %targets = tile.broadcast %narrow like %x
          : tensor<?x1xi32>, tensor<?x4xf32> -> tensor<?x4xi32>
      %is = arith.cmpi eq, %columns, %targets : tensor<?x4xi32>
      %zero = arith.constant 0.0 : f32
      %zeros = tile.broadcast %zero like %x
          : f32, tensor<?x4xf32> -> tensor<?x4xf32>
      %0 = arith.select %is, %x, %zeros : tensor<?x4xi1>, tensor<?x4xf32>
      return %0 : tensor<?x4xf32>
    })mlir";
  const Given targets = {{2, 1}, {2, -1}};
  EXPECT_EQ(get(text, {x, targets}), Numbers({0, 0, 3, 0, 0, 0, 0, 0}));
  EXPECT_EQ(getGradients(text, {x, targets}, x),
            std::vector<Numbers>({{0, 0, 3, 0, 0, 0, 0, 0}}));
}

TEST_F(PrimitivesTest, stopGradientStops) {
  const std::string text = R"mlir(
    func.func @f(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
      %0 = tile.stop_gradient %x : tensor<?x4xf32>
      %1 = arith.mulf %x, %0 : tensor<?x4xf32>
      return %1 : tensor<?x4xf32>
    })mlir";
  EXPECT_EQ(getGradients(text, {x}, {{2, 4}, Numbers(8, 2)})[0],
            Numbers({2, -4, 6, 8, 10, 12, 14, 0}));
}

TEST_F(PrimitivesTest, takesNothingOfKernels) {
  EXPECT_NE(getError(wrap("tensor<?x4xf32>",
                          "tile.reduce_rows add %x partial : tensor<?x4xf32> "
                          "-> tensor<?x4xf32>",
                          "tensor<?x4xf32>"),
                     {x})
                .find("has no meaning to the reference"),
            std::string::npos);
}

TEST_F(PrimitivesTest, checksSizes) {
  const std::string text = R"mlir(
    func.func @f(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) -> tensor<?x4xf32> {
      %0 = arith.addf %x, %y : tensor<?x4xf32>
      return %0 : tensor<?x4xf32>
    })mlir";
  EXPECT_NE(getError(text, {x, {{1, 4}, Numbers(4)}})
                .find("combines tensors of different sizes"),
            std::string::npos);
  EXPECT_NE(getError(text, {x, {{2, 3}, Numbers(6)}})
                .find("cannot be evaluated on the array given for its argument "
                      "1 of type 'tensor<?x4xf32>'"),
            std::string::npos);
}

TEST_F(PrimitivesTest, slicesMakeNoDifference) {
  // More elements than a slice has, in the middle dimension.
  const int64_t outer = 2, rows = 700, columns = 32;
  const std::string text = R"mlir(
    func.func @f(%x: tensor<?x?x32xf32>, %w: tensor<32xf32>,
                 %s: tensor<?x1x1xf32>) -> tensor<?x?x32xf32> {
      %0 = tile.broadcast %w like %x
          : tensor<32xf32>, tensor<?x?x32xf32> -> tensor<?x?x32xf32>
      %1 = tile.broadcast %s like %x
          : tensor<?x1x1xf32>, tensor<?x?x32xf32> -> tensor<?x?x32xf32>
      %2 = arith.mulf %x, %0 : tensor<?x?x32xf32>
      %3 = arith.mulf %2, %1 : tensor<?x?x32xf32>
      return %3 : tensor<?x?x32xf32>
    })mlir";
  Given x{{outer, rows, columns}, {}}, w{{columns}, {}},
      s{{outer, 1, 1}, {2, 3}};
  for (int64_t i = 0; i != outer * rows * columns; ++i)
    x.numbers.push_back(i % 7);
  for (int64_t i = 0; i != columns; ++i)
    w.numbers.push_back(i);
  Numbers wanted, weight(columns), scale(outer);
  for (int64_t i = 0; i != outer * rows * columns; ++i) {
    const int64_t column = i % columns, half = i / (rows * columns);
    wanted.push_back(x.numbers[i] * w.numbers[column] * s.numbers[half]);
    weight[column] += x.numbers[i] * s.numbers[half];
    scale[half] += x.numbers[i] * w.numbers[column];
  }
  expectNear(get(text, {x, w, s}), wanted, "values");
  auto gradients = getGradients(text, {x, w, s},
                                {x.sizes, Numbers(outer * rows * columns, 1)});
  ASSERT_EQ(gradients.size(), 3u);
  expectNear(gradients[1], weight, "gradient of the weight");
  expectNear(gradients[2], scale, "gradient of the scale");
}

} // namespace
