//===- MetadataTest.cpp ---------------------------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Support.h"

#include "bastile/runtime/Files.h"

#include <cstdio>

using namespace bastile::runtime;

namespace {

const char *const geglu = R"({
  "name": "geglu",
  "inputs": [{"name": "gate", "type": "bf16", "shape": [null, 2880]},
             {"name": "up", "type": "bf16", "shape": [null, 2880]}],
  "outputs": [{"name": "result0", "type": "bf16",
               "shape": [{"input": 0, "dimension": 0}, 2880]}],
  "temporaries": [{"type": "f32", "shape": [{"min": ["multiprocessors", 64]}],
                   "zeroed_by": "runtime"}],
  "launches": [{
    "kernel": "geglu",
    "operands": [{"input": 0, "rows": true}, {"input": 1, "rows": true},
                 {"output": 0, "rows": true}, {"temporary": 0}],
    "leading": 1,
    "variants": [{
      "entry": "geglu_v8", "leading": 1, "alignment": [16, 16, 16, 4],
      "arguments": [{"size": 0}, {"pointer": 0},
                    {"stride": 0, "dimension": 0}, {"pointer": 3}],
      "grid": {"ceildiv": ["rows", 4]},
      "block": 384, "cluster": 2, "shared_memory": 1024,
      "max_registers": 128, "static_shared_memory": 64
    }],
    "overlap_next": true
  }]
})";

/// `text` with its only `from` replaced.
std::string replace(std::string text, const std::string &from,
                    const std::string &to) {
  size_t position = text.find(from);
  EXPECT_NE(position, std::string::npos) << from;
  return text.replace(position, from.size(), to);
}

void expectMalformed(const std::string &from, const std::string &to,
                     const std::string &message) {
  expectError(parseMetadata(replace(document(geglu), from, to)).takeError(),
              message);
}

TEST(MetadataTest, readsEveryField) {
  Expected<Metadata> metadata = parseMetadata(document(geglu));
  ASSERT_OK(metadata.takeError());
  EXPECT_EQ(metadata->compiler, "bastile 0.1.0");
  EXPECT_EQ(metadata->target, "sm_90");
  EXPECT_EQ(metadata->find("swiglu"), nullptr);

  const Function *function = metadata->find("geglu");
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function->inputs[1].name, "up");
  EXPECT_EQ(function->inputs[1].type, ElementType::BF16);
  EXPECT_FALSE(function->inputs[1].shape[0].has_value());
  EXPECT_EQ(function->inputs[1].shape[1], 2880);
  EXPECT_EQ(function->outputs[0].shape[0].kind, Expression::Kind::InputSize);
  EXPECT_FALSE(function->outputs[0].zeroIfNoRows);
  EXPECT_TRUE(function->temporaries[0].zeroed);

  const Launch &launch = function->launches[0];
  EXPECT_EQ(launch.kernel, "geglu");
  EXPECT_TRUE(launch.overlapNext);
  EXPECT_EQ(launch.operands[2].kind, Operand::Kind::Output);
  EXPECT_TRUE(launch.operands[2].rows);
  EXPECT_EQ(launch.operands[3].kind, Operand::Kind::Temporary);
  EXPECT_FALSE(launch.operands[3].rows);

  const Variant &variant = launch.variants[0];
  EXPECT_EQ(variant.entry, "geglu_v8");
  EXPECT_EQ(variant.alignment, (std::vector<int64_t>{16, 16, 16, 4}));
  EXPECT_EQ(variant.phase, (std::vector<int64_t>{1, 1, 1, 1}));
  EXPECT_EQ(variant.arguments[2].kind, Argument::Kind::Stride);
  EXPECT_EQ(variant.grid.kind, Expression::Kind::CeilDiv);
  EXPECT_EQ(variant.block, 384);
  EXPECT_EQ(variant.cluster, 2);
  EXPECT_EQ(variant.sharedMemory, 1024);
  EXPECT_EQ(variant.maxRegisters, 128);
  EXPECT_EQ(variant.staticSharedMemory, 64);
}

