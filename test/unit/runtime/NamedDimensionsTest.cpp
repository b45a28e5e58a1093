//===- NamedDimensionsTest.cpp - Launches over named dimensions -----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Product.h"

using namespace bastile::runtime;

namespace {

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

void expectMalformed(const std::string &from, const std::string &to,
                     const std::string &message) {
  std::string text = document(product);
  size_t position = text.find(from);
  ASSERT_NE(position, std::string::npos) << from;
  text.replace(position, from.size(), to);
  expectError(parseMetadata(text).takeError(),
              "functions[0].launches[0]." + message);
}

TEST(NamedDimensionsTest, areRead) {
  const Function function = parseFunction(product);
  EXPECT_FALSE(function.inputs[0].shape[1].has_value());
  const Launch &launch = function.launches[0];
  EXPECT_EQ(launch.dimensions, (std::vector<std::string>{"m", "n", "k"}));
  EXPECT_EQ(launch.maps[1][0].dimension, 1u);
  EXPECT_EQ(launch.maps[1][1].dimension, 2u);

  const Variant &variant = launch.variants[0];
  EXPECT_EQ(variant.arguments[2].kind, Argument::Kind::Size);
  EXPECT_EQ(variant.arguments[2].dimension, 2u);
  EXPECT_EQ(variant.arguments[4].kind, Argument::Kind::TensorMap);
  EXPECT_EQ(variant.arguments[4].map, 1u);
  EXPECT_EQ(variant.tensorMaps[1].operand, 1u);
  EXPECT_EQ(variant.tensorMaps[1].box, (Dimensions{256, 64}));
  EXPECT_EQ(variant.tensorMaps[1].swizzle, 128);
  EXPECT_EQ(variant.needs,
            (std::vector<Feature>{Feature::Wgmma, Feature::TensorMaps}));
  EXPECT_TRUE(launch.variants[1].needs.empty());
  // The bias is read by its address, and the result's last stride is not taken.
  EXPECT_EQ(variant.packed, (std::vector<uint8_t>{0, 0, 1, 2}));
  EXPECT_EQ(launch.variants[2].packed, (std::vector<uint8_t>{0, 2, 1, 2}));
  // The last variant takes any stride of `x` and of nothing else.
  EXPECT_TRUE(function.inputs[0].strided);
  EXPECT_FALSE(function.inputs[1].strided);
  EXPECT_FALSE(function.inputs[2].strided);
  EXPECT_FALSE(function.outputs[0].strided);
}

TEST(NamedDimensionsTest, ofOtherLaunchesDecideAboutStrides) {
  // A launch over rows of the same input takes contiguous rows only.
  const Function function = parseFunction(R"({
    "name": "f", "outputs": [],
    "inputs": [{"name": "x", "type": "f32", "shape": [null, 8]},
               {"name": "unused", "type": "f32", "shape": [null]}],
    "launches": [
      {"kernel": "a", "dimensions": ["m"],
       "operands": [{"input": 0, "map": ["m", 8]}],
       "variants": [{"entry": "a", "alignment": [4], "block": 1, "grid": 1,
         "arguments": [{"pointer": 0}, {"stride": 0, "dimension": 1}]}]},
      {"kernel": "b", "leading": 1,
       "operands": [{"input": 0, "rows": true}],
       "variants": [{"entry": "b", "leading": 1, "alignment": [4], "block": 1,
         "grid": 1, "arguments": [{"pointer": 0}]}]}]})");
  EXPECT_FALSE(function.inputs[0].strided);
  EXPECT_FALSE(function.inputs[1].strided);
}

