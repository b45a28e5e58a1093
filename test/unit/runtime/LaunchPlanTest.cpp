//===- LaunchPlanTest.cpp - Variants, grids and arguments -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Support.h"

using namespace bastile::runtime;

namespace {

/// A function that copies rows of 8 elements and scales them by a weight, with
/// `leading` leading dimensions. Its variants take one aligned dimension, one,
/// and all.
Function makeCopy(unsigned leading) {
  std::string dynamic, sizes, arguments;
  for (unsigned d = 0; d != leading; ++d) {
    std::string index = std::to_string(d);
    dynamic += "null, ";
    sizes += R"({"input": 0, "dimension": )" + index + "}, ";
    arguments += R"({"size": )" + index + "}, " +
                 R"({"stride": 0, "dimension": )" + index + "}, " +
                 R"({"stride": 1, "dimension": )" + index + "}, ";
  }
  const std::string rowArguments = R"([
    {"size": 0}, {"stride": 0, "dimension": 0}, {"stride": 1, "dimension": 0},
    {"pointer": 0}, {"pointer": 1}, {"pointer": 2}])";
  return parseFunction(R"({
    "name": "copy",
    "inputs": [{"name": "x", "type": "bf16", "shape": [)" +
                       dynamic + R"(8]},
               {"name": "weight", "type": "f32", "shape": [8]}],
    "outputs": [{"name": "y", "type": "f32", "shape": [)" +
                       sizes + R"(8]}],
    "launches": [{
      "kernel": "copy", "leading": )" +
                       std::to_string(leading) + R"(,
      "operands": [{"input": 0, "rows": true}, {"output": 0, "rows": true},
                   {"input": 1, "rows": false}],
      "variants": [
        {"entry": "aligned", "leading": 1, "alignment": [16, 16, 16],
         "arguments": )" +
                       rowArguments + R"(,
         "grid": {"ceildiv": ["rows", 4]}, "block": 128, "cluster": 1},
        {"entry": "rows", "leading": 1, "alignment": [2, 4, 4],
         "arguments": )" +
                       rowArguments + R"(,
         "grid": "rows", "block": 64, "shared_memory": 256},
        {"entry": "strided", "leading": )" +
                       std::to_string(leading) + R"(, "alignment": [2, 4, 4],
         "arguments": [)" +
                       arguments + R"({"pointer": 0}],
         "grid": "rows", "block": 32}]}]})");
}

/// Plans the copy of `x` to a contiguous result.
class CopyPlan {
public:
  CopyPlan(const TensorView &x, intptr_t weight = 0x3000)
      : function(makeCopy(x.rank() - 1)),
        inputs{x, TensorView::contiguous(fakeAddress(weight), ElementType::F32,
                                         {8})},
        outputs{TensorView::contiguous(fakeAddress(0x2000), ElementType::F32,
                                       x.sizes)} {}

  CopyPlan &prepare() {
    EXPECT_OK(plan.prepare(function, {inputs, outputs, {}}, 132));
    return *this;
  }
  std::string entry() {
    return plan.launches().empty() ? "" : launch().variant->entry;
  }
  const PlannedLaunch &launch() { return plan.launches()[0]; }

  Function function;
  std::vector<TensorView> inputs;
  std::vector<TensorView> outputs;
  LaunchPlan plan;
};

TensorView makeInput(const Dimensions &sizes, const Dimensions &strides,
                     intptr_t address = 0x1000) {
  return {fakeAddress(address), ElementType::BF16, sizes, strides};
}

TEST(LaunchPlanTest, packsArguments) {
  CopyPlan copy(makeInput({10, 8}, {8, 1}));
  copy.prepare();
  ASSERT_EQ(copy.entry(), "aligned");
  const PlannedLaunch &launch = copy.launch();
  EXPECT_EQ(launch.values,
            (std::vector<int64_t>{10, 8, 8, 0x1000, 0x2000, 0x3000}));
  ASSERT_EQ(launch.arguments.size(), launch.values.size());
  for (size_t i = 0; i != launch.values.size(); ++i)
    EXPECT_EQ(launch.arguments[i], &launch.values[i]);
  EXPECT_EQ(launch.config.grid, 3);
  EXPECT_EQ(launch.config.block, 128);
  EXPECT_EQ(launch.config.sharedMemory, 0);
  EXPECT_FALSE(launch.config.overlapPrevious);
}

