//===- LaunchSequenceTest.cpp - Several launches, temporaries, grids ------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Support.h"

using namespace bastile::runtime;

namespace {

/// Sums the columns of `x` in two launches: partial sums of the rows, then
/// their sum. `zeroedBy` says how the partial sums are cleared.
Function makeColumnSum(const std::string &zeroedBy,
                       const std::string &partialCount) {
  return parseFunction(R"({
    "name": "column_sum",
    "inputs": [{"name": "x", "type": "f32", "shape": [null, 8]}],
    "outputs": [{"name": "sum", "type": "f32", "shape": [8],
                 "zero_if_no_rows": true}],
    "temporaries": [{"type": "f32", "shape": [)" +
                       partialCount + R"(, 8],
                     "zeroed_by": ")" +
                       zeroedBy + R"("}],
    "launches": [
      {"kernel": "partial", "leading": 1, "overlap_next": true,
       "operands": [{"input": 0, "rows": true}, {"temporary": 0}],
       "variants": [{"entry": "partial", "leading": 1, "alignment": [4, 4],
         "arguments": [{"size": 0}, {"pointer": 0}, {"pointer": 1}],
         "grid": {"min": ["rows", {"mul": ["multiprocessors", 2]}]},
         "block": 32}]},
      {"kernel": "final", "leading": 1,
       "operands": [{"temporary": 0, "rows": true}, {"output": 0}],
       "variants": [{"entry": "final", "leading": 1, "alignment": [4, 4],
         "arguments": [{"size": 0}, {"pointer": 0}, {"pointer": 1}],
         "grid": 1, "block": 32}]}]})");
}

struct ColumnSum {
  ColumnSum(int64_t rows, const std::string &zeroedBy = "nobody",
            const std::string &partialCount = "\"multiprocessors\"")
      : function(makeColumnSum(zeroedBy, partialCount)),
        inputs{TensorView::contiguous(fakeAddress(0x1000), ElementType::F32,
                                      {rows, 8})},
        outputs{TensorView::contiguous(fakeAddress(0x2000), ElementType::F32,
                                       {8})} {
    ResolvedShapes shapes;
    EXPECT_OK(resolveShapes(function, inputs, 4, shapes));
    temporaries.push_back(TensorView::contiguous(
        fakeAddress(0x3000), ElementType::F32, shapes.temporaries[0]));
    EXPECT_OK(plan.prepare(function, {inputs, outputs, temporaries}, 4));
  }

  Function function;
  std::vector<TensorView> inputs, outputs, temporaries;
  LaunchPlan plan;
};

TEST(LaunchSequenceTest, plansLaunchesInOrder) {
  ColumnSum sum(100);
  EXPECT_TRUE(sum.plan.zeroFills().empty());
  ASSERT_EQ(sum.plan.launches().size(), 2u);
  const PlannedLaunch &partial = sum.plan.launches()[0];
  EXPECT_EQ(partial.variant->entry, "partial");
  EXPECT_EQ(partial.config.grid, 8);
  EXPECT_FALSE(partial.config.overlapPrevious);
  EXPECT_EQ(partial.values, (std::vector<int64_t>{100, 0x1000, 0x3000}));
  const PlannedLaunch &final = sum.plan.launches()[1];
  EXPECT_EQ(final.variant->entry, "final");
  EXPECT_EQ(final.config.grid, 1);
  EXPECT_TRUE(final.config.overlapPrevious);
  EXPECT_EQ(final.values, (std::vector<int64_t>{4, 0x3000, 0x2000}));
}

TEST(LaunchSequenceTest, skipsReadersOfASkippedLaunch) {
  // The second launch has rows of its own, but no launch wrote them.
  ColumnSum sum(0);
  EXPECT_TRUE(sum.plan.launches().empty());
  ASSERT_EQ(sum.plan.zeroFills().size(), 1u);
  EXPECT_EQ(sum.plan.zeroFills()[0].data, fakeAddress(0x2000));
  EXPECT_EQ(sum.plan.zeroFills()[0].bytes, 32);
}

TEST(LaunchSequenceTest, readsZeroedTemporariesOfASkippedLaunch) {
  ColumnSum sum(0, "runtime");
  ASSERT_EQ(sum.plan.zeroFills().size(), 1u);
  EXPECT_EQ(sum.plan.zeroFills()[0].data, fakeAddress(0x3000));
  EXPECT_EQ(sum.plan.zeroFills()[0].bytes, 4 * 32);
  ASSERT_EQ(sum.plan.launches().size(), 1u);
  EXPECT_EQ(sum.plan.launches()[0].variant->entry, "final");
  // The launch that allowed the overlap was skipped, so another one ran before.
  EXPECT_FALSE(sum.plan.launches()[0].config.overlapPrevious);
}

