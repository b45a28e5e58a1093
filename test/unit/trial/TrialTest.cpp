//===- TrialTest.cpp - tile-run on kernels written by hand ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "TrialTest.h"

#include "bastile/runtime/HostTypes.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

using namespace bastile;
using namespace bastile::run;
using namespace bastile::runtime;

namespace {

template <typename T>
T &argument(void **arguments, unsigned index) {
  return *static_cast<T *>(arguments[index]);
}

/// Copies rows of `bytes` bytes.
template <size_t bytes>
void copyRows(void **arguments, int64_t begin, int64_t end, int64_t count) {
  const char *source = argument<const char *>(arguments, 0);
  const int64_t sourceStride = argument<int64_t>(arguments, 1);
  char *target = argument<char *>(arguments, 2);
  const int64_t targetStride = argument<int64_t>(arguments, 3);
  const size_t elementBytes = bytes / 4;
  for (int64_t row = begin; row != end; ++row)
    std::memmove(target + row * targetStride * elementBytes,
                 source + row * sourceStride * elementBytes, bytes);
}

/// A function that copies rows of four elements of `type`, whose output has
/// the `extra` keys.
std::string makeCopy(const std::string &type, const std::string &extra = "") {
  return R"({
    "name": "copy",
    "inputs": [{"name": "x", "type": ")" +
         type + R"(", "shape": [null, 4]}],
    "outputs": [{"name": "y", "type": ")" +
         type + R"(", "shape": [{"input": 0, "dimension": 0}, 4])" + extra +
         R"(}],
    "launches": [{"kernel": "copy", "leading": 1,
      "operands": [{"input": 0, "rows": true}, {"output": 0, "rows": true}],
      "variants": [{"entry": "copy", "leading": 1, "alignment": [1, 1],
        "arguments": [{"pointer": 0}, {"stride": 0, "dimension": 0},
                      {"pointer": 1}, {"stride": 1, "dimension": 0}],
        "grid": "rows", "block": 1}]}]})";
}

class TrialTest : public testing::Test {
protected:
  TrialTest() { options.inputs.rows = 5; }

  /// Runs `function` with `entry` as its kernel, and expects it to succeed.
  TrialResult run(const std::string &function, HostEntry entry) {
    Expected<TrialResult> result = tryRun(function, entry);
    Error error = result.takeError();
    EXPECT_FALSE(error) << error.message();
    return error ? TrialResult() : *result;
  }
  Expected<TrialResult> tryRun(const std::string &function, HostEntry entry) {
    Program program = makeProgram(function, entry);
    TestOracle oracle(expected);
    return runTrial(program, expected ? &oracle : nullptr,
                    program.metadata.functions.front(), options, files);
  }

  void expectFailure(const std::string &function, HostEntry entry,
                     const std::string &part) {
    Error error = tryRun(function, entry).takeError();
    ASSERT_TRUE(error) << "expected a failure that says: " << part;
    EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
  }

  TrialOptions options;
  ArrayFiles files;
  /// Computes the expected results; null for none.
  TestOracle::Evaluate expected = nullptr;
};

/// Adds 1 to each element, read as `Type`, of a row of 4.
template <typename Type>
void addOne(void **arguments, int64_t begin, int64_t end, int64_t count) {
  const Type *source = argument<const Type *>(arguments, 0);
  const int64_t sourceStride = argument<int64_t>(arguments, 1);
  Type *target = argument<Type *>(arguments, 2);
  const int64_t targetStride = argument<int64_t>(arguments, 3);
  for (int64_t row = begin; row != end; ++row)
    for (int64_t i = 0; i != 4; ++i)
      target[row * targetStride + i] = source[row * sourceStride + i] + 1;
}

//===----------------------------------------------------------------------===//
// In place
//===----------------------------------------------------------------------===//