TEST(LaunchPlanTest, mergesContiguousLeadingDimensions) {
  CopyPlan rank3(makeInput({3, 5, 8}, {40, 8, 1}));
  rank3.prepare();
  ASSERT_EQ(rank3.entry(), "aligned");
  EXPECT_EQ(rank3.launch().values[0], 15);
  EXPECT_EQ(rank3.launch().values[1], 8);

  CopyPlan rank4(makeInput({2, 3, 5, 8}, {120, 40, 8, 1}));
  rank4.prepare();
  ASSERT_EQ(rank4.entry(), "aligned");
  EXPECT_EQ(rank4.launch().values[0], 30);
  EXPECT_EQ(rank4.launch().config.grid, 8);
}

TEST(LaunchPlanTest, mergesRowsWithGaps) {
  // The rows are every second row of 8 in memory.
  CopyPlan copy(makeInput({3, 5, 8}, {80, 16, 1}));
  copy.prepare();
  ASSERT_EQ(copy.entry(), "aligned");
  EXPECT_EQ(copy.launch().values,
            (std::vector<int64_t>{15, 16, 8, 0x1000, 0x2000, 0x3000}));
}

TEST(LaunchPlanTest, goesThroughTransposedDimensions) {
  CopyPlan copy(makeInput({3, 5, 8}, {8, 24, 1}));
  copy.prepare();
  ASSERT_EQ(copy.entry(), "strided");
  EXPECT_EQ(copy.launch().values,
            (std::vector<int64_t>{3, 8, 40, 5, 24, 8, 0x1000}));
  EXPECT_EQ(copy.launch().config.grid, 15);
}

TEST(LaunchPlanTest, padsInFrontAfterMerging) {
  // The two inner dimensions of three merge; the outermost does not.
  CopyPlan copy(makeInput({2, 3, 5, 8}, {1000, 40, 8, 1}));
  copy.prepare();
  ASSERT_EQ(copy.entry(), "strided");
  EXPECT_EQ(copy.launch().values,
            (std::vector<int64_t>{1, 0, 0, 2, 1000, 120, 15, 8, 8, 0x1000}));
}

TEST(LaunchPlanTest, mergesOnlyWhereAllOperandsAllow) {
  CopyPlan copy(makeInput({3, 5, 8}, {40, 8, 1}));
  copy.outputs[0].strides = {8, 24, 1};
  EXPECT_EQ(copy.prepare().entry(), "strided");
}

TEST(LaunchPlanTest, broadcastsStrideZero) {
  // Both dimensions repeat one row, and so they merge; those of the output
  // merge too.
  CopyPlan both(makeInput({3, 5, 8}, {0, 0, 1}));
  both.prepare();
  ASSERT_EQ(both.entry(), "aligned");
  EXPECT_EQ(both.launch().values[0], 15);
  EXPECT_EQ(both.launch().values[1], 0);

  CopyPlan outer(makeInput({3, 5, 8}, {0, 8, 1}));
  outer.prepare();
  ASSERT_EQ(outer.entry(), "strided");
  EXPECT_EQ(outer.launch().values,
            (std::vector<int64_t>{3, 0, 40, 5, 8, 8, 0x1000}));
}

TEST(LaunchPlanTest, goesThroughRowsAsTheyLie) {
  // Heads that a view put ahead of the sequence lie without gaps.
  CopyPlan both(makeInput({2, 3, 5, 8}, {120, 8, 24, 1}));
  both.outputs[0].strides = {120, 8, 24, 1};
  both.function.launches[0].anyOrder = true;
  both.prepare();
  ASSERT_EQ(both.entry(), "aligned");
  EXPECT_EQ(both.launch().values,
            (std::vector<int64_t>{30, 8, 8, 0x1000, 0x2000, 0x3000}));

  // A row of the output has twice as many bytes as one of the input.
  CopyPlan output(makeInput({3, 5, 8}, {8, 24, 1}));
  output.function.launches[0].anyOrder = true;
  output.prepare();
  EXPECT_EQ(output.launch().values,
            (std::vector<int64_t>{3, 8, 40, 5, 24, 8, 0x1000}));
  CopyPlan input(makeInput({3, 5, 8}, {40, 8, 1}));
  input.outputs[0].strides = {8, 24, 1};
  input.function.launches[0].anyOrder = true;
  input.prepare();
  EXPECT_EQ(input.launch().values,
            (std::vector<int64_t>{5, 8, 24, 3, 40, 8, 0x1000}));

  // An operand that repeats its rows has no say, and a size of 1 is no
  // obstacle.
  CopyPlan repeated(makeInput({3, 1, 5, 8}, {0, 7, 8, 1}));
  repeated.outputs[0].strides = {8, 1, 24, 1};
  repeated.function.launches[0].anyOrder = true;
  repeated.prepare();
  EXPECT_EQ(repeated.launch().values,
            (std::vector<int64_t>{1, 0, 0, 5, 8, 24, 3, 0, 8, 0x1000}));
}