TEST(MetadataTest, readsTheCommentBlockOfPtx) {
  std::string ptx = ".version 8.0\n// a comment\n// bastile-metadata-begin\n";
  std::string json = document(geglu);
  for (size_t start = 0; start < json.size();) {
    size_t end = std::min(json.find('\n', start), json.size());
    ptx += "// " + json.substr(start, end - start) + "\n";
    start = end + 1;
  }
  Expected<Metadata> metadata =
      parseMetadata(ptx + "// bastile-metadata-end\n.visible .entry e() {}\n");
  ASSERT_OK(metadata.takeError());
  EXPECT_NE(metadata->find("geglu"), nullptr);

  expectError(parseMetadata(ptx).takeError(),
              "no line '// bastile-metadata-end'");
  expectError(parseMetadata(ptx + "ret;\n").takeError(), "is not a comment");
  expectError(parseMetadata(".version 8.0\n").takeError(), "neither JSON nor");
}

TEST(MetadataTest, ignoresUnknownKeys) {
  EXPECT_OK(parseMetadata(replace(document(geglu), "\"block\"",
                                  "\"color\": [1], \"block\""))
                .takeError());
}

TEST(MetadataTest, appliesDefaults) {
  Function function = parseFunction(R"({
    "name": "f", "inputs": [], "outputs": [],
    "launches": [{"kernel": "k", "operands": [], "leading": 0,
      "variants": [{"entry": "k", "leading": 0, "alignment": [],
                    "arguments": [], "grid": 1, "block": 32}]}]})");
  const Launch &launch = function.launches[0];
  EXPECT_FALSE(launch.overlapNext);
  EXPECT_EQ(launch.variants[0].cluster, 1);
  EXPECT_EQ(launch.variants[0].sharedMemory, 0);
  EXPECT_FALSE(launch.variants[0].maxRegisters.has_value());
}

TEST(MetadataTest, readsWhatIsCombined) {
  auto withCombines = [](const std::string &list) {
    return document(R"({
      "name": "f", "outputs": [],
      "inputs": [{"name": "x", "type": "f32", "shape": [null, null, 8]}],
      "launches": [{"kernel": "k", "leading": 2, "combines": )" +
                    list + R"(,
        "operands": [{"input": 0, "rows": true}],
        "variants": [{"entry": "k", "leading": 2, "alignment": [4],
                      "arguments": [], "grid": 1, "block": 32}]}]})");
  };
  for (const auto &[list, isAll] :
       {std::pair("[]", false), {"[1]", false}, {"[0, 1]", true}}) {
    Expected<Metadata> metadata = parseMetadata(withCombines(list));
    ASSERT_OK(metadata.takeError());
    EXPECT_EQ(metadata->functions[0].launches[0].combinesAll(), isAll) << list;
  }
  const std::string place = "functions[0].launches[0].combines";
  expectError(parseMetadata(withCombines("[2]")).takeError(),
              place + "[0]: 2 is out of range: there are 2 leading dimensions");
  expectError(parseMetadata(withCombines("[1, 0]")).takeError(),
              place + "[1]: dimension 0 follows dimension 1, expected "
                      "ascending order");
}

TEST(MetadataTest, namesThePlaceOfAnError) {
  expectMalformed("\"bf16\", \"shape\": [null, 2880]},\n", "17,\n", "not JSON");
  expectMalformed("bastile.kernels", "other",
                  "schema: expected 'bastile.kernels', got 'other'");
  expectMalformed("\"version\": 1", "\"version\": 8",
                  "version: version 8 is unknown to this runtime, which reads "
                  "versions 1 to 7");
  expectMalformed("\"compiler\"", "\"maker\"", "document: lacks 'compiler'");
  expectMalformed("\"gate\", \"type\": \"bf16\"", "\"gate\", \"type\": \"x\"",
                  "functions[0].inputs[0].type: unknown type 'x'");
  expectMalformed("[null, 2880]", "[2880, null]",
                  "functions[0].launches[0].operands[0]: the last dimension "
                  "of input 'gate' must be static in a launch over rows");
  expectMalformed("[null, 2880]", "[1, 1, 1, 1, 1, 1, 1, 1, 1]",
                  "functions[0].inputs[0].shape: rank 9 is above 8");
  expectMalformed("[null, 2880]", "[null, -1]",
                  "functions[0].inputs[0].shape[1]: expected at least 0");
  expectMalformed("{\"input\": 0, \"dimension\": 0}, 2880",
                  "{\"input\": 2, \"dimension\": 0}, 2880",
                  "functions[0].outputs[0].shape[0].input: 2 is out of range: "
                  "there are 2 inputs");
  expectMalformed("{\"min\": [\"multiprocessors\", 64]}", "\"rows\"",
                  "functions[0].temporaries[0].shape[0]: no size is called");
  expectMalformed("\"runtime\"", "\"caller\"",
                  "functions[0].temporaries[0].zeroed_by: expected 'nobody'");
}