TEST_F(TrialTest, takesTheMemoryOfAnInput) {
  const std::string inPlace = makeCopy("f32", R"(, "may_alias": 0)");
  static const void *source, *target;
  auto entry = [](void **arguments, int64_t begin, int64_t end, int64_t count) {
    source = argument<void *>(arguments, 0);
    target = argument<void *>(arguments, 2);
    addOne<float>(arguments, begin, end, count);
  };
  expected = [](const Tensor &x) {
    Expectation result;
    for (double number : x.getNumbers())
      result.numbers.push_back(static_cast<float>(number + 1));
    return result;
  };
  for (Placement placement : {Placement{0, 0}, Placement{3, 1}}) {
    options.inputs.placement = placement;
    options.inPlace = false;
    EXPECT_TRUE(run(inPlace, entry).passed());
    EXPECT_NE(source, target);
    options.inPlace = true;
    TrialResult result = run(inPlace, entry);
    EXPECT_EQ(source, target);
    // The expected results are those of the inputs before the call.
    ASSERT_EQ(result.outputs.size(), 1u);
    EXPECT_TRUE(result.passed()) << result.outputs[0].comparison.ulps;
  }
  // An output that may not take an input's memory does not.
  EXPECT_TRUE(run(makeCopy("f32"), entry).passed());
  EXPECT_NE(source, target);
}

TEST_F(TrialTest, findsWritesToInputs) {
  auto entry = [](void **arguments, int64_t begin, int64_t end, int64_t count) {
    copyRows<16>(arguments, begin, end, count);
    argument<float *>(arguments, 0)[0] += 1;
  };
  expectFailure(makeCopy("f32"), entry, "'copy' wrote to its input 'x'");
  expectFailure(makeCopy("f32", R"(, "may_alias": 0)"), entry,
                "'copy' wrote to its input 'x'");
  options.inPlace = true;
  run(makeCopy("f32", R"(, "may_alias": 0)"), entry);
}

TEST_F(TrialTest, findsWritesAroundWhatIsInPlace) {
  options.inPlace = true;
  expectFailure(
      makeCopy("f32", R"(, "may_alias": 0)"),
      [](void **arguments, int64_t begin, int64_t end, int64_t count) {
        copyRows<16>(arguments, begin, end, count);
        argument<float *>(arguments, 2)[-1] = 0;
      },
      "'copy' wrote outside the elements of its output 'y'");
}

TEST_F(TrialTest, takesOnlyMemoryOfItsShape) {
  std::string function = makeCopy("f32", R"(, "may_alias": 0)");
  const std::string size = R"({"input": 0, "dimension": 0})";
  function.replace(function.find(size), size.size(), "1");
  options.inPlace = true;
  expectFailure(function, addOne<float>,
                "output 'y' does not have the shape of input 'x', whose "
                "memory it is to take");
}

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// The elements of `type` that a copy was called on.
template <typename Type>
class Elements {
public:
  static std::vector<Type> seen;

  static void record(void **arguments, int64_t begin, int64_t end,
                     int64_t count) {
    copyRows<4 * sizeof(Type)>(arguments, begin, end, count);
    const Type *x = argument<const Type *>(arguments, 0);
    seen.assign(x, x + 4 * count);
  }
};
template <typename Type>
std::vector<Type> Elements<Type>::seen;

TEST_F(TrialTest, makesIntegers) {
  options.inputs.rows = 100;
  run(makeCopy("i64"), Elements<int64_t>::record);
  auto &wide = Elements<int64_t>::seen;
  EXPECT_EQ(*std::min_element(wide.begin(), wide.end()), 0);
  EXPECT_EQ(*std::max_element(wide.begin(), wide.end()), 1);
  // About half of the 400 elements are 1.
  EXPECT_NEAR(std::count(wide.begin(), wide.end(), 1), 200, 60);

  options.inputs.ranges["x"] = "-3:4";
  run(makeCopy("i32"), Elements<int32_t>::record);
  auto &narrow = Elements<int32_t>::seen;
  EXPECT_EQ(*std::min_element(narrow.begin(), narrow.end()), -3);
  EXPECT_EQ(*std::max_element(narrow.begin(), narrow.end()), 3);

  options.inputs.ranges["x"] = "9007199254740993:9007199254740994";
  run(makeCopy("i64"), Elements<int64_t>::record);
  EXPECT_EQ(wide[7], (int64_t(1) << 53) + 1);

  options.inputs.ranges["x"] = "-128:128";
  run(makeCopy("i8"), Elements<int8_t>::record);
}