TEST(LaunchPlanTest, ignoresStridesOfSizeOne) {
  CopyPlan middle(makeInput({3, 1, 5, 8}, {40, 7, 8, 1}));
  middle.prepare();
  ASSERT_EQ(middle.entry(), "aligned");
  EXPECT_EQ(middle.launch().values[0], 15);

  CopyPlan all(makeInput({1, 1, 8}, {3, 5, 1}));
  all.prepare();
  ASSERT_EQ(all.entry(), "aligned");
  EXPECT_EQ(all.launch().values,
            (std::vector<int64_t>{1, 0, 0, 0x1000, 0x2000, 0x3000}));
}

TEST(LaunchPlanTest, fallsBackOnAlignment) {
  Dimensions sizes = {10, 8};
  EXPECT_EQ(CopyPlan(makeInput(sizes, {8, 1})).prepare().entry(), "aligned");
  // The base address of a row operand or a shared one, or a stride, is
  // misaligned.
  EXPECT_EQ(CopyPlan(makeInput(sizes, {8, 1}, 0x1002)).prepare().entry(),
            "rows");
  EXPECT_EQ(CopyPlan(makeInput(sizes, {8, 1}), 0x3004).prepare().entry(),
            "rows");
  EXPECT_EQ(CopyPlan(makeInput(sizes, {9, 1})).prepare().entry(), "rows");
  // The stride of a single row is never used.
  EXPECT_EQ(CopyPlan(makeInput({1, 8}, {9, 1})).prepare().entry(), "aligned");
}

/// Two row spaces, each read and written in vectors of 8 elements; the first
/// has one more operand, which is not.
Function makeMisaligned() {
  return parseFunction(R"({
    "name": "f",
    "inputs": [{"name": "x", "type": "bf16", "shape": [null, null, 9]},
               {"name": "s", "type": "f32", "shape": [null, null, 1]},
               {"name": "z", "type": "bf16", "shape": [null, null, 9]}],
    "outputs": [{"name": "y", "type": "f32", "shape": [
                  {"input": 0, "dimension": 0}, {"input": 0, "dimension": 1}, 9]}],
    "launches": [{
      "kernel": "f", "leading": 2,
      "operands": [{"input": 0, "rows": true}, {"input": 1, "rows": true},
                   {"input": 2, "rows": true, "space": 1},
                   {"output": 0, "rows": true}],
      "variants": [
        {"entry": "misaligned", "leading": 2, "alignment": [2, 4, 2, 4],
         "phase": [8, 1, 8, 8], "arguments": [], "grid": {"rows": 1},
         "block": 32},
        {"entry": "unaligned", "leading": 2, "alignment": [2, 4, 2, 4],
         "arguments": [], "grid": {"rows": 1}, "block": 32}]}]})");
}

/// The variant of that function that takes `x` and `y` of the given addresses
/// and strides.
std::string chooseMisaligned(intptr_t x, const Dimensions &xStrides, intptr_t y,
                             const Dimensions &yStrides, int64_t rows = 3) {
  Function function = makeMisaligned();
  std::vector<TensorView> inputs = {
      {fakeAddress(x), ElementType::BF16, {2, rows, 9}, xStrides},
      TensorView::contiguous(fakeAddress(0x3004), ElementType::F32,
                             {2, rows, 1}),
      TensorView::contiguous(fakeAddress(0x4006), ElementType::BF16,
                             {2, 3, 9})};
  std::vector<TensorView> outputs = {
      {fakeAddress(y), ElementType::F32, {2, rows, 9}, yStrides}};
  LaunchPlan plan;
  EXPECT_OK(plan.prepare(function, {inputs, outputs, {}}, 132));
  return plan.launches().empty() ? "" : plan.launches()[0].variant->entry;
}