TEST(NamedDimensionsTest, areCheckedInDocuments) {
  expectMalformed(R"(["m", "n", "k"])", R"(["m", "n", "m"])",
                  "dimensions[2]: there is a dimension 'm' already");
  expectMalformed(R"(["m", "n", "k"])", R"(["m", "n", ""])",
                  "dimensions[2]: a dimension needs a name");
  expectMalformed(R"(["m", "n", "k"])", R"(["m", "n", "k", "b"])",
                  "operands: none has the dimension 'b' to take its size from");
  expectMalformed(R"(["m", "n", "k"])", R"(["m", "n", "k"], "leading": 1)",
                  "leading: the launch is over named dimensions and not over "
                  "rows");
  expectMalformed(R"(["m", "n", "k"])", R"(["m", "n", "k"], "combines": [])",
                  "combines: the launch is over named dimensions");
  expectMalformed(R"("map": ["m", "k"])", R"("rows": true)",
                  "operands[0].rows: the launch is over named dimensions");
  expectMalformed(R"("map": ["m", "k"])", R"("band": 2)",
                  "operands[0].band: the launch is over named dimensions");
  expectMalformed(R"("map": ["m", "k"])", R"("strides": 0)",
                  "operands[0]: lacks 'map'");
  expectMalformed(R"("map": ["m", "k"])", R"("map": ["m"])",
                  "operands[0].map: expected one dimension for each of the 2 "
                  "of input 'x', got 1");
  expectMalformed(R"("map": ["m", "k"])", R"("map": ["m", "b"])",
                  "operands[0].map[1]: the launch has no dimension 'b'");
  expectMalformed(R"("map": ["m", "k"])", R"("map": ["m", null])",
                  "operands[0].map[1]: expected a string, got null");
  expectMalformed(R"("map": ["m", "k"])", R"("map": ["m", -1])",
                  "operands[0].map[1]: expected at least 0, got -1");

  const std::string variant = "variants[0].";
  expectMalformed(R"("alignment")", R"("leading": 2, "alignment")",
                  variant + "leading: the launch is over named dimensions");
  expectMalformed(R"("alignment")", R"("phase": [8, 8, 1, 8], "alignment")",
                  variant + "phase: the launch is over named dimensions");
  expectMalformed(R"({"size": "m"})", R"({"size": "b"})",
                  variant + "arguments[0].size: the launch has no dimension");
  expectMalformed(R"({"size": "m"})", R"({"size": 0})",
                  variant + "arguments[0].size: expected a string, got number");
  expectMalformed(R"({"size": "m"})", R"({"rows": 0})",
                  variant + "arguments[0]: expected 'size', 'pointer', 'stride'"
                            " or 'tensor_map'");
  expectMalformed(R"("stride": 3, "dimension": 0)",
                  R"("stride": 3, "dimension": 2)",
                  variant + "arguments[7].dimension: 2 is out of range: there "
                            "are 2 dimensions");
  expectMalformed(R"({"size": "m"}, 256)", R"({"size": "b"}, 256)",
                  variant + "grid.mul[1].min[1].mul[0].ceildiv[0].size: the "
                            "launch has no dimension 'b'");
  expectMalformed(R"({"size": "m"}, 256)", R"("rows", 256)",
                  variant + "grid.mul[1].min[1].mul[0].ceildiv[0]: no size is "
                            "called 'rows' here");
  expectMalformed(R"(["wgmma"])", R"(["wgmma", "tcgen05"])",
                  variant + "requires[1]: no feature is called 'tcgen05'");
  auto withLeast = [](const std::string &least) {
    return R"("least": [)" + least + R"(], "alignment")";
  };
  expectMalformed(R"("alignment")",
                  withLeast(R"({"dimension": "b", "size": 65})"),
                  variant + "least[0].dimension: the launch has no dimension "
                            "'b'");
  expectMalformed(R"("alignment")",
                  withLeast(R"({"dimension": "m", "size": -1})"),
                  variant + "least[0].size: expected at least 0, got -1");
  expectMalformed(R"("alignment")", withLeast(R"({"dimension": "m"})"),
                  variant + "least[0]: lacks 'size'");
}