TEST_F(TrialTest, checksRanges) {
  auto expect = [&](const char *type, const char *range, const char *message) {
    options.inputs.ranges = {{"x", range}};
    expectFailure(makeCopy(type), copyRows<16>, message);
  };
  expect("i32", "5", "malformed range '5' for input 'x', expected low:high");
  expect("i32", "1:b", "malformed range '1:b'");
  expect("i32", "3:3", "the range 3:3 for input 'x' is empty");
  expect("i8", "0:129", "the range 0:129 for input 'x' is beyond i8");
  expect("i8", "-129:0", "the range -129:0 for input 'x' is beyond i8");
  expect("i1", "0:3", "the range 0:3 for input 'x' is beyond i1");
  expect("f32", "0:3", "input 'x' is of f32, but --range is for integers");
  options.inputs.ranges = {{"z", "0:3"}};
  expectFailure(makeCopy("i32"), copyRows<16>, "has no input 'z'");
  options.inputs.ranges = {{"x", "0:3"}};
  options.inputs.files = {{"x", "x.npy"}};
  expectFailure(makeCopy("i32"), copyRows<16>,
                "input 'x' is given both a file and a range");
}

TEST_F(TrialTest, comparesIntegersExactly) {
  // These numbers are the same in float64.
  options.inputs.ranges["x"] = "9007199254740992:9007199254740993";
  expected = [](const Tensor &x) {
    return Expectation{{}, x.getIntegers(), {}};
  };
  EXPECT_TRUE(run(makeCopy("i64"), copyRows<32>).passed());
  TrialResult result = run(makeCopy("i64"), addOne<int64_t>);
  EXPECT_FALSE(result.passed());
  EXPECT_EQ(result.outputs[0].comparison.ulps, 1);
  EXPECT_EQ(result.outputs[0].comparison.position, 0);
  EXPECT_EQ(result.outputs[0].comparison.allowed, 0);
  options.tolerance = 1;
  EXPECT_TRUE(run(makeCopy("i64"), addOne<int64_t>).passed());
}

TEST_F(TrialTest, measuresAnyDifferenceOfIntegers) {
  Tensor least(ElementType::I64, {1}, Placement());
  Tensor most = least;
  for (auto [tensor, value] :
       {std::pair(&least, INT64_MIN), std::pair(&most, INT64_MAX)}) {
    int64_t element = value;
    tensor->setElements(reinterpret_cast<const char *>(&element));
  }
  const Expectation expected{{}, {INT64_MIN}, {}};
  EXPECT_EQ(compare(most, expected).ulps, 0x1p64);
  EXPECT_EQ(compare(least, expected).ulps, 0);
  EXPECT_EQ(compare(least, expected).position, -1);
}

TEST_F(TrialTest, readsAndWritesIntegers) {
  const std::string in = testing::TempDir() + "bastile-trial-in.npy";
  const std::string out = testing::TempDir() + "bastile-trial-out.npy";
  const int32_t elements[] = {INT32_MIN, -1, 0, INT32_MAX};
  NpyArray array{ElementType::I32, {1, 4}, std::string(16, '\0')};
  std::memcpy(array.data.data(), elements, sizeof(elements));
  ASSERT_FALSE(saveNpy(in, array));
  options.inputs.rows = std::nullopt;
  options.inputs.files["x"] = in;
  options.outputFiles["y"] = out;
  options.expectedFiles["y"] = in;
  TrialResult result = run(makeCopy("i32"), copyRows<16>);
  EXPECT_EQ(result.outputs.size(), 1u);
  EXPECT_TRUE(result.passed());
  EXPECT_FALSE(run(makeCopy("i32"), addOne<int32_t>).passed());

  run(makeCopy("i32"), copyRows<16>);
  Expected<NpyArray> written = loadNpy(out);
  ASSERT_TRUE(bool(written));
  EXPECT_EQ(written->type, ElementType::I32);
  EXPECT_EQ(written->data, array.data);
}

//===----------------------------------------------------------------------===//
// Floats of 8 bits
//===----------------------------------------------------------------------===//

