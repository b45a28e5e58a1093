//===- PiecesTest.cpp - Operands that are pieces of tensors ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Support.h"

using namespace bastile::runtime;

namespace {

/// Two halves of a weight, one behind the other or row by row, and two columns
/// of the result.
std::string getText(const std::string &piece) {
  return R"({
    "name": "f",
    "inputs": [{"name": "w", "type": "bf16", "shape": [8, null]}],
    "outputs": [{"name": "y", "type": "f32", "shape": [4, 2]}],
    "pieces": [)" +
         piece + R"(, {"output": 0, "dimension": 1, "index": 1, "count": 2}],
    "launches": [
      {"kernel": "f", "dimensions": ["n", "k"],
       "operands": [{"piece": 0, "map": ["n", "k"]},
                    {"piece": 1, "map": ["n", 1]}],
       "variants": [{"entry": "f", "alignment": [2, 4], "block": 1, "grid": 1,
         "arguments": [{"size": "n"}, {"size": "k"},
                       {"pointer": 0}, {"stride": 0, "dimension": 0},
                       {"pointer": 1}, {"stride": 1, "dimension": 0}]}]}]})";
}

std::vector<int64_t> plan(const std::string &piece, int64_t columns) {
  const Function function = parseFunction(getText(piece));
  std::vector<TensorView> inputs{TensorView::contiguous(
      fakeAddress(0x1000), ElementType::BF16, {8, columns})};
  std::vector<TensorView> outputs{
      TensorView::contiguous(fakeAddress(0x2000), ElementType::F32, {4, 2})};
  LaunchPlan plan;
  Error error = plan.prepare(function, {inputs, outputs, {}}, 1);
  EXPECT_FALSE(error) << error.message();
  EXPECT_EQ(plan.launches().size(), 1u);
  return plan.launches()[0].values;
}

TEST(PiecesTest, beginBehindThePiecesBefore) {
  EXPECT_EQ(plan(R"({"input": 0, "dimension": 0, "index": 1, "count": 2})", 3),
            (std::vector<int64_t>{4, 3, 0x1000 + 4 * 3 * 2, 3, 0x2004, 2}));
}

TEST(PiecesTest, areInterleaved) {
  EXPECT_EQ(plan(R"({"input": 0, "dimension": 0, "index": 1, "count": 2,
                     "interleaved": true})",
                 3),
            (std::vector<int64_t>{4, 3, 0x1000 + 3 * 2, 6, 0x2004, 2}));
}

TEST(PiecesTest, areCheckedInDocuments) {
  auto expectMalformed = [](const std::string &piece,
                            const std::string &message) {
    expectError(parseMetadata(document(getText(piece))).takeError(),
                "functions[0].pieces[0]" + message);
  };
  expectMalformed(R"({"input": 0, "dimension": 2, "index": 0, "count": 2})",
                  ".dimension: 2 is out of range");
  expectMalformed(R"({"input": 0, "dimension": 0, "index": 2, "count": 2})",
                  ".index: 2 is out of range");
  expectMalformed(R"({"input": 0, "dimension": 0, "index": 0, "count": 3})",
                  ".count: input 'w' has no 3 pieces of equal length");
  expectMalformed(R"({"input": 0, "dimension": 1, "index": 0, "count": 2})",
                  ".count: input 'w' has no 2 pieces of equal length");
  expectMalformed(R"({"input": 0, "dimension": 1, "index": 0, "count": 2,
                      "interleaved": true})",
                  ".interleaved: elements of rows are neighbours");
}

} // namespace
