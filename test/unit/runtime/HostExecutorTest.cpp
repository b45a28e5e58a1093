//===- HostExecutorTest.cpp -----------------------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/HostExecutor.h"
#include "Support.h"
#include "test/unit/WithoutThreads.h"

#include <atomic>
#include <numeric>
#include <thread>

using namespace bastile::runtime;

namespace {

/// A kernel as the compiler would make it: it doubles rows of 4 elements, two
/// rows to a block.
void doubleRows(void **arguments, int64_t begin, int64_t end, int64_t count) {
  const int64_t rows = *static_cast<int64_t *>(arguments[0]);
  const float *source = *static_cast<float **>(arguments[1]);
  const int64_t stride = *static_cast<int64_t *>(arguments[2]);
  float *target = *static_cast<float **>(arguments[3]);
  EXPECT_EQ(count, (rows + 1) / 2);
  for (int64_t row = 2 * begin; row < std::min(2 * end, rows); ++row)
    for (int64_t i = 0; i != 4; ++i)
      target[4 * row + i] = 2 * source[stride * row + i];
}

const char *const twice = R"({
  "name": "twice",
  "inputs": [{"name": "x", "type": "f32", "shape": [null, 4]}],
  "outputs": [{"name": "y", "type": "f32",
               "shape": [{"input": 0, "dimension": 0}, 4]},
              {"name": "count", "type": "f32", "shape": [4],
               "zero_if_no_rows": true}],
  "launches": [{"kernel": "twice", "leading": 1,
    "operands": [{"input": 0, "rows": true}, {"output": 0, "rows": true},
                 {"output": 1}],
    "variants": [{"entry": "twice", "leading": 1, "alignment": [4, 4, 4],
      "arguments": [{"size": 0}, {"pointer": 0}, {"stride": 0, "dimension": 0},
                    {"pointer": 1}],
      "grid": {"ceildiv": ["rows", 2]}, "block": 1}]}]})";

class HostExecutorTest : public testing::TestWithParam<unsigned> {
protected:
  HostExecutor makeExecutor() {
    return HostExecutor(
        [this](const std::string &entry) -> void * {
          ++lookups;
          return entry == "twice" ? reinterpret_cast<void *>(&doubleRows)
                                  : nullptr;
        },
        GetParam());
  }

  int lookups = 0;
  Function function = parseFunction(twice);
};

TEST_P(HostExecutorTest, runsAPlan) {
  HostExecutor executor = makeExecutor();
  EXPECT_EQ(executor.capacity().multiprocessors(), GetParam());
  LaunchPlan plan;
  for (int64_t rows : {1, 2, 7, 40}) {
    // Rows have 4 elements and lie 6 apart.
    std::vector<float> x(rows * 6), y(rows * 4, -1.0f), count(4, 1.0f);
    std::iota(x.begin(), x.end(), 0.0f);
    std::vector<TensorView> inputs = {
        {x.data(), ElementType::F32, {rows, 4}, {6, 1}}};
    std::vector<TensorView> outputs = {
        TensorView::contiguous(y.data(), ElementType::F32, {rows, 4}),
        TensorView::contiguous(count.data(), ElementType::F32, {4})};
    ASSERT_OK(
        plan.prepare(function, {inputs, outputs, {}}, executor.capacity()));
    ASSERT_OK(execute(plan, executor));
    for (int64_t row = 0; row != rows; ++row)
      for (int64_t i = 0; i != 4; ++i)
        EXPECT_EQ(y[4 * row + i], 2 * x[6 * row + i]);
    EXPECT_EQ(count, std::vector<float>(4, 1.0f));
  }
  EXPECT_EQ(lookups, 1);
}

TEST_P(HostExecutorTest, zeroesOutputsWithoutRows) {
  HostExecutor executor = makeExecutor();
  std::vector<float> count(4, 1.0f);
  std::vector<TensorView> inputs = {
      TensorView::contiguous(nullptr, ElementType::F32, {0, 4})};
  std::vector<TensorView> outputs = {
      TensorView::contiguous(nullptr, ElementType::F32, {0, 4}),
      TensorView::contiguous(count.data(), ElementType::F32, {4})};
  LaunchPlan plan;
  ASSERT_OK(plan.prepare(function, {inputs, outputs, {}}, 1));
  ASSERT_OK(execute(plan, executor));
  EXPECT_EQ(count, std::vector<float>(4, 0.0f));
  EXPECT_EQ(lookups, 0);
}

TEST_P(HostExecutorTest, coversTheGridOnce) {
  static std::atomic<int64_t> blocks[64];
  HostExecutor executor(
      [](const std::string &) {
        return reinterpret_cast<void *>(
            +[](void **, int64_t begin, int64_t end, int64_t count) {
              EXPECT_LE(end, count);
              for (int64_t i = begin; i != end; ++i)
                ++blocks[i];
            });
      },
      GetParam());
  for (int64_t grid : {0, 1, 2, 3, 64}) {
    for (auto &block : blocks)
      block = 0;
    LaunchConfig config;
    config.grid = grid;
    ASSERT_OK(executor.launch("count", config, nullptr));
    for (int64_t i = 0; i != 64; ++i)
      EXPECT_EQ(blocks[i], i < grid ? 1 : 0) << i << " of " << grid;
  }
}

TEST_P(HostExecutorTest, runsEverythingItselfWhereThereAreNoThreads) {
  static std::atomic<int64_t> blocks[64];
  static std::thread::id caller;
  caller = std::this_thread::get_id();
  HostExecutor executor(
      [](const std::string &) {
        return reinterpret_cast<void *>(
            +[](void **, int64_t begin, int64_t end, int64_t) {
              EXPECT_EQ(std::this_thread::get_id(), caller);
              for (int64_t i = begin; i != end; ++i)
                ++blocks[i];
            });
      },
      GetParam());
  bastile::WithoutThreads none;
  for (int64_t grid : {1, 3, 64}) {
    for (auto &block : blocks)
      block = 0;
    LaunchConfig config;
    config.grid = grid;
    ASSERT_OK(executor.launch("count", config, nullptr));
    for (int64_t i = 0; i != 64; ++i)
      EXPECT_EQ(blocks[i], i < grid ? 1 : 0) << i << " of " << grid;
  }
}

TEST_P(HostExecutorTest, reportsUnknownEntries) {
  HostExecutor executor = makeExecutor();
  expectError(executor.launch("thrice", {}, nullptr),
              "no function is called 'thrice'");
}

INSTANTIATE_TEST_SUITE_P(Threads, HostExecutorTest, testing::Values(1, 2, 5));

} // namespace