TEST_F(TrialTest, takesFloatsOf8Bits) {
  options.inputs.rows = 100;
  for (ElementType type : {ElementType::F8E4M3FN, ElementType::F8E5M2}) {
    expected = [](const Tensor &x) {
      return Expectation{x.getNumbers(), {}, {}};
    };
    const std::string copy = makeCopy(std::string(name(type)));
    TrialResult result = run(copy, Elements<uint8_t>::record);
    EXPECT_TRUE(result.passed());
    double sum = 0, squares = 0;
    for (uint8_t bits : Elements<uint8_t>::seen) {
      const double number = loadElement(type, &bits);
      sum += number;
      squares += number * number;
    }
    EXPECT_NEAR(sum / 400, 0, 0.2);
    EXPECT_NEAR(squares / 400, 1, 0.3);

    // The next bit pattern is the next number.
    options.tolerance = 1;
    result = run(copy, addOne<uint8_t>);
    EXPECT_TRUE(result.passed());
    EXPECT_EQ(result.outputs[0].comparison.ulps, 1);
    options.tolerance = 0.5;
    EXPECT_FALSE(run(copy, addOne<uint8_t>).passed());
    options.tolerance = std::nullopt;
  }
}

TEST_F(TrialTest, readsAndWritesFloatsOf8BitsAsBits) {
  const std::string in = testing::TempDir() + "bastile-trial-in8.npy";
  const std::string out = testing::TempDir() + "bastile-trial-out8.npy";
  // The file holds what NumPy writes for an array of uint8.
  ASSERT_FALSE(saveNpy(in, {ElementType::F8E5M2, {1, 4}, "\x01\x3c\x7b\xc0"}));
  options.inputs.rows = std::nullopt;
  options.inputs.files["x"] = in;
  options.outputFiles["y"] = out;
  options.expectedFiles["y"] = in;
  EXPECT_TRUE(run(makeCopy("f8E5M2"), copyRows<4>).passed());
  Expected<NpyArray> written = loadNpy(out, ElementType::F8E5M2);
  ASSERT_TRUE(bool(written));
  EXPECT_EQ(written->data, "\x01\x3c\x7b\xc0");
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST_F(TrialTest, allowsWhatIsAllowedOfEachElement) {
  Tensor actual(ElementType::F32, {4}, Placement());
  const float elements[] = {1, 2, 3, 4};
  actual.setElements(reinterpret_cast<const char *>(elements));
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Expectation expected{{1, 2.25, 4, 5}, {}, {0, 0.5, 2, infinity}};
  Comparison comparison = compare(actual, expected);
  EXPECT_TRUE(comparison.passed());
  EXPECT_EQ(comparison.ofAllowed, 0.5);
  EXPECT_EQ(comparison.position, 1);
  EXPECT_EQ(comparison.unbounded, 1);
  // The worst element is the furthest beyond its allowed error.
  expected.errors[1] = 0.125;
  comparison = compare(actual, expected);
  EXPECT_FALSE(comparison.passed());
  EXPECT_EQ(comparison.ofAllowed, 2);
  EXPECT_EQ(comparison.got, 2);
  EXPECT_EQ(comparison.expected, 2.25);
  EXPECT_EQ(comparison.error, 2 * comparison.allowed);
  // No error is allowed for this element.
  expected.numbers[0] = 1 + 0x1p-22;
  EXPECT_FALSE(compare(actual, expected).passed());
  EXPECT_EQ(compare(actual, expected).position, 0);
}

TEST_F(TrialTest, findsNaNAndInfinity) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (auto [got, wanted, isRight] :
       {std::tuple(nan, 1.0, false), std::tuple(1.0, nan, false),
        std::tuple(infinity, 1.0, false), std::tuple(1.0, infinity, false),
        std::tuple(nan, nan, true), std::tuple(infinity, infinity, true),
        std::tuple(infinity, -infinity, false)}) {
    Tensor actual(ElementType::F64, {1}, Placement());
    actual.setElements(reinterpret_cast<const char *>(&got));
    EXPECT_EQ(compare(actual, {{wanted}, {}, {1e300}}).passed(), isRight)
        << got << " for " << wanted;
  }
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

TEST_F(TrialTest, givesRepeatedRowsTheSizesOfTheRest) {
  const std::string rotation = R"({
    "name": "rotation", "outputs": [], "launches": [],
    "inputs": [{"name": "angles", "type": "f32", "shape": [1, null, 1, 4]},
               {"name": "q", "type": "f32", "shape": [null, null, null, 8]}]})";
  auto shapes = [&] {
    std::vector<Dimensions> sizes;
    for (auto &[name, shape] : run(rotation, nullptr).shapes)
      sizes.push_back(shape);
    return sizes;
  };
  EXPECT_EQ(shapes(), (std::vector<Dimensions>{{1, 1, 1, 4}, {1, 1, 5, 8}}));
  options.inputs.shapes["q"] = "2x3x7x8";
  EXPECT_EQ(shapes(), (std::vector<Dimensions>{{1, 3, 1, 4}, {2, 3, 5, 8}}));
  options.inputs.rows = std::nullopt;
  EXPECT_EQ(shapes(), (std::vector<Dimensions>{{1, 3, 1, 4}, {2, 3, 7, 8}}));
}

