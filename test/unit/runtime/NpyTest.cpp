//===- NpyTest.cpp --------------------------------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Support.h"

#include "bastile/runtime/Npy.h"

#include <cstdio>

using namespace bastile::runtime;

namespace {

/// A file of version 1 with the given header.
std::string makeFile(const std::string &header, const std::string &data) {
  std::string file = "\x93NUMPY";
  file += {'\x01', '\x00', static_cast<char>(header.size()), '\x00'};
  return file + header + data;
}

std::string makeHeader(const std::string &type, const std::string &shape,
                       const std::string &fortranOrder = "False") {
  return "{'descr': " + type + ", 'fortran_order': " + fortranOrder +
         ", 'shape': " + shape + ", }\n";
}

TEST(NpyTest, roundTripsEveryType) {
  for (ElementType type :
       {ElementType::F64, ElementType::F32, ElementType::F16, ElementType::BF16,
        ElementType::F8E4M3FN, ElementType::F8E5M2, ElementType::I1,
        ElementType::I8, ElementType::I32, ElementType::I64}) {
    NpyArray array = {type, {2, 3}, {}};
    for (int64_t i = 0; i != 6 * byteSize(type); ++i)
      array.data += static_cast<char>(i);
    std::string file = formatNpy(array);
    EXPECT_EQ((file.size() - array.data.size()) % 64, 0u);
    Expected<NpyArray> result = parseNpy(file, type);
    ASSERT_OK(result.takeError());
    EXPECT_EQ(result->type, type);
    EXPECT_EQ(result->shape, array.shape);
    EXPECT_EQ(result->data, array.data);
  }
}

TEST(NpyTest, roundTripsShapes) {
  for (const std::vector<int64_t> &shape :
       {std::vector<int64_t>{}, {4}, {0, 3}, {2, 1, 3, 1}}) {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    Expected<NpyArray> result =
        parseNpy(formatNpy({ElementType::I8, shape, std::string(count, 'x')}));
    ASSERT_OK(result.takeError());
    EXPECT_EQ(result->shape, shape);
    EXPECT_EQ(result->data.size(), size_t(count));
  }
}

TEST(NpyTest, savesAndLoads) {
  const std::string path = testing::TempDir() + "bastile-npy-test.npy";
  ASSERT_OK(saveNpy(path, {ElementType::F32, {1}, "abcd"}));
  Expected<NpyArray> array = loadNpy(path);
  ASSERT_OK(array.takeError());
  EXPECT_EQ(array->data, "abcd");
  expectError(loadNpy(path, ElementType::I32).takeError(),
              path + ": expected elements of type i32, got f32");
  std::remove(path.c_str());
  expectError(loadNpy(path).takeError(), "cannot open");
}

TEST(NpyTest, readsOpaqueElementsAsAsked) {
  for (const char *type : {"'<V2'", "'|V2'", "'<u2'"}) {
    std::string file = makeFile(makeHeader(type, "(1,)"), "ab");
    Expected<NpyArray> array = parseNpy(file, ElementType::BF16);
    ASSERT_OK(array.takeError());
    EXPECT_EQ(array->type, ElementType::BF16);
    expectError(parseNpy(file).takeError(), "cannot read elements of type");
    expectError(parseNpy(file, ElementType::F16).takeError(),
                "cannot read elements of type");
    expectError(parseNpy(file, ElementType::F8E5M2).takeError(), "as f8E5M2");
  }
  for (const char *type : {"'|V1'", "'<V1'", "'|u1'"})
    EXPECT_OK(parseNpy(makeFile(makeHeader(type, "(2,)"), "ab"),
                       ElementType::F8E4M3FN)
                  .takeError());
}

TEST(NpyTest, writesSmallFloatsAsUnsignedIntegers) {
  for (ElementType type : {ElementType::F8E4M3FN, ElementType::F8E5M2}) {
    std::string file = formatNpy({type, {2}, "ab"});
    EXPECT_NE(file.find("'descr': '|u1'"), std::string::npos) << file;
    Expected<NpyArray> array = parseNpy(file, type);
    ASSERT_OK(array.takeError());
    EXPECT_EQ(array->type, type);
    EXPECT_EQ(array->data, "ab");
  }
}

TEST(NpyTest, readsHeadersOfLaterVersions) {
  std::string header = makeHeader("'<f2'", "(2, 1)");
  std::string file = "\x93NUMPY";
  file += {'\x02', '\x00', static_cast<char>(header.size()), '\0', '\0', '\0'};
  Expected<NpyArray> array = parseNpy(file + header + "abcd");
  ASSERT_OK(array.takeError());
  EXPECT_EQ(array->type, ElementType::F16);
  EXPECT_EQ(array->shape, (std::vector<int64_t>{2, 1}));
}

TEST(NpyTest, rejectsMoreDimensionsThanNumPyHas) {
  auto makeShape = [](size_t rank) {
    std::string shape = "(";
    for (size_t i = 0; i != rank; ++i)
      shape += "1,";
    return shape + ")";
  };
  std::string file = makeFile(makeHeader("'|i1'", makeShape(64)), "a");
  Expected<NpyArray> most = parseNpy(file);
  ASSERT_OK(most.takeError());
  EXPECT_OK(parseNpy(formatNpy(*most)).takeError());
  file = makeFile(makeHeader("'|i1'", makeShape(65)), "a");
  expectError(parseNpy(file).takeError(),
              "the array has more than 64 dimensions");
}

TEST(NpyTest, rejectsWhatItCannotRead) {
  auto expect = [](const std::string &file, const std::string &message) {
    expectError(parseNpy(file).takeError(), message);
  };
  auto headed = [](const std::string &type, const std::string &shape) {
    return makeFile(makeHeader(type, shape), "abcd");
  };
  expect("", "not an .npy file");
  expect("PK\x03\x04 something else", "not an .npy file");
  expect("\x93NUMPY\x09 and so on", "unknown version 9");
  expect(makeFile("", "").replace(8, 1, "\x50"), "the header is cut off");
  expect(makeFile("{}", ""), "the header lacks 'fortran_order'");
  expect(makeFile(makeHeader("'<f4'", "(1,)", "True"), "abcd"),
         "not in row-major order");
  expect(headed("'>f4'", "(1,)"), "cannot read elements of type '>f4'");
  expect(headed("'<c8'", "(1,)"), "cannot read elements of type '<c8'");
  expect(headed("''", "(1,)"), "malformed element type");
  expect(headed("[('a', '<f4')]", "(1,)"), "not of one type");
  expect(headed("'<f4'", "(-1,)"), "malformed shape");
  expect(headed("'<f4'", "(99999999999999999999,)"), "too large");
  expect(headed("'<f4'", "(4294967296, 4294967296)"), "too large");
  expect(headed("'<f4'", "(2,)"), "expected 8 bytes of elements, got 4");
}

} // namespace