/// An expression of `depth` levels.
std::string nest(size_t depth) {
  std::string text;
  for (size_t i = 1; i != depth; ++i)
    text += R"({"add": [)";
  text += "1";
  for (size_t i = 1; i != depth; ++i)
    text += "]}";
  return text;
}

TEST(MetadataTest, rejectsExpressionsThatTakeTheWholeStack) {
  const std::string grid = R"({"ceildiv": ["rows", 4]})";
  EXPECT_OK(
      parseMetadata(replace(document(geglu), grid, nest(64))).takeError());
  expectMalformed(grid, nest(65), "an expression of more than 64 levels");
  expectMalformed(grid, nest(100000), "an expression of more than 64 levels");
  // Lists without a meaning are no error, however deep.
  EXPECT_OK(parseMetadata(replace(document(geglu), R"("max_registers": 128)",
                                  R"("max_registers": 128, "new": )" +
                                      std::string(100000, '[') +
                                      std::string(100000, ']')))
                .takeError());
}

TEST(MetadataTest, rejectsNumbersThatTheDriverDoesNotTake) {
  for (const char *key :
       {"\"block\": 384", "\"cluster\": 2", "\"shared_memory\": 1024",
        "\"max_registers\": 128", "\"static_shared_memory\": 64"}) {
    const std::string text = key;
    const std::string name = text.substr(0, text.find(' ') + 1);
    expectMalformed(text, name + "4294967297",
                    "expected at most 2147483647, got 4294967297");
  }
}

TEST(MetadataTest, rejectsResultsPastThoseThatAreCounted) {
  // The low 32 bits of this index are those of result 0.
  expectMalformed(
      R"("overlap_next": true
  }])",
      R"("overlap_next": true
  }], "backward": {"function": "geglu",
       "inputs": [{"input": 0}, {"input": 1}],
       "gradients": {"gate": {"result": 4294967296}}})",
      "4294967296 is out of range");
}

TEST(MetadataTest, rejectsInconsistentLaunches) {
  const std::string launch = "functions[0].launches[0]";
  const std::string variant = launch + ".variants[0]";
  expectMalformed("{\"temporary\": 0}", "{\"temporary\": 0, \"rows\": true}",
                  launch + ".operands[3]: temporary 0 has rank 1, but");
  expectMalformed("{\"temporary\": 0}", "{\"temporary\": 0, \"band\": 0}",
                  launch + ".operands[3].band: expected at least 1, got 0");
  expectMalformed("{\"temporary\": 0}", "{\"temporary\": 0, \"band\": 128}",
                  launch + ".operands[3].band: bands are of rows");
  expectMalformed("\"leading\": 1,\n    \"variants\"",
                  "\"leading\": 8,\n    \"variants\"",
                  launch + ".leading: expected at most 7, got 8");
  expectMalformed("[16, 16, 16, 4]", "[16, 16, 16]",
                  variant + ".alignment: expected one number for each of the "
                            "4 operands, got 3");
  expectMalformed("[16, 16, 16, 4]", "[16, 12, 16, 4]",
                  variant + ".alignment[1]: 12 is not a power of two");
  auto expectBadPhase = [&](const std::string &phase, const std::string &what) {
    expectMalformed("\"alignment\"", "\"phase\": " + phase + ", \"alignment\"",
                    variant + ".phase" + what);
  };
  expectBadPhase("[8, 8, 8]", ": expected one number for each of the 4 "
                              "operands, got 3");
  expectBadPhase("[8, 6, 8, 1]", "[1]: 6 is not a power of two");
  expectBadPhase("[8, 8, 8, 8]",
                 "[3]: operand 3 is shared by all rows and has no phase");
  expectMalformed("{\"size\": 0}", "{\"size\": 1}",
                  variant + ".arguments[0].size: 1 is out of range");
  expectMalformed("{\"pointer\": 0}", "{\"pointer\": 4}",
                  variant + ".arguments[1].pointer: 4 is out of range");
  expectMalformed("{\"stride\": 0", "{\"stride\": 3",
                  variant + ".arguments[2]: operand 3 is shared by all rows");
  expectMalformed("{\"size\": 0}", "{\"time\": 0}",
                  variant + ".arguments[0]: expected 'size', 'unmerged_size',");
  expectMalformed("{\"size\": 0}", "{\"unmerged_size\": 1}",
                  variant + ".arguments[0].unmerged_size: 1 is out of range");
  expectMalformed("[\"rows\", 4]", "[\"rows\"]",
                  variant + ".grid.ceildiv: expected two operands, got 1");
  expectMalformed("\"ceildiv\"", "\"floordiv\"", variant + ".grid: expected");
  expectMalformed("\"block\": 384", "\"block\": 0",
                  variant + ".block: expected at least 1, got 0");
  expectMalformed("\"block\": 384", "\"block\": 18446744073709551615",
                  variant + ".block: 18446744073709551615 does not fit");
  expectMalformed("\"overlap_next\": true", "\"overlap_next\": 1",
                  launch + ".overlap_next: expected true or false");
  expectMalformed("\"overlap_next\": true",
                  R"("combines": [0], "any_order": true)",
                  launch + ".any_order: the kernel combines rows");
}