TEST(NamedDimensionsTest, haveTensorMapsThatTheHardwareTakes) {
  const std::string argument = "variants[0].arguments[3]";
  const std::string map =
      R"("tensor_map": 0, "box": [128, 64], "swizzle": 128)";
  expectMalformed(map, R"("tensor_map": 4, "box": [128, 64])",
                  argument + ".tensor_map: 4 is out of range");
  expectMalformed(map, R"("tensor_map": 0)", argument + ": lacks 'box'");
  expectMalformed(map, R"("tensor_map": 0, "box": [128])",
                  argument + ".box: expected one size for each of the 2 "
                             "dimensions, got 1");
  expectMalformed(map, R"("tensor_map": 0, "box": [0, 64])",
                  argument + ".box[0]: expected at least 1, got 0");
  expectMalformed(map, R"("tensor_map": 0, "box": [257, 64])",
                  argument + ".box[0]: expected at most 256, got 257");
  expectMalformed(map, R"("tensor_map": 0, "box": [128, 60])",
                  argument + ".box[1]: 60 elements of bf16 are no multiple of "
                             "16 bytes");
  expectMalformed(map, R"("tensor_map": 0, "box": [128, 64], "swizzle": 64)",
                  argument + ".box[1]: 64 elements of bf16 exceed the 64 bytes "
                             "that are swizzled");
  expectMalformed(map, R"("tensor_map": 0, "box": [128, 64], "swizzle": 96)",
                  argument + ".swizzle: expected 0, 32, 64 or 128 bytes, got "
                             "96");

  auto withRank = [](const std::string &shape, const std::string &map) {
    return document(R"({"name": "f", "outputs": [],
      "inputs": [{"name": "x", "type": "f32", "shape": [)" +
                    shape + R"(]}],
      "launches": [{"kernel": "k", "dimensions": [],
        "operands": [{"input": 0, "map": [)" +
                    shape + R"(]}],
        "variants": [{"entry": "k", "alignment": [16], "grid": 1, "block": 1,
          "arguments": [{"tensor_map": 0, "box": [)" +
                    map + "]}]}]}]}");
  };
  EXPECT_OK(
      parseMetadata(withRank("1, 1, 1, 1, 4", "1, 1, 1, 1, 4")).takeError());
  expectError(parseMetadata(withRank("1, 1, 1, 1, 1, 4", "1, 1, 1, 1, 1, 4"))
                  .takeError(),
              "arguments[0].tensor_map: input 'x' has rank 6, but a tensor map "
              "has 1 to 5 dimensions");
  expectError(parseMetadata(withRank("", "")).takeError(),
              "arguments[0].tensor_map: input 'x' has rank 0");
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

TEST(NamedDimensionsTest, packArguments) {
  ProductPlan plan(300, 500, 64);
  plan.outputs[0].strides[0] = 512;
  ASSERT_EQ(plan.entry(), "product_wgmma");
  const PlannedLaunch &launch = plan.launch();
  EXPECT_EQ(launch.values,
            (std::vector<int64_t>{300, 500, 64, 0, 0, 0x30000, 0x40000, 512}));
  ASSERT_EQ(launch.arguments.size(), 8u);
  for (size_t i : {0, 1, 2, 5, 6, 7})
    EXPECT_EQ(launch.arguments[i], &launch.values[i]);
  EXPECT_EQ(launch.arguments[3], &launch.maps[0].encoded);
  EXPECT_EQ(launch.arguments[4], &launch.maps[1].encoded);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(launch.arguments[4]) % 64, 0u);

  const TensorMapSpec &map = launch.maps[1].spec;
  EXPECT_EQ(map.address, fakeAddress(0x20000));
  EXPECT_EQ(map.type, ElementType::BF16);
  EXPECT_EQ(map.rank, 2);
  EXPECT_EQ(map.swizzle, 128);
  EXPECT_EQ(map.sizes[0], 500);
  EXPECT_EQ(map.sizes[1], 64);
  EXPECT_EQ(map.strides[0], 128);
  EXPECT_EQ(map.strides[1], 2);
  EXPECT_EQ(map.box[0], 256);
  EXPECT_EQ(map.box[1], 64);

  // 2 x 2 tiles of 256, in clusters of two blocks.
  EXPECT_EQ(launch.config.grid, 8);
  EXPECT_EQ(launch.config.block, 384);
  EXPECT_EQ(launch.config.cluster, 2);
  EXPECT_EQ(launch.config.sharedMemory, 212992);
}

TEST(NamedDimensionsTest, haveOneSizeEach) {
  ProductPlan inner(300, 500, 64);
  inner.inputs[1] = ProductPlan::make(0x20000, {500, 72});
  expectError(inner.prepare(),
              "function 'product': kernel 'product': input 'w' of shape [500, "
              "72] has size 72 in dimension 1, which is 'k', but input 'x' of "
              "shape [300, 64] has size 64 in dimension 1, which is 'k', too");
  ProductPlan bias(300, 500, 64);
  bias.inputs[2].sizes[0] = 1;
  expectError(bias.prepare(), "input 'bias' of shape [1] has size 1 in "
                              "dimension 0, which is 'n', but input 'w'");

  const Function fixed = parseFunction(R"({
    "name": "f", "outputs": [],
    "inputs": [{"name": "x", "type": "f32", "shape": [null, null]}],
    "launches": [{"kernel": "k", "dimensions": ["m"],
      "operands": [{"input": 0, "map": ["m", 8]}],
      "variants": [{"entry": "k", "alignment": [4], "grid": {"size": "m"},
                    "block": 1, "arguments": [{"pointer": 0}]}]}]})");
  const std::vector<TensorView> inputs = {
      TensorView::contiguous(fakeAddress(0x1000), ElementType::F32, {3, 9})};
  expectError(LaunchPlan().prepare(fixed, {inputs, {}, {}}, 1),
              "input 'x' of shape [3, 9] has size 9 in dimension 1, expected "
              "8");
}

TEST(NamedDimensionsTest, ofAnotherFixedSizeThanTheTensorAreRefused) {
  expectError(parseMetadata(document(R"({
    "name": "f", "outputs": [],
    "inputs": [{"name": "x", "type": "f32", "shape": [null, 8]}],
    "launches": [{"kernel": "k", "dimensions": ["m"],
      "operands": [{"input": 0, "map": ["m", 9]}], "variants": []}]})"))
                  .takeError(),
              "operands[0].map[1]: input 'x' has size 8 there, not 9");
}

TEST(NamedDimensionsTest, mayBeEmpty) {
  // No element of the result: no blocks, whatever the operands are.
  ProductPlan noRows(0, 500, 64);
  noRows.inputs[0].data = nullptr;
  EXPECT_EQ(noRows.entry(), "");
  // A sum of nothing is written. There are no tensor maps of no elements.
  ProductPlan noSum(300, 512, 0);
  EXPECT_EQ(noSum.entry(), "product_rows");
  EXPECT_EQ(noSum.launch().config.grid, 12);
}

TEST(NamedDimensionsTest, mayBeTooManyBlocks) {
  const Function function = parseFunction(R"({
    "name": "f", "outputs": [],
    "inputs": [{"name": "x", "type": "f32", "shape": [null, null]}],
    "launches": [{"kernel": "k", "dimensions": ["m", "n"],
      "operands": [{"input": 0, "map": ["m", "n"]}],
      "variants": [{"entry": "k", "alignment": [4], "block": 1,
                    "grid": {"mul": [{"size": "m"}, {"size": "m"}]},
                    "arguments": [{"pointer": 0}]}]}]})");
  const std::vector<TensorView> inputs = {TensorView::contiguous(
      fakeAddress(0x1000), ElementType::F32, {int64_t(1) << 32, 0})};
  expectError(LaunchPlan().prepare(function, {inputs, {}, {}}, 1),
              "kernel 'k': the grid of 'k' overflows or divides by zero");
}

//===----------------------------------------------------------------------===//
// Variants
//===----------------------------------------------------------------------===//

TEST(NamedDimensionsTest, fallBackWhereAFeatureIsMissing) {
  ProductPlan plan(300, 512, 64);
  plan.gpu = FakeGpu(/*hasAll=*/false);
  EXPECT_EQ(plan.entry(), "product_rows");
  plan.function.launches[0].variants.resize(1);
  expectError(plan.prepare(), "no variant takes these operands: "
                              "'product_wgmma' needs wgmma, which the fake "
                              "lacks");
  // The host has neither.
  expectError(
      plan.plan.prepare(plan.function, {plan.inputs, plan.outputs, {}}, 4),
      "'product_wgmma' needs wgmma, which only a GPU has");
}

TEST(NamedDimensionsTest, tellWhichVariantsAMachineCannotRun) {
  const Function function = parseFunction(product);
  const FakeGpu able, lacking(/*hasAll=*/false);
  const Launch &launch = function.launches[0];
  EXPECT_EQ(findVariant(launch, Capacity(132, &able)), &launch.variants[0]);
  EXPECT_EQ(findVariant(launch, Capacity(132, &lacking)), &launch.variants[1]);
  Launch demanding = launch;
  demanding.variants.resize(1);
  EXPECT_EQ(findVariant(demanding, Capacity(132, &lacking)), nullptr);

  EXPECT_TRUE(describeLeftOut(function, Capacity(132, &able)).empty());
  EXPECT_EQ(describeLeftOut(function, Capacity(132, &lacking)),
            (std::vector<std::string>{
                "function 'product': a variant of kernel 'product' is left "
                "out: 'product_wgmma' needs wgmma, which the fake lacks"}));
}

TEST(NamedDimensionsTest, fallBackOnSizes) {
  ProductPlan plan(64, 512, 64);
  plan.function.launches[0].variants[0].least = {{0, 65}, {1, 512}};
  EXPECT_EQ(plan.entry(), "product_rows");
  plan.inputs[0] = ProductPlan::make(0x10000, {65, 64});
  plan.outputs[0] = ProductPlan::make(0x40000, {65, 512});
  EXPECT_EQ(plan.entry(), "product_wgmma");
  plan.function.launches[0].variants.resize(1);
  plan.function.launches[0].variants[0].least = {{2, 65}};
  expectError(plan.prepare(), "'product_wgmma' needs a 'k' of at least 65, but "
                              "it is 64");
}

TEST(NamedDimensionsTest, fallBackOnStrides) {
  ProductPlan plan(304, 512, 64);
  plan.gpu = FakeGpu(/*hasAll=*/false);
  plan.outputs[0].strides[0] = 520;
  EXPECT_EQ(plan.entry(), "product_strided");
  EXPECT_EQ(plan.launch().values.back(), 520);
  // Where a dimension has one element, its stride does not count.
  ProductPlan one(1, 512, 64);
  one.gpu = FakeGpu(/*hasAll=*/false);
  one.outputs[0].strides[0] = 3;
  EXPECT_EQ(one.entry(), "product_rows");

  // A transposed operand, whose last stride one variant takes.
  ProductPlan transposed(304, 512, 64);
  transposed.inputs[0].strides = {1, 304};
  EXPECT_EQ(transposed.entry(), "product_strided");
  EXPECT_EQ(transposed.launch().values[4], 1);
  EXPECT_EQ(transposed.launch().values[5], 304);
  transposed.inputs[1].strides = {1, 512};
  expectError(transposed.prepare(),
              "input 'w' has stride 512 in its last dimension, expected 1");
}

TEST(NamedDimensionsTest, reportStridesThatNoVariantTakes) {
  ProductPlan plan(304, 512, 64);
  plan.function.launches[0].variants.resize(2);
  plan.gpu = FakeGpu(/*hasAll=*/false);
  plan.outputs[0].strides[0] = 520;
  expectError(plan.prepare(),
              "no variant takes these operands: 'product_rows' needs output "
              "'y' to have stride 512 in dimension 0, but its strides are "
              "[520, 1]");
}

TEST(NamedDimensionsTest, fallBackOnAlignment) {
  ProductPlan plan(304, 512, 60);
  plan.gpu = FakeGpu(/*hasAll=*/false);
  EXPECT_EQ(plan.entry(), "product_strided");
  ProductPlan address(304, 512, 64);
  address.gpu = FakeGpu(/*hasAll=*/false);
  address.inputs[0].data = fakeAddress(0x10002);
  EXPECT_EQ(address.entry(), "product_strided");
  address.inputs[0].data = fakeAddress(0x10001);
  expectError(address.prepare(), "'product_strided' needs input 'x' and its "
                                 "strides aligned to 2 bytes, but it is at "
                                 "0x10001 with strides [64, 1]");
}

TEST(NamedDimensionsTest, rejectNullPointers) {
  ProductPlan plan(304, 512, 64);
  plan.inputs[2].data = nullptr;
  expectError(plan.prepare(), "input 'bias' is a null pointer");
}

} // namespace