//===----------------------------------------------------------------------===//
// Named dimensions
//===----------------------------------------------------------------------===//

/// y = x w^T, where the launch names dimensions.
const char *const product = R"({
  "name": "product",
  "inputs": [{"name": "x", "type": "f32", "shape": [null, null]},
             {"name": "w", "type": "f32", "shape": [null, null]}],
  "outputs": [{"name": "y", "type": "f32",
               "shape": [{"input": 0, "dimension": 0},
                         {"input": 1, "dimension": 0}]}],
  "launches": [{"kernel": "product", "dimensions": ["m", "n", "k"],
    "operands": [{"input": 0, "map": ["m", "k"]},
                 {"input": 1, "map": ["n", "k"]},
                 {"output": 0, "map": ["m", "n"]}],
    "variants": [{"entry": "product", "alignment": [4, 4, 4],
      "arguments": [{"size": "n"}, {"size": "k"},
                    {"pointer": 0}, {"stride": 0, "dimension": 0},
                    {"pointer": 1}, {"pointer": 2},
                    {"stride": 2, "dimension": 0}],
      "grid": {"size": "m"}, "block": 1}]}]})";

void multiply(void **arguments, int64_t begin, int64_t end, int64_t) {
  const int64_t n = argument<int64_t>(arguments, 0);
  const int64_t k = argument<int64_t>(arguments, 1);
  const float *x = argument<const float *>(arguments, 2);
  const int64_t xStride = argument<int64_t>(arguments, 3);
  const float *w = argument<const float *>(arguments, 4);
  float *y = argument<float *>(arguments, 5);
  const int64_t yStride = argument<int64_t>(arguments, 6);
  for (int64_t row = begin; row != end; ++row)
    for (int64_t column = 0; column != n; ++column) {
      float sum = 0;
      for (int64_t i = 0; i != k; ++i)
        sum += x[row * xStride + i] * w[column * k + i];
      y[row * yStride + column] = sum;
    }
}

TEST_F(TrialTest, choosesSizesByTheNamesOfDimensions) {
  options.inputs.shapes = {{"w", "7x3"}};
  // `w` has no gaps, as the kernel takes no stride of it.
  options.inputs.placement = {/*gap=*/4, /*offset=*/1};
  TrialResult result = run(product, multiply);
  ASSERT_EQ(result.shapes.size(), 2u);
  EXPECT_EQ(result.shapes[0].second, (Dimensions{5, 3}));
  EXPECT_EQ(result.shapes[1].second, (Dimensions{7, 3}));
  EXPECT_EQ(result.variants, std::vector<std::string>{"product"});

  options.inputs.rows = std::nullopt;
  options.inputs.shapes = {{"w", "7x3"}, {"x", "2x3"}};
  EXPECT_EQ(run(product, multiply).shapes[0].second, (Dimensions{2, 3}));
  options.inputs.shapes = {{"x", "2x3"}};
  EXPECT_EQ(run(product, multiply).shapes[1].second, (Dimensions{1, 3}));
  options.inputs.shapes = {{"x", "2x3"}, {"w", "7x4"}};
  expectFailure(product, multiply,
                "input 'w' of shape [7, 4] has size 4 in dimension 1, which is "
                "'k', but input 'x' of shape [2, 3] has size 3");
}

} // namespace