TEST(MetadataTest, readsAliases) {
  const std::string output = "\"dimension\": 0}, 2880]}";
  auto withAlias = [&](const std::string &input) {
    return replace(document(geglu), output,
                   "\"dimension\": 0}, 2880], \"may_alias\": " + input + "}");
  };
  Expected<Metadata> metadata = parseMetadata(withAlias("1"));
  ASSERT_OK(metadata.takeError());
  EXPECT_EQ(metadata->functions[0].outputs[0].mayAlias, 1u);
  metadata = parseMetadata(document(geglu));
  ASSERT_OK(metadata.takeError());
  EXPECT_EQ(metadata->functions[0].outputs[0].mayAlias, std::nullopt);

  const std::string place = "functions[0].outputs[0].may_alias: ";
  auto expect = [&](const std::string &document, const std::string &message) {
    expectError(parseMetadata(document).takeError(), place + message);
  };
  expect(withAlias("2"), "2 is out of range: there are 2 inputs");
  expect(withAlias("\"up\""), "expected an integer, got string");
  expect(withAlias("1, \"zero_if_no_rows\": true"),
         "an output with 'zero_if_no_rows' needs memory of its own");
  expect(replace(withAlias("1"), "\"result0\", \"type\": \"bf16\"",
                 "\"result0\", \"type\": \"f16\""),
         "input 'up' of shape [?, 2880] and type bf16 is not like output "
         "'result0'");
  expect(replace(withAlias("1"), output.substr(0, 20), "\"dimension\": 0}, 28"),
         "input 'up' of shape");
  expect(replace(withAlias("1"), "{\"input\": 0, \"dimension\": 0}, ", ""),
         "input 'up' of shape");
  const std::string second = "1}, {\"name\": \"again\", \"type\": \"bf16\", "
                             "\"shape\": [1, 2880], \"may_alias\": 1";
  expectError(parseMetadata(withAlias(second)).takeError(),
              "functions[0].outputs[1].may_alias: output 'result0' may take "
              "the memory of input 'up' already");
}

TEST(MetadataTest, loadsFromBesideACompiledFile) {
  const std::string object = testing::TempDir() + "bastile-metadata-test.o";
  ASSERT_OK(writeFile(object + ".json", document(geglu)));
  Expected<Metadata> metadata = loadMetadata(object);
  ASSERT_OK(metadata.takeError());
  EXPECT_NE(metadata->find("geglu"), nullptr);

  ASSERT_OK(writeFile(object + ".json", "{}"));
  expectError(loadMetadata(object).takeError(),
              object + ".json: metadata: document: lacks 'schema'");
  std::remove((object + ".json").c_str());
  expectError(loadMetadata(object).takeError(), "cannot open");
}

} // namespace
