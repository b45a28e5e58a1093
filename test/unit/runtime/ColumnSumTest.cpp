//===- ColumnSumTest.cpp - Two launches and a temporary, executed ---------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// The launches that a gradient of a weight needs, with kernels written by hand:
// partial sums of the rows, one for each block, and then the sum of those.
//
//===----------------------------------------------------------------------===//

#include "Support.h"
#include "bastile/runtime/HostExecutor.h"

#include <numeric>

using namespace bastile::runtime;

namespace {

constexpr int64_t width = 4;

template <typename T>
T &argument(void **arguments, unsigned index) {
  return *static_cast<T *>(arguments[index]);
}

/// Adds every row of x to the partial sum of its block, and counts it there.
/// Both must have been cleared.
void addRows(void **arguments, int64_t begin, int64_t end, int64_t count) {
  const int64_t rows = argument<int64_t>(arguments, 0);
  const float *x = argument<const float *>(arguments, 1);
  const int64_t stride = argument<int64_t>(arguments, 2);
  float *partial = argument<float *>(arguments, 3);
  int32_t *counts = argument<int32_t *>(arguments, 4);
  for (int64_t block = begin; block != end; ++block)
    for (int64_t row = block; row < rows; row += count) {
      ++counts[block];
      for (int64_t i = 0; i != width; ++i)
        partial[block * width + i] += x[row * stride + i];
    }
}

/// Does the same for partial sums with any content.
void setRows(void **arguments, int64_t begin, int64_t end, int64_t count) {
  float *partial = argument<float *>(arguments, 3);
  int32_t *counts = argument<int32_t *>(arguments, 4);
  std::fill(partial + begin * width, partial + end * width, 0.0f);
  std::fill(counts + begin, counts + end, 0);
  addRows(arguments, begin, end, count);
}

/// Adds the partial sums up, an element to a block.
void addPartials(void **arguments, int64_t begin, int64_t end, int64_t count) {
  const int64_t blocks = argument<int64_t>(arguments, 0);
  const float *partial = argument<const float *>(arguments, 1);
  const int32_t *counts = argument<const int32_t *>(arguments, 2);
  float *sum = argument<float *>(arguments, 3);
  int64_t *total = argument<int64_t *>(arguments, 4);
  EXPECT_EQ(count, width);
  for (int64_t i = begin; i != end; ++i) {
    sum[i] = 0;
    for (int64_t block = 0; block != blocks; ++block)
      sum[i] += partial[block * width + i];
  }
  if (begin == 0)
    *total = std::accumulate(counts, counts + blocks, int64_t(0));
}

/// `zeroedBy` says how the partial sums are cleared. Their number is that of
/// blocks: at most two for each multiprocessor and no more than rows, unless
/// `blocks` says otherwise.
Function makeColumnSum(const std::string &zeroedBy,
                       const std::string &blocks =
                           R"({"min": [{"mul": ["multiprocessors", 2]},
                                       {"input": 0, "dimension": 0}]})") {
  return parseFunction(R"({
    "name": "column_sum",
    "inputs": [{"name": "x", "type": "f32", "shape": [null, 4]}],
    "outputs": [{"name": "sum", "type": "f32", "shape": [4],
                 "zero_if_no_rows": true},
                {"name": "total", "type": "i64", "shape": [1],
                 "zero_if_no_rows": true}],
    "temporaries": [
      {"type": "f32", "shape": [)" +
                       blocks + R"(, 4], "zeroed_by": ")" + zeroedBy + R"("},
      {"type": "i32", "shape": [{"mul": ["multiprocessors", 2]}],
       "zeroed_by": ")" +
                       zeroedBy + R"("}],
    "launches": [
      {"kernel": "rows", "leading": 1,
       "operands": [{"input": 0, "rows": true}, {"temporary": 0},
                    {"temporary": 1}],
       "variants": [{"entry": ")" +
                       (zeroedBy == "runtime" ? "addRows" : "setRows") +
                       R"(", "leading": 1, "alignment": [4, 4, 4],
         "arguments": [{"size": 0}, {"pointer": 0},
                       {"stride": 0, "dimension": 0}, {"pointer": 1},
                       {"pointer": 2}],
         "grid": {"min": ["rows", {"mul": ["multiprocessors", 2]}]},
         "block": 1}]},
      {"kernel": "partials", "leading": 1,
       "operands": [{"temporary": 0, "rows": true}, {"temporary": 1},
                    {"output": 0}, {"output": 1}],
       "variants": [{"entry": "addPartials", "leading": 1,
         "alignment": [4, 4, 4, 8],
         "arguments": [{"size": 0}, {"pointer": 0}, {"pointer": 1},
                       {"pointer": 2}, {"pointer": 3}],
         "grid": 4, "block": 1}]}]})");
}

