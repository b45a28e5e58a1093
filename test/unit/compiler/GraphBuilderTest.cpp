//===- GraphBuilderTest.cpp - Functions built op by op --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/GraphBuilder.h"
#include "gtest/gtest.h"

using namespace bastile;

namespace {

using Sizes = std::vector<int64_t>;

testing::AssertionResult contains(const std::string &text,
                                  const std::string &part) {
  if (text.find(part) != std::string::npos)
    return testing::AssertionSuccess() << text;
  return testing::AssertionFailure() << text << "\nhas no " << part;
}

class GraphBuilderTest : public testing::Test {
protected:
  using Id = GraphBuilder::Id;

  Id argument(const char *name, const char *type,
              std::vector<int64_t> sizes = {}) {
    auto id = graph.addArgument(name, type, sizes);
    EXPECT_TRUE(bool(id));
    return *id;
  }
  Id apply(const char *function, std::vector<Id> operands) {
    auto id = graph.apply(function, operands);
    EXPECT_TRUE(bool(id)) << id.takeError().message();
    return *id;
  }
  std::string error(const char *function, std::vector<Id> operands) {
    return graph.apply(function, operands).takeError().message();
  }
  std::string finish(std::vector<Id> results) {
    auto text = graph.finish(results);
    return text ? *text : "error: " + text.takeError().message();
  }