TEST(LaunchPlanTest, fallsBackOnPhase) {
  const Dimensions dense = {27, 9, 1};
  EXPECT_EQ(chooseMisaligned(0x1000, dense, 0x2000, dense), "misaligned");
  // Both operands begin as many elements behind an aligned address, which are
  // more bytes of the wider type.
  EXPECT_EQ(chooseMisaligned(0x1006, dense, 0x200c, dense), "misaligned");
  EXPECT_EQ(chooseMisaligned(0x100e, dense, 0x201c, dense), "misaligned");
  EXPECT_EQ(chooseMisaligned(0x1006, dense, 0x2008, dense), "unaligned");
  EXPECT_EQ(chooseMisaligned(0x1000, dense, 0x2010, dense), "unaligned");
  // These strides leave the same remainder, and then other ones.
  EXPECT_EQ(chooseMisaligned(0x1000, dense, 0x2000, {59, 17, 1}), "misaligned");
  EXPECT_EQ(chooseMisaligned(0x1000, dense, 0x2000, {60, 17, 1}), "unaligned");
  EXPECT_EQ(chooseMisaligned(0x1000, dense, 0x2000, {30, 10, 1}), "unaligned");
  EXPECT_EQ(chooseMisaligned(0x1000, {27, -7, 1}, 0x2000, dense), "misaligned");
  // The strides of a single row are never used, nor are rows that do not exist.
  EXPECT_EQ(chooseMisaligned(0x1000, {9, 1, 1}, 0x2000, {9, 2, 1}, /*rows=*/1),
            "misaligned");
  EXPECT_EQ(chooseMisaligned(0x1000, dense, 0x2010, dense, /*rows=*/0),
            "misaligned");
}

TEST(LaunchPlanTest, reportsWhyNoVariantFits) {
  CopyPlan copy(makeInput({10, 8}, {8, 1}, 0x1001));
  expectError(
      copy.plan.prepare(copy.function, {copy.inputs, copy.outputs, {}}, 132),
      "function 'copy': kernel 'copy': no variant takes these operands: "
      "'strided' needs input 'x' and its rows aligned to 2 bytes");
  EXPECT_TRUE(copy.plan.launches().empty());

  Function function = makeMisaligned();
  function.launches[0].variants.pop_back();
  std::vector<TensorView> inputs, outputs;
  for (const InputSpec &input : function.inputs)
    inputs.push_back(TensorView::contiguous(fakeAddress(0x1000), input.type,
                                            {2, 3, *input.shape.back()}));
  outputs.push_back(
      TensorView::contiguous(fakeAddress(0x2004), ElementType::F32, {2, 3, 9}));
  expectError(
      LaunchPlan().prepare(function, {inputs, outputs, {}}, 132),
      "'misaligned' needs output 'y' and its rows to begin as far behind "
      "an aligned address as the other operands");

  CopyPlan strided(makeInput({3, 5, 8}, {8, 24, 1}));
  strided.function.launches[0].variants.pop_back();
  expectError(
      strided.plan.prepare(strided.function,
                           {strided.inputs, strided.outputs, {}}, 132),
      "'rows' takes rows of 1 leading dimensions, but these strides need 2");
}

TEST(LaunchPlanTest, launchesNothingForNoRows) {
  CopyPlan copy(makeInput({0, 8}, {8, 1}, /*address=*/0));
  copy.outputs[0].data = nullptr;
  copy.prepare();
  EXPECT_TRUE(copy.plan.launches().empty());
  EXPECT_TRUE(copy.plan.zeroFills().empty());

  CopyPlan inner(makeInput({1ll << 40, 1ll << 40, 0, 8}, {0, 0, 8, 1}));
  inner.outputs[0].strides = {8, 8, 8, 1};
  EXPECT_TRUE(inner.prepare().plan.launches().empty());
}

TEST(LaunchPlanTest, rejectsNullPointers) {
  CopyPlan null(makeInput({4, 8}, {8, 1}, /*address=*/0));
  expectError(
      null.plan.prepare(null.function, {null.inputs, null.outputs, {}}, 132),
      "kernel 'copy': input 'x' is a null pointer");
}

