//===- LaunchSpacesTest.cpp - Repeated rows, several row spaces -----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Allocations.h"
#include "Support.h"

using namespace bastile::runtime;

namespace {

/// Rotates the rows of q by angles that do not depend on the batch and the
/// head; `angles` is the shape of the angles.
Function makeRotation(const std::string &angles = "[1, null, 1, 4]",
                      unsigned leading = 3) {
  std::string arguments = R"({"pointer": 0}, {"pointer": 1}, {"pointer": 2})";
  for (unsigned d = 0; d != leading; ++d) {
    const std::string index = std::to_string(d);
    arguments += R"(, {"size": )" + index +
                 R"(}, {"stride": 0, "dimension": )" + index +
                 R"(}, {"stride": 1, "dimension": )" + index + "}";
  }
  return parseFunction(R"({
    "name": "rotate",
    "inputs": [{"name": "q", "type": "f32", "shape": [null, null, null, 8]},
               {"name": "angles", "type": "f32", "shape": )" +
                       angles + R"(}],
    "outputs": [{"name": "result", "type": "f32",
                 "shape": [{"input": 0, "dimension": 0},
                           {"input": 0, "dimension": 1},
                           {"input": 0, "dimension": 2}, 8]}],
    "launches": [{"kernel": "rotate", "leading": 3,
      "operands": [{"input": 0, "rows": true}, {"input": 1, "rows": true},
                   {"output": 0, "rows": true}],
      "variants": [{"entry": "rotate", "alignment": [16, 16, 16],
                    "leading": )" +
                       std::to_string(leading) + R"(, "arguments": [)" +
                       arguments + R"(], "grid": "rows", "block": 32}]}]})");
}

struct Rotation {
  Rotation(const Dimensions &q, const Dimensions &angles)
      : inputs{makeView(0x1000, q), makeView(0x2000, angles)},
        outputs{makeView(0x3000, q)} {}

  static TensorView makeView(intptr_t address, const Dimensions &sizes) {
    return TensorView::contiguous(fakeAddress(address), ElementType::F32,
                                  sizes);
  }
  Error prepare(const Function &function) {
    return plan.prepare(function, {inputs, outputs, {}}, 132);
  }
  std::vector<int64_t> values() {
    std::vector<int64_t> values = plan.launches()[0].values;
    EXPECT_EQ(values[0], 0x1000);
    EXPECT_EQ(values[1], 0x2000);
    EXPECT_EQ(values[2], 0x3000);
    return {values.begin() + 3, values.end()};
  }

  std::vector<TensorView> inputs, outputs;
  LaunchPlan plan;
};

TEST(RepeatedRowsTest, haveStrideZero) {
  Function function = makeRotation();
  Rotation rotation({2, 5, 3, 8}, {1, 5, 1, 4});
  // The strides of dimensions of size 1 must not matter.
  rotation.inputs[1].strides = {7, 4, 7, 1};
  ASSERT_OK(rotation.prepare(function));
  // Size, stride of q and stride of the angles, for each dimension.
  EXPECT_EQ(rotation.values(),
            (std::vector<int64_t>{2, 120, 0, 5, 24, 4, 3, 8, 0}));
  EXPECT_EQ(rotation.plan.launches()[0].config.grid, 30);
}

TEST(RepeatedRowsTest, mergeLikeOtherStrides) {
  Function function = makeRotation();
  // With a single head, the rows of q follow each other, and the rows of the
  // angles do so within a batch.
  Rotation oneHead({2, 5, 1, 8}, {1, 5, 1, 4});
  ASSERT_OK(oneHead.prepare(function));
  EXPECT_EQ(oneHead.values(),
            (std::vector<int64_t>{1, 0, 0, 2, 40, 0, 5, 8, 4}));

  // With a single position, all rows repeat one row.
  Rotation onePosition({2, 1, 3, 8}, {1, 1, 1, 4});
  ASSERT_OK(onePosition.prepare(function));
  EXPECT_EQ(onePosition.values(),
            (std::vector<int64_t>{1, 0, 0, 1, 0, 0, 6, 8, 0}));
}

TEST(RepeatedRowsTest, leaveSizesAheadOfMerging) {
  Function function = makeRotation("[1, null, 1, 4]", /*leading=*/3);
  Argument size;
  size.kind = Argument::Kind::UnmergedSize;
  for (size.dimension = 0; size.dimension != 3; ++size.dimension)
    function.launches[0].variants[0].arguments.push_back(size);
  Rotation oneHead({2, 5, 1, 8}, {1, 5, 1, 4});
  ASSERT_OK(oneHead.prepare(function));
  EXPECT_EQ(oneHead.values(),
            (std::vector<int64_t>{1, 0, 0, 2, 40, 0, 5, 8, 4, 2, 5, 1}));
}

TEST(RepeatedRowsTest, needNoAlignedStride) {
  Function function = makeRotation("[1, null, 1, 4]");
  Rotation rotation({2, 5, 3, 8}, {1, 5, 1, 4});
  rotation.inputs[1].strides[0] = rotation.inputs[1].strides[2] = 3;
  EXPECT_OK(rotation.prepare(function));
  rotation.inputs[1].strides[1] = 5;
  expectError(rotation.prepare(function), "'rotate' needs input 'angles' and "
                                          "its rows aligned to 16 bytes");
}

TEST(RepeatedRowsTest, mustBeStated) {
  // The batch of the angles is 1 only at run time.
  Function function = makeRotation("[null, null, 1, 4]");
  Rotation rotation({2, 5, 3, 8}, {1, 5, 1, 4});
  expectError(rotation.prepare(function),
              "kernel 'rotate': input 'q' has shape [2, 5, 3, 8], but input "
              "'angles' has shape [1, 5, 1, 4]: all but the last size must "
              "agree");
  rotation.inputs[1] = Rotation::makeView(0x2000, {2, 5, 1, 4});
  EXPECT_OK(rotation.prepare(function));
  // Sizes that are not 1 must always agree.
  rotation.inputs[1] = Rotation::makeView(0x2000, {2, 4, 1, 4});
  expectError(rotation.prepare(function), "all but the last size must agree");
}

TEST(RepeatedRowsTest, leaveOneRowIfAllRepeat) {
  Function function = parseFunction(R"({
    "name": "f", "outputs": [],
    "inputs": [{"name": "x", "type": "f32", "shape": [1, 1, 8]}],
    "launches": [{"kernel": "k", "leading": 2,
      "operands": [{"input": 0, "rows": true}],
      "variants": [{"entry": "k", "leading": 1, "alignment": [4],
        "arguments": [{"size": 0}, {"stride": 0, "dimension": 0}],
        "grid": "rows", "block": 32}]}]})");
  std::vector<TensorView> inputs = {Rotation::makeView(0x1000, {1, 1, 8})};
  LaunchPlan plan;
  ASSERT_OK(plan.prepare(function, {inputs, {}, {}}, 1));
  EXPECT_EQ(plan.launches()[0].values, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(plan.launches()[0].config.grid, 1);
}

TEST(RepeatedRowsTest, mayBeOfATemporary) {
  Function function = parseFunction(R"({
    "name": "f", "outputs": [],
    "inputs": [{"name": "x", "type": "f32", "shape": [null, 8]}],
    "temporaries": [{"type": "f32", "shape": [1, 8], "zeroed_by": "runtime"}],
    "launches": [{"kernel": "k", "leading": 1,
      "operands": [{"temporary": 0, "rows": true}, {"input": 0, "rows": true}],
      "variants": [{"entry": "k", "leading": 1, "alignment": [4, 4],
        "arguments": [{"size": 0}, {"stride": 0, "dimension": 0},
                      {"stride": 1, "dimension": 0}],
        "grid": "rows", "block": 32}]}]})");
  std::vector<TensorView> inputs = {Rotation::makeView(0x1000, {5, 8})};
  std::vector<TensorView> temporaries = {Rotation::makeView(0x2000, {1, 8})};
  LaunchPlan plan;
  ASSERT_OK(plan.prepare(function, {inputs, {}, temporaries}, 1));
  EXPECT_EQ(plan.launches()[0].values, (std::vector<int64_t>{5, 0, 8}));
}

/// Rotates the rows of q and of k, which has fewer heads, in one launch.
const char *const turn = R"({
  "name": "turn",
  "inputs": [{"name": "q", "type": "f32", "shape": [null, null, 8]},
             {"name": "k", "type": "f32", "shape": [null, null, 8]},
             {"name": "angles", "type": "f32", "shape": [null, 1, 8]}],
  "outputs": [
    {"name": "q_out", "type": "f32",
     "shape": [{"input": 0, "dimension": 0}, {"input": 0, "dimension": 1}, 8]},
    {"name": "k_out", "type": "f32",
     "shape": [{"input": 1, "dimension": 0}, {"input": 1, "dimension": 1}, 8]},
    {"name": "total", "type": "f32", "shape": [8], "zero_if_no_rows": true}],
  "launches": [{"kernel": "turn", "leading": 2,
    "operands": [{"input": 0, "rows": true},
                 {"input": 2, "rows": true, "space": 0},
                 {"output": 0, "rows": true},
                 {"input": 1, "rows": true, "space": 1},
                 {"input": 2, "rows": true, "space": 1},
                 {"output": 1, "rows": true, "space": 1}, {"output": 2}],
    "variants": [
      {"entry": "flat", "leading": 1, "alignment": [16, 16, 16, 16, 16, 16, 4],
       "arguments": [{"size": 0}, {"size": 0, "space": 1}],
       "grid": "rows", "block": 32},
      {"entry": "strided", "leading": 2,
       "alignment": [4, 4, 4, 4, 4, 4, 4],
       "arguments": [
         {"size": 0}, {"size": 1},
         {"stride": 0, "dimension": 0}, {"stride": 0, "dimension": 1},
         {"stride": 1, "dimension": 0}, {"stride": 1, "dimension": 1},
         {"size": 0, "space": 1}, {"size": 1, "space": 1},
         {"stride": 3, "dimension": 0}, {"stride": 3, "dimension": 1},
         {"stride": 4, "dimension": 0}, {"stride": 4, "dimension": 1}],
       "grid": {"add": ["rows", {"mul": [{"rows": 1}, 100]}]},
       "block": 32}]}]})";

struct Turn {
  Turn(int64_t batch, int64_t qHeads, int64_t kHeads, int64_t kBatch = -1) {
    if (kBatch < 0)
      kBatch = batch;
    inputs = {Rotation::makeView(0x1000, {batch, qHeads, 8}),
              Rotation::makeView(0x2000, {kBatch, kHeads, 8}),
              Rotation::makeView(0x3000, {batch, 1, 8})};
    outputs = {Rotation::makeView(0x4000, inputs[0].sizes),
               Rotation::makeView(0x5000, inputs[1].sizes),
               Rotation::makeView(0x6000, {8})};
  }
  Error prepare() { return plan.prepare(function, {inputs, outputs, {}}, 132); }
  const PlannedLaunch &launch() { return plan.launches()[0]; }

  Function function = parseFunction(turn);
  std::vector<TensorView> inputs, outputs;
  LaunchPlan plan;
};

TEST(RowSpacesTest, haveSizesOfTheirOwn) {
  Turn turn(5, 6, 2);
  ASSERT_OK(turn.prepare());
  EXPECT_EQ(turn.launch().variant->entry, "strided");
  EXPECT_EQ(turn.launch().values,
            (std::vector<int64_t>{5, 6, 48, 8, 8, 0, 5, 2, 16, 8, 8, 0}));
  EXPECT_EQ(turn.launch().config.grid, 30 + 1000);
}

TEST(RowSpacesTest, mergeOnTheirOwn) {
  // A single head of k merges with the batch, padded to the dimensions of the
  // variant.
  Turn turn(5, 6, 1);
  ASSERT_OK(turn.prepare());
  EXPECT_EQ(turn.launch().variant->entry, "strided");
  EXPECT_EQ(turn.launch().values,
            (std::vector<int64_t>{5, 6, 48, 8, 8, 0, 1, 5, 0, 8, 0, 8}));

  // The fast variant has to take all row spaces.
  Turn flat(5, 1, 1);
  ASSERT_OK(flat.prepare());
  EXPECT_EQ(flat.launch().variant->entry, "flat");
  EXPECT_EQ(flat.launch().values, (std::vector<int64_t>{5, 5}));
  flat.inputs[1].data = fakeAddress(0x2004);
  ASSERT_OK(flat.prepare());
  EXPECT_EQ(flat.launch().variant->entry, "strided");
}

TEST(RowSpacesTest, agreeWithinASpaceOnly) {
  Turn turn(5, 6, 2, /*kBatch=*/4);
  expectError(turn.prepare(),
              "input 'k' has shape [4, 2, 8], but input 'angles' has shape "
              "[5, 1, 8]: all but the last size must agree");
}

TEST(RowSpacesTest, runWhileAnyHasRows) {
  Turn noKeys(5, 6, 0);
  // An empty tensor may have any address and strides.
  noKeys.inputs[1].data = fakeAddress(0x2001);
  noKeys.inputs[1].strides = {77, 5, 1};
  noKeys.outputs[1].data = nullptr;
  ASSERT_OK(noKeys.prepare());
  EXPECT_TRUE(noKeys.plan.zeroFills().empty());
  EXPECT_EQ(noKeys.launch().values,
            (std::vector<int64_t>{5, 6, 48, 8, 8, 0, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(noKeys.launch().config.grid, 30);

  Turn noQueries(5, 0, 2);
  ASSERT_OK(noQueries.prepare());
  EXPECT_EQ(noQueries.launch().variant->entry, "strided");
  EXPECT_EQ(noQueries.launch().config.grid, 1000);

  // The grid of the fast variant counts only the rows of the first row space.
  Turn noBlocks(5, 0, 1);
  ASSERT_OK(noBlocks.prepare());
  EXPECT_TRUE(noBlocks.plan.launches().empty());
  EXPECT_EQ(noBlocks.plan.zeroFills().size(), 1u);

  Turn nothing(0, 6, 2);
  ASSERT_OK(nothing.prepare());
  EXPECT_TRUE(nothing.plan.launches().empty());
  ASSERT_EQ(nothing.plan.zeroFills().size(), 1u);
  EXPECT_EQ(nothing.plan.zeroFills()[0].data, fakeAddress(0x6000));
}

TEST(RowSpacesTest, takeNoMemoryAfterTheFirstCall) {
  Turn turn(5, 6, 2), other(3, 4, 0);
  ASSERT_OK(turn.prepare());
  const size_t before = allocationsMade;
  Error again = turn.prepare();
  turn.inputs = other.inputs;
  EXPECT_EQ(allocationsMade, before);
  turn.outputs = other.outputs;
  Error smaller = turn.prepare();
  EXPECT_EQ(allocationsMade, before);
  EXPECT_OK(std::move(again));
  EXPECT_OK(std::move(smaller));
  EXPECT_EQ(turn.launch().config.grid, 12);
}

/// Sums over batches and heads: the result has rows of its own, in a second row
/// space.
struct SumOfHeads {
  SumOfHeads(int64_t batch, int64_t sequence, int64_t heads)
      : inputs{Rotation::makeView(0x1000, {batch, sequence, heads, 8}),
               Rotation::makeView(0x2000, {1, sequence, 1, 8})},
        outputs{Rotation::makeView(0x3000, {1, sequence, 1, 8})} {}
  Error prepare() { return plan.prepare(function, {inputs, outputs, {}}, 4); }
  const PlannedLaunch &launch() { return plan.launches()[0]; }

  Function function = parseFunction(R"({
    "name": "sum",
    "inputs": [{"name": "x", "type": "f32", "shape": [null, null, null, 8]},
               {"name": "t", "type": "f32", "shape": [1, null, 1, 8]}],
    "outputs": [{"name": "y", "type": "f32",
                 "shape": [1, {"input": 0, "dimension": 1}, 1, 8]}],
    "launches": [{"kernel": "sum", "leading": 3, "combines": [0, 2],
      "operands": [{"input": 0, "rows": true},
                   {"input": 1, "rows": true, "space": 1},
                   {"output": 0, "rows": true, "space": 1}],
      "variants": [{"entry": "sum", "leading": 3, "alignment": [4, 4, 4],
        "arguments": [
          {"size": 1}, {"size": 0}, {"size": 2},
          {"size": 0, "space": 1}, {"size": 1, "space": 1},
          {"size": 2, "space": 1},
          {"stride": 0, "dimension": 1}, {"stride": 0, "dimension": 0},
          {"stride": 0, "dimension": 2},
          {"stride": 2, "dimension": 0}, {"stride": 2, "dimension": 1},
          {"stride": 2, "dimension": 2}],
        "grid": {"rows": 1}, "block": 32}]}]})");
  std::vector<TensorView> inputs, outputs;
  LaunchPlan plan;
};

TEST(RowSpacesTest, doNotMergeWhatIsCombined) {
  // Contiguous dimensions, and some of size 1, stay apart.
  SumOfHeads sum(2, 5, 3), single(1, 5, 1);
  ASSERT_OK(sum.prepare());
  EXPECT_EQ(sum.launch().values,
            (std::vector<int64_t>{5, 2, 3, 1, 1, 5, 24, 120, 8, 0, 0, 8}));
  EXPECT_EQ(sum.launch().config.grid, 5);
  ASSERT_OK(single.prepare());
  EXPECT_EQ(single.launch().values,
            (std::vector<int64_t>{5, 1, 1, 1, 1, 5, 8, 40, 8, 0, 0, 8}));
}

TEST(RowSpacesTest, runWhereNothingIsCombined) {
  SumOfHeads noHeads(2, 5, 0);
  ASSERT_OK(noHeads.prepare());
  EXPECT_EQ(noHeads.launch().config.grid, 5);
  EXPECT_EQ((std::vector<int64_t>(noHeads.launch().values.begin(),
                                  noHeads.launch().values.begin() + 3)),
            (std::vector<int64_t>{5, 2, 0}));

  SumOfHeads noResult(2, 0, 3);
  ASSERT_OK(noResult.prepare());
  EXPECT_TRUE(noResult.plan.launches().empty());
}

TEST(RowSpacesTest, agreeInWhatIsLeft) {
  SumOfHeads sum(2, 5, 3);
  sum.inputs[1] = Rotation::makeView(0x2000, {1, 4, 1, 8});
  sum.outputs[0] = Rotation::makeView(0x3000, {1, 5, 1, 8});
  expectError(sum.prepare(), "all but the last size must agree");
  // No operand of the second row space gives its sizes.
  sum.function.launches[0].operands.pop_back();
  for (Variant &variant : sum.function.launches[0].variants) {
    variant.arguments.resize(9);
    variant.alignment.pop_back();
    variant.phase.pop_back();
  }
  expectError(sum.prepare(), "kernel 'sum': rows of leading sizes [2, 5, 3] do "
                             "not combine to those of [1, 4, 1]");
}

void expectMalformed(const std::string &from, const std::string &to,
                     const std::string &message) {
  std::string text = turn;
  const size_t position = text.find(from);
  ASSERT_NE(position, std::string::npos) << from;
  text.replace(position, from.size(), to);
  expectError(parseMetadata(document(text)).takeError(), message);
}

TEST(RowSpacesTest, areCheckedWhenRead) {
  const std::string launch = "functions[0].launches[0]";
  EXPECT_EQ(parseFunction(turn).launches[0].spaces, 2u);
  expectMalformed(R"({"output": 2})", R"({"output": 2, "space": 1})",
                  launch + ".operands[6].space: an operand without rows "
                           "belongs to no row space");
  expectMalformed(R"({"input": 0, "rows": true})",
                  R"({"input": 0, "rows": true, "space": 3})",
                  launch + ".operands: none has the rows of space 2");
  expectMalformed(R"({"input": 0, "rows": true})",
                  R"({"input": 0, "rows": true, "space": 7})",
                  launch + ".operands[0].space: 7 is out of range: there are "
                           "7 operands");
  expectMalformed(R"({"size": 0, "space": 1})", R"({"size": 0, "space": 2})",
                  launch + ".variants[0].arguments[1].space: 2 is out of "
                           "range: there are 2 spaces");
  expectMalformed(R"({"rows": 1})", R"({"rows": 2})",
                  launch + ".variants[1].grid.add[1].mul[0].rows: 2 is out of "
                           "range: there are 2 spaces");
  expectMalformed(R"({"input": 0, "dimension": 0})", R"({"rows": 0})",
                  "functions[0].outputs[0].shape[0]: expected an integer");
}

} // namespace