  GraphBuilder graph{"f"};
};

TEST_F(GraphBuilderTest, RoundsOnceToTheTypeOfTheFirstArgument) {
  Id x = argument("x", "tensor<?x64xbf16>"),
     w = argument("w", "tensor<64xf32>");
  std::string text = finish({apply("multiply", {apply("exp", {x}), w})});
  EXPECT_TRUE(contains(text, "-> tensor<?x64xbf16>"));
  EXPECT_EQ(text.find("truncf"), text.rfind("truncf"));
}

TEST_F(GraphBuilderTest, RowsOfAnyLengthGoWithThoseOfAProduct) {
  Id x = argument("x", "tensor<?x?x64xf32>"),
     y = argument("y", "tensor<?x?x64xf32>"),
     z = argument("z", "tensor<?x1x?xi32>");
  auto product = graph.multiply(x, y, 1, 1);
  ASSERT_TRUE(bool(product));
  std::string text = finish({apply("add", {*product, z})});
  EXPECT_TRUE(contains(text, "-> tensor<?x?x?xf32>"));
}

TEST_F(GraphBuilderTest, RepeatsToAnotherShape) {
  Id x = argument("x", "tensor<?x?x64xf32>", {2, 5, 64}),
     y = argument("y", "tensor<?x1x64xi32>", {2, 1, 64});
  auto repeated = graph.expandAs(y, x);
  ASSERT_TRUE(bool(repeated));
  EXPECT_EQ(graph.describe(*repeated).sizes, (Sizes{2, 5, 64}));
  EXPECT_TRUE(contains(finish({*repeated}),
                       "tile.broadcast %arg1 like %arg0 : tensor<?x1x64xi32>, "
                       "tensor<?x?x64xf32> -> tensor<?x?x64xi32>"));
  EXPECT_EQ(graph.expandAs(x, y).takeError().message(),
            "shape (2, 5, 64) cannot be repeated to (2, 1, 64)");
}

TEST_F(GraphBuilderTest, ArgumentsHaveNames) {
  Id x = argument("gate", "tensor<?x64xf32>");
  argument("up", "tensor<?x64xf32>");
  std::string text = finish({x});
  EXPECT_TRUE(contains(text, "%arg0: tensor<?x64xf32> {tile.name = \"gate\"}"));
  EXPECT_TRUE(contains(text, "%arg1: tensor<?x64xf32> {tile.name = \"up\"}"));
}

TEST_F(GraphBuilderTest, NumbersHaveTheHighestPrecisionAround) {
  Id x = argument("x", "tensor<?x64xf64>");
  std::string text = finish({apply("add", {x, graph.addNumber(0.1)})});
  EXPECT_TRUE(contains(text, "1.000000e-01 : f64"));
}

TEST_F(GraphBuilderTest, BroadcastsAsNumPyDoes) {
  Id x = argument("x", "tensor<?x64xf32>", {8, 64});
  Id s = argument("s", "tensor<?x1xf32>", {8, 1});
  Id w = argument("w", "tensor<64xf32>", {64});
  EXPECT_EQ(graph.describe(apply("add", {w, x})).sizes, (Sizes{8, 64}));
  EXPECT_EQ(graph.describe(apply("add", {s, w})).sizes, (Sizes{8, 64}));
  EXPECT_EQ(graph.describe(apply("add", {s, s})).sizes, (Sizes{8, 1}));
  EXPECT_EQ(graph.describe(apply("add", {w, w})).sizes, (Sizes{64}));
}

TEST_F(GraphBuilderTest, NamesShapesThatDoNotFit) {
  Id x = argument("x", "tensor<?x64xf32>", {8, 64});
  Id y = argument("y", "tensor<?x64xf32>", {4, 64});
  Id z = argument("z", "tensor<?x?x64xf32>", {2, 8, 64});
  EXPECT_EQ(error("add", {x, y}), "shapes (8, 64) and (4, 64) do not fit");
  EXPECT_EQ(
      error("add", {x, z}),
      "shapes (8, 64) and (2, 8, 64) do not fit; what has no leading size "
      "must be given one of 1");
}

TEST_F(GraphBuilderTest, RepeatedRowsAreConvertedAfterwards) {
  Id x = argument("x", "tensor<?x?x64xf32>", {2, 8, 64});
  Id c = argument("c", "tensor<1x?x64xbf16>", {1, 8, 64});
  std::string text = finish({apply("multiply", {c, x})});
  EXPECT_TRUE(contains(text, "tile.broadcast %arg1 like %arg0"));
}

TEST_F(GraphBuilderTest, SizesOfTheTypeStandInForAnExample) {
  Id x = argument("x", "tensor<?x64xf32>");
  GraphBuilder::Description description = graph.describe(x);
  EXPECT_EQ(description.sizes, (Sizes{-1, 64}));
  EXPECT_EQ(description.isFixed, (std::vector<bool>{false, true}));
  EXPECT_EQ(description.element, "f32");
}

TEST_F(GraphBuilderTest, NumbersColumnsInThePrecisionOfFormulas) {
  Id x = argument("x", "tensor<?x64xbf16>"),
     w = argument("w", "tensor<64xf32>");
  auto columns = graph.numberColumns(x);
  ASSERT_TRUE(bool(columns));
  EXPECT_EQ(graph.describe(*columns).element, "f32");
  EXPECT_EQ(graph.describe(*columns).sizes, (Sizes{-1, 64}));
  EXPECT_TRUE(contains(graph.numberColumns(w).takeError().message(),
                       "takes rows, but the shape is (64,)"));
  EXPECT_FALSE(bool(graph.numberColumns(graph.addNumber(2))));
  EXPECT_TRUE(contains(finish({apply("add", {x, *columns})}),
                       "arith.sitofp %1 : tensor<?x64xi32>"));
}

TEST_F(GraphBuilderTest, TellsConditionsFromNumbers) {
  Id x = argument("x", "tensor<?x64xf32>", {8, 64});
  Id t = argument("t", "tensor<?x1xi64>", {8, 1});
  Id condition = apply("less", {x, x});
  EXPECT_EQ(error("add", {condition, x}),
            "takes numbers, but got a condition of the shape (8, 64)");
  EXPECT_EQ(error("select", {x, x, x}),
            "takes a condition, but got (8, 64) of f32");
  EXPECT_EQ(error("exp", {t}),
            "takes floats, but got (8, 1) of i64, which has to be converted");
  auto converted = graph.convert(t, "f32");
  ASSERT_TRUE(bool(converted));
  apply("exp", {*converted});
  EXPECT_TRUE(contains(finish({condition}), "the result is a condition"));
}

TEST_F(GraphBuilderTest, ComputesWithIntegersInTheWidestType) {
  Id x = argument("x", "tensor<?x64xi8>", {8, 64});
  Id y = argument("y", "tensor<?x64xi32>", {8, 64});
  Id f = argument("f", "tensor<?x64xbf16>", {8, 64});
  Id sum = apply("add", {x, apply("multiply", {y, graph.addInteger(3)})});
  EXPECT_EQ(graph.describe(sum).element, "i32");
  EXPECT_EQ(error("add", {x, graph.addInteger(128)}),
            "takes numbers that integers of 8 bits hold, but got 128");
  EXPECT_EQ(error("shiftLeft", {x, f}),
            "takes integers, but got (8, 64) of bf16");
  EXPECT_EQ(error("shiftLeft", {x, graph.addNumber(0.5)}),
            "takes integers, but got a number");
  EXPECT_EQ(graph.describe(apply("floorDivide", {x, f})).element, "f32");
  EXPECT_EQ(graph.describe(apply("divide", {x, y})).element, "f32");
  EXPECT_EQ(graph.describe(apply("add", {x, graph.addNumber(0.5)})).element,
            "f32");
  std::string text = finish({sum, apply("multiply", {y, f})});
  EXPECT_TRUE(contains(text, "arith.extsi %arg0"));
  EXPECT_TRUE(contains(text, "arith.sitofp %arg1 : tensor<?x64xi32>"));
}

TEST_F(GraphBuilderTest, DividesByConstantsWithoutChecks) {
  Id x = argument("x", "tensor<?x64xi32>");
  std::string text = finish({apply("floorDivide", {x, graph.addInteger(8)}),
                             apply("remainder", {x, graph.addInteger(8)})});
  EXPECT_TRUE(contains(text, "arith.shrsi"));
  EXPECT_TRUE(contains(text, "arith.andi"));
  EXPECT_FALSE(contains(text, "arith.divsi"));
  EXPECT_FALSE(contains(text, "arith.select"));
}

TEST_F(GraphBuilderTest, NumbersElementsAlongDimensions) {
  Id x = argument("x", "tensor<?x4x64xbf16>", {2, 4, 64});
  auto columns = graph.iota(x, {2}), rows = graph.iota(x, {0, 1});
  ASSERT_TRUE(columns && rows);
  EXPECT_EQ(graph.describe(*columns).sizes, (Sizes{2, 4, 64}));
  EXPECT_EQ(graph.describe(*rows).sizes, (Sizes{2, 4, 1}));
  EXPECT_EQ(graph.describe(*rows).element, "i32");
  for (const std::vector<int64_t> &dimensions :
       std::vector<std::vector<int64_t>>{{}, {3}, {-1}, {1, 2}, {1, 0}})
    EXPECT_TRUE(contains(graph.iota(x, dimensions).takeError().message(),
                         "elements of the shape (2, 4, 64) cannot be numbered "
                         "along the dimensions ("));
  EXPECT_TRUE(contains(finish({*columns, *rows}),
                       "tile.iota over [0, 1] like %arg0 : "
                       "tensor<?x4x1xi32>, tensor<?x4x64xbf16>"));
}

TEST_F(GraphBuilderTest, RejectsWhatThereIsNot) {
  Id x = argument("x", "tensor<?x64xf32>");
  EXPECT_EQ(error("sinh", {x}), "there is no function 'sinh'");
  EXPECT_EQ(error("add", {x}), "'add' takes 2 operands, but got 1");
  EXPECT_FALSE(bool(graph.reduce("rowProduct", x)));
  EXPECT_FALSE(bool(graph.applyOp("exp", {x}, {})));
  EXPECT_FALSE(bool(graph.addArgument("y", "tensor<f32>")));
  EXPECT_FALSE(bool(graph.addArgument("y", "vector<4xf32>")));
}

TEST_F(GraphBuilderTest, OpsTakeOperandsInTheirTypes) {
  Id x = argument("x", "tensor<?x64xbf16>");
  auto result = graph.applyOp("softmax", {x}, {});
  ASSERT_TRUE(bool(result));
  EXPECT_EQ(graph.describe(result->front()).element, "bf16");
  EXPECT_FALSE(contains(finish(*result), "extf"));
}

TEST_F(GraphBuilderTest, OpsExtendWhatTheyDoNotTakeTogether) {
  Id x = argument("x", "tensor<?x64xbf16>");
  auto result =
      graph.applyOp("reglu", {apply("exp", {x}), std::optional<Id>(x)}, {});
  ASSERT_TRUE(bool(result)) << result.takeError().message();
  EXPECT_EQ(graph.describe(result->front()).element, "f32");
  // The result has the type of a formula, so it is rounded like one.
  EXPECT_TRUE(contains(finish(*result), "-> tensor<?x64xbf16>"));
}

TEST_F(GraphBuilderTest, ResultsOfOpsKeepTypesThatNoOperandHas) {
  Id x = argument("x", "tensor<?x64xbf16>");
  Id t = argument("t", "tensor<?x1xi64>");
  auto results =
      graph.applyOp("cross_entropy", {apply("exp", {x}), t, std::nullopt}, {});
  ASSERT_TRUE(bool(results)) << results.takeError().message();
  EXPECT_TRUE(contains(finish(*results),
                       "(tensor<1xf32>, tensor<?x1xf32>, tensor<?x1xi8>, "
                       "tensor<1xf32>, tensor<?x1xi32>)"));
}

TEST_F(GraphBuilderTest, FailedOpsLeaveNothing) {
  Id x = argument("x", "tensor<?x64xf32>", {8, 64});
  Id y = argument("y", "tensor<?x32xf32>", {8, 32});
  auto failed = graph.applyOp("swiglu", {x, std::optional<Id>(y)}, {});
  ASSERT_FALSE(bool(failed));
  EXPECT_TRUE(contains(failed.takeError().message(), "type"));
  EXPECT_FALSE(contains(finish({x}), "swiglu"));
}

} // namespace