TEST(LaunchSequenceTest, runsWhatCombinesNoRows) {
  // There are as many partial sums as blocks, which is none.
  const char *count =
      R"({"min": [{"input": 0, "dimension": 0}, "multiprocessors"]})";
  Function function = makeColumnSum("nobody", count);
  function.outputs[0].zeroIfNoRows = false;
  function.launches[1].combines = {0};
  std::vector<TensorView> inputs{
      TensorView::contiguous(nullptr, ElementType::F32, {0, 8})};
  std::vector<TensorView> outputs{
      TensorView::contiguous(fakeAddress(0x2000), ElementType::F32, {8})};
  std::vector<TensorView> temporaries{
      TensorView::contiguous(nullptr, ElementType::F32, {0, 8})};
  LaunchPlan plan;
  EXPECT_OK(plan.prepare(function, {inputs, outputs, temporaries}, 4));
  EXPECT_TRUE(plan.zeroFills().empty());
  ASSERT_EQ(plan.launches().size(), 1u);
  EXPECT_EQ(plan.launches()[0].variant->entry, "final");
  EXPECT_EQ(plan.launches()[0].values, (std::vector<int64_t>{0, 0, 0x2000}));
  EXPECT_FALSE(plan.launches()[0].config.overlapPrevious);

  // A kernel that combines only some dimensions has nothing to write.
  function.launches[1].combines.clear();
  EXPECT_OK(plan.prepare(function, {inputs, outputs, temporaries}, 4));
  EXPECT_TRUE(plan.launches().empty());
}

TEST(LaunchSequenceTest, resolvesSizesOfTemporaries) {
  const char *count =
      R"({"min": [{"input": 0, "dimension": 0}, "multiprocessors"]})";
  EXPECT_EQ(ColumnSum(100, "nobody", count).temporaries[0].sizes,
            (Dimensions{4, 8}));
  EXPECT_EQ(ColumnSum(3, "nobody", count).temporaries[0].sizes,
            (Dimensions{3, 8}));
}

TEST(LaunchSequenceTest, checksTheGrid) {
  ColumnSum sum(100);
  Variant &variant = sum.function.launches[0].variants[0];
  auto prepare = [&] {
    return sum.plan.prepare(sum.function,
                            {sum.inputs, sum.outputs, sum.temporaries}, 4);
  };
  variant.cluster = 3;
  expectError(prepare(), "the grid of 'partial', 8 blocks, is no multiple of "
                         "its cluster of 3");
  variant.cluster = 2;
  EXPECT_OK(prepare());
  variant.grid.kind = Expression::Kind::CeilDiv;
  variant.grid.operands[1] = Expression();
  expectError(prepare(), "the grid of 'partial' overflows or divides by zero");
  EXPECT_TRUE(sum.plan.launches().empty());
}

TEST(ExpressionTest, evaluates) {
  auto evaluate = [](const std::string &grid, int64_t rows) {
    Function function = parseFunction(R"({
      "name": "f", "outputs": [],
      "inputs": [{"name": "x", "type": "f32", "shape": [null, 8]}],
      "launches": [{"kernel": "k", "leading": 1,
        "operands": [{"input": 0, "rows": true}],
        "variants": [{"entry": "k", "leading": 1, "alignment": [4],
                      "arguments": [], "block": 32, "grid": )" +
                                      grid + "}]}]}");
    std::vector<TensorView> inputs = {
        TensorView::contiguous(nullptr, ElementType::F32, {rows, 8})};
    return function.launches[0].variants[0].grid.evaluate(
        {{&rows, 1}, /*multiprocessors=*/132, inputs});
  };
  EXPECT_EQ(evaluate("7", 100), 7);
  EXPECT_EQ(evaluate(R"("rows")", 100), 100);
  EXPECT_EQ(evaluate(R"("multiprocessors")", 100), 132);
  EXPECT_EQ(evaluate(R"({"clusters": 8})", 100), 132 / 8);
  EXPECT_EQ(evaluate(R"({"clusters": 1000})", 100), 1);
  EXPECT_EQ(evaluate(R"({"input": 0, "dimension": 1})", 100), 8);
  EXPECT_EQ(evaluate(R"({"ceildiv": ["rows", 8]})", 96), 12);
  EXPECT_EQ(evaluate(R"({"ceildiv": ["rows", 8]})", 97), 13);
  EXPECT_EQ(evaluate(R"({"ceildiv": ["rows", 8]})", 0), 0);
  EXPECT_EQ(evaluate(R"({"add": ["rows", 1, 2]})", 4), 7);
  EXPECT_EQ(evaluate(R"({"max": ["rows", 1]})", 0), 1);
  EXPECT_EQ(
      evaluate(R"({"min": ["rows", {"mul": ["multiprocessors", 4]}]})", 999),
      528);
  // This number is so near the end of 64 bits that it can be divided but not
  // multiplied.
  const int64_t largest = INT64_MAX;
  EXPECT_EQ(evaluate(R"({"ceildiv": ["rows", 2]})", largest), int64_t(1) << 62);
  EXPECT_EQ(evaluate(R"({"mul": ["rows", 2]})", largest), std::nullopt);
  EXPECT_EQ(evaluate(R"({"add": ["rows", 2]})", largest), std::nullopt);
  EXPECT_EQ(evaluate(R"({"ceildiv": ["rows", 0]})", 4), std::nullopt);
}

} // namespace
