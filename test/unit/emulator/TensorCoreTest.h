//===- TensorCoreTest.h - The fixture of tests of products ------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEST_UNIT_EMULATOR_TENSORCORETEST_H
#define BASTILE_TEST_UNIT_EMULATOR_TENSORCORETEST_H

#include "EmulatorTest.h"
#include "bastile/runtime/TensorMap.h"
#include "dialect/Tile.h"
#include "llvm/ADT/APFloat.h"
#include <functional>
#include <random>

namespace bastile::test {

/// Kernels that also hold products of warpgroups.
class TensorCoreTest : public EmulatorTest {
protected:
  TensorCoreTest() { context.loadDialect<tile::TileDialect>(); }
};

/// A type of the factors of a product.
struct Factor {
  const char *name;
  const llvm::fltSemantics &semantics;
  unsigned bytes;
};

inline const Factor kBF16 = {"bf16", llvm::APFloat::BFloat(), 2};
inline const Factor kF16 = {"f16", llvm::APFloat::IEEEhalf(), 2};
inline const Factor kF8E4M3 = {"f8E4M3FN", llvm::APFloat::Float8E4M3FN(), 1};
inline const Factor kF8E5M2 = {"f8E5M2", llvm::APFloat::Float8E5M2(), 1};

/// Writes a number that the type has exactly.
inline void encode(const Factor &type, float value, void *to) {
  llvm::APFloat number(value);
  bool losesInfo = false;
  number.convert(type.semantics, llvm::APFloat::rmNearestTiesToEven,
                 &losesInfo);
  uint64_t bits = number.bitcastToAPInt().getZExtValue();
  std::memcpy(to, &bits, type.bytes);
}

/// A matrix of small integers, which all types have and whose products float32
/// sums exactly.
struct Matrix {
  Matrix(unsigned rows, unsigned columns, unsigned seed = 1)
      : rows(rows), columns(columns), numbers(rows * columns) {
    std::mt19937 random(seed);
    for (float &number : numbers)
      number = static_cast<int>(random() % 9) - 4;
  }

  float operator()(unsigned row, unsigned column) const {
    return numbers[row * columns + column];
  }

  unsigned rows, columns;
  std::vector<float> numbers;
};

/// Row by row, as it lies in a tensor.
inline std::vector<char> encode(const Factor &type, const Matrix &matrix) {
  std::vector<char> bytes(matrix.numbers.size() * type.bytes);
  for (size_t i = 0; i < matrix.numbers.size(); ++i)
    encode(type, matrix.numbers[i], &bytes[i * type.bytes]);
  return bytes;
}

/// a times the transposed b: a row of either is contracted.
inline float dot(const Matrix &a, unsigned row, const Matrix &b,
                 unsigned column) {
  float sum = 0;
  for (unsigned k = 0; k < a.columns; ++k)
    sum += a(row, k) * b(column, k);
  return sum;
}

/// The row and column of register `index` of thread `thread`, as the PTX ISA
/// draws the sums of wgmma.
inline std::pair<unsigned, unsigned> sumAt(unsigned thread, unsigned index) {
  unsigned warp = thread / 32, lane = thread % 32;
  return {warp * 16 + lane / 4 + (index & 2 ? 8 : 0),
          index / 4 * 8 + lane % 4 * 2 + (index & 1)};
}

/// A map of a matrix of 16-bit numbers with rows of `columns`.
struct alignas(64) TestMap {
  runtime::EmulatedTensorMap map;
  char rest[128 - sizeof(runtime::EmulatedTensorMap)] = {};
};

inline TestMap mapOf(const void *data, int64_t rows, int64_t columns,
                     uint16_t boxRows, uint16_t boxColumns, uint8_t swizzle) {
  TestMap result;
  runtime::EmulatedTensorMap &map = result.map;
  map.magic = runtime::EmulatedTensorMap::expectedMagic;
  map.rank = 2;
  map.elementBytes = 2;
  map.swizzle = swizzle;
  map.address = reinterpret_cast<uint64_t>(data);
  map.sizes[0] = columns;
  map.sizes[1] = rows;
  map.strides[0] = 2;
  map.strides[1] = columns * 2;
  map.box[0] = boxColumns;
  map.box[1] = boxRows;
  return result;
}

/// `text` with its only `from` replaced by `to`.
inline std::string replaceOne(std::string text, const std::string &from,
                              const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "nothing to replace: " << from;
  if (at == std::string::npos)
    return "";
  text.replace(at, from.size(), to);
  EXPECT_EQ(text.find(from, at + to.size()), std::string::npos)
      << "several to replace: " << from;
  return text;
}

/// `piece` for each number below `count`, with commas in between.
inline std::string list(unsigned count,
                        const std::function<std::string(unsigned)> &piece) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += (i == 0 ? "" : ", ") + piece(i);
  return text;
}

inline std::string results(const std::string &name, unsigned count) {
  return list(count,
              [&](unsigned i) { return name + "#" + std::to_string(i); });
}

inline std::string types(const std::string &type, unsigned count) {
  return list(count, [&](unsigned) { return type; });
}

/// The text of a `tile.wgmma`.
struct ProductText {
  std::string name;
  unsigned columns;
  const char *type = "bf16";
  /// A list of registers, or nothing.
  std::string accumulators = "";
  /// Four registers, or an address in shared memory and a layout.
  std::string fragment = "";
  std::string a = "", aMatrix = "";
  std::string b, bMatrix;

  std::string print() const {
    unsigned count = columns / 2;
    bool hasSum = !accumulators.empty(), inMemory = fragment.empty();
    std::string operands, operandTypes;
    auto add = [&](const std::string &values, const std::string &type) {
      operands += (operands.empty() ? "" : ", ") + values;
      operandTypes += (operandTypes.empty() ? "" : ", ") + type;
    };
    if (hasSum)
      add(accumulators, types("f32", count));
    if (inMemory)
      add(a, "!llvm.ptr<3>");
    else
      add(fragment, types("i32", 4));
    add(b, "!llvm.ptr<3>");
    return name + ":" + std::to_string(count) + " = \"tile.wgmma\"(" +
           operands + ") <{operandSegmentSizes = array<i32: " +
           std::to_string(hasSum ? count : 0) +
           (inMemory ? ", 0, 1, 1>" : ", 4, 0, 1>") +
           ", columns = " + std::to_string(columns) +
           ", element_type = " + type +
           (inMemory ? ", a_matrix = #tile.shared_matrix<" + aMatrix + ">"
                     : "") +
           ", b_matrix = #tile.shared_matrix<" + bMatrix + ">}> : (" +
           operandTypes + ") -> (" + types("f32", count) + ")\n";
  }
};

} // namespace bastile::test

#endif // BASTILE_TEST_UNIT_EMULATOR_TENSORCORETEST_H