void *lookup(const std::string &entry) {
  if (entry == "addRows")
    return reinterpret_cast<void *>(&addRows);
  if (entry == "setRows")
    return reinterpret_cast<void *>(&setRows);
  return entry == "addPartials" ? reinterpret_cast<void *>(&addPartials)
                                : nullptr;
}

/// The sums of the columns and the number of rows, computed in memory that was
/// used before.
struct Result {
  Result(const Function &function, int64_t rows, unsigned threads) {
    HostExecutor executor(lookup, threads);
    // Rows have 4 elements and lie 6 apart.
    std::vector<float> x(rows * 6);
    std::iota(x.begin(), x.end(), 1.0f);
    std::vector<TensorView> inputs = {
        {x.data(), ElementType::F32, {rows, width}, {6, 1}}};
    ResolvedShapes shapes;
    EXPECT_OK(resolveShapes(function, inputs, executor.capacity(), shapes));
    EXPECT_EQ(shapes.outputs[0], (Dimensions{width}));
    EXPECT_EQ(shapes.temporaries[1], (Dimensions{2 * threads}));
    partials = shapes.temporaries[0][0];

    std::vector<float> partial(partials * width, -7.0f);
    std::vector<int32_t> counts(2 * threads, -7);
    std::vector<TensorView> outputs = {
        TensorView::contiguous(sum.data(), ElementType::F32, {width}),
        TensorView::contiguous(&total, ElementType::I64, {1})};
    std::vector<TensorView> temporaries = {
        TensorView::contiguous(partial.data(), ElementType::F32,
                               shapes.temporaries[0]),
        TensorView::contiguous(counts.data(), ElementType::I32,
                               shapes.temporaries[1])};
    LaunchPlan plan;
    EXPECT_OK(plan.prepare(function, {inputs, outputs, temporaries},
                           executor.capacity()));
    launches = plan.launches().size();
    EXPECT_OK(execute(plan, executor));

    for (int64_t row = 0; row != rows; ++row)
      for (int64_t i = 0; i != width; ++i)
        expected[i] += x[row * 6 + i];
  }

  int64_t partials = 0;
  size_t launches = 0;
  std::vector<float> sum = std::vector<float>(width, 99.0f);
  std::vector<float> expected = std::vector<float>(width, 0.0f);
  int64_t total = 99;
};

class ColumnSumTest : public testing::TestWithParam<const char *> {};

TEST_P(ColumnSumTest, addsRowsUp) {
  Function function = makeColumnSum(GetParam());
  for (unsigned threads : {1, 3})
    for (int64_t rows : {1, 2, 5, 6, 7, 40}) {
      Result result(function, rows, threads);
      EXPECT_EQ(result.partials, std::min<int64_t>(rows, 2 * threads));
      EXPECT_EQ(result.launches, 2u);
      EXPECT_EQ(result.sum, result.expected) << rows << " rows";
      EXPECT_EQ(result.total, rows);
    }
}

TEST_P(ColumnSumTest, isZeroWithoutRows) {
  // The second launch has no rows either.
  Result none(makeColumnSum(GetParam()), 0, 3);
  EXPECT_EQ(none.partials, 0);
  EXPECT_EQ(none.launches, 0u);
  EXPECT_EQ(none.sum, none.expected);
  EXPECT_EQ(none.total, 0);

  // The second launch has some rows, which are zeros or unreadable.
  Result some(makeColumnSum(GetParam(), R"({"mul": ["multiprocessors", 2]})"),
              0, 3);
  EXPECT_EQ(some.partials, 6);
  EXPECT_EQ(some.launches, GetParam() == std::string("runtime") ? 1u : 0u);
  EXPECT_EQ(some.sum, some.expected);
  EXPECT_EQ(some.total, 0);
}

INSTANTIATE_TEST_SUITE_P(ZeroedBy, ColumnSumTest,
                         testing::Values("runtime", "nobody"),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

} // namespace