TEST(LaunchPlanTest, rejectsTooManyRows) {
  // Each operand repeats its rows along the other's dimension, so that neither
  // has as many rows as the launch.
  Function function = parseFunction(R"({
    "name": "outer",
    "inputs": [{"name": "a", "type": "f32", "shape": [null, 1, 4]},
               {"name": "b", "type": "f32", "shape": [1, null, 4]}],
    "outputs": [],
    "launches": [{"kernel": "k", "leading": 2,
      "operands": [{"input": 0, "rows": true}, {"input": 1, "rows": true}],
      "variants": [{"entry": "k", "leading": 2, "alignment": [4, 4],
                    "arguments": [], "grid": 1, "block": 32}]}]})");
  const int64_t huge = int64_t(1) << 40;
  void *data = fakeAddress(64);
  std::vector<TensorView> inputs = {
      TensorView::contiguous(data, ElementType::F32, {huge, 1, 4}),
      TensorView::contiguous(data, ElementType::F32, {1, huge, 4})};
  LaunchPlan plan;
  expectError(plan.prepare(function, {inputs, {}, {}}, 1),
              "kernel 'k': leading sizes [1099511627776, 1099511627776] are "
              "too many rows");
}

TEST(LaunchPlanTest, rejectsTensorsThatNoAddressReaches) {
  const int64_t huge = int64_t(1) << 40;
  // With strides of 0, any number of rows fits in memory.
  CopyPlan many(makeInput({2, 3, 8}, {0, 0, 1}));
  many.inputs[0].sizes = many.outputs[0].sizes = {huge, huge, 8};
  many.outputs[0].strides = {8, 8, 1};
  expectError(
      many.plan.prepare(many.function, {many.inputs, many.outputs, {}}, 132),
      "input 'x' of shape [1099511627776, 1099511627776, 8] has more bytes "
      "than an address counts");
}

TEST(LaunchPlanTest, rejectsRowsThatNoAddressReaches) {
  for (int64_t stride : {INT64_MAX - 7, INT64_MIN, int64_t(1) << 62}) {
    CopyPlan copy(makeInput({2, 1, 8}, {stride, 8, 1}));
    copy.outputs[0].strides = {8, 8, 1};
    expectError(
        copy.plan.prepare(copy.function, {copy.inputs, copy.outputs, {}}, 132),
        ", 8, 1], further apart than an address reaches");
    // The stride of a single row means nothing.
    CopyPlan one(makeInput({1, 1, 8}, {stride, 8, 1}));
    one.outputs[0].strides = {8, 8, 1};
    EXPECT_EQ(one.prepare().plan.launches().size(), 1u);
  }
}

TEST(LaunchPlanTest, checksAgreementOfLeadingSizes) {
  Function function = parseFunction(R"({
    "name": "add",
    "inputs": [{"name": "a", "type": "f32", "shape": [null, null, 4]},
               {"name": "b", "type": "f32", "shape": [null, null, 6]}],
    "outputs": [],
    "launches": [{"kernel": "k", "leading": 2,
      "operands": [{"input": 0, "rows": true}, {"input": 1, "rows": true}],
      "variants": [{"entry": "k", "leading": 2, "alignment": [4, 4],
                    "arguments": [], "grid": 1, "block": 32}]}]})");
  void *data = fakeAddress(64);
  std::vector<TensorView> inputs = {
      TensorView::contiguous(data, ElementType::F32, {2, 3, 4}),
      TensorView::contiguous(data, ElementType::F32, {2, 3, 6})};
  LaunchPlan plan;
  EXPECT_OK(plan.prepare(function, {inputs, {}, {}}, 1));
  inputs[1] = TensorView::contiguous(data, ElementType::F32, {2, 5, 6});
  expectError(
      plan.prepare(function, {inputs, {}, {}}, 1),
      "function 'add': kernel 'k': input 'a' has shape [2, 3, 4], but "
      "input 'b' has shape [2, 5, 6]: all but the last size must agree");
}

TEST(LaunchPlanTest, reusesItsMemory) {
  CopyPlan copy(makeInput({3, 5, 8}, {8, 24, 1}));
  const void *values = copy.prepare().launch().values.data();
  const void *arguments = copy.launch().arguments.data();
  copy.prepare();
  EXPECT_EQ(copy.launch().values.data(), values);
  EXPECT_EQ(copy.launch().arguments.data(), arguments);
}

} // namespace
