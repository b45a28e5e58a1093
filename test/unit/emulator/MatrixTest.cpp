//===- MatrixTest.cpp - Matrices that a warp holds ------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "TensorCoreTest.h"

using namespace bastile;
using namespace bastile::test;

namespace {

/// Where `count` registers of the struct `name` go to or come from, as words of
/// 32 bits behind `pointer`.
std::string storeAll(const std::string &name, unsigned count,
                     const std::string &type, const std::string &pointer) {
  std::string text;
  for (unsigned i = 0; i < count; ++i) {
    std::string n = std::to_string(i), own = name + "_" + n;
    text += count == 1 ? own + " = llvm.bitcast " + name + " : " + type +
                             " to " + type + "\n"
                       : own + " = llvm.extractvalue " + name + "[" + n +
                             "] : !llvm.struct<(" + types(type, count) + ")>\n";
    text += own + "p = llvm.getelementptr " + pointer + "[" + n +
            "] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32\nllvm.store " + own +
            ", " + own + "p : " + type + ", !llvm.ptr<1>\n";
  }
  return text;
}

std::string loadAll(const std::string &name, unsigned count,
                    const std::string &type, const std::string &pointer) {
  std::string text;
  for (unsigned i = 0; i < count; ++i) {
    std::string n = std::to_string(i), own = name + n;
    text += own + "p = llvm.getelementptr " + pointer + "[" + n +
            "] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32\n" + own +
            " = llvm.load " + own + "p : !llvm.ptr<1> -> " + type + "\n";
  }
  return text;
}

std::string names(const std::string &name, unsigned count) {
  return list(count, [&](unsigned i) { return name + std::to_string(i); });
}

/// A kernel of one warp with 8 words for each thread in `x` and in `y`.
std::string kernel(const std::string &body) {
  return R"(
llvm.mlir.global internal @rows() {addr_space = 3 : i32, alignment = 128 : i64}
    : !llvm.array<512 x i8>
llvm.func @kernel(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
    attributes {nvvm.kernel} {
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c4 = llvm.mlir.constant(4 : i32) : i32
  %c8 = llvm.mlir.constant(8 : i32) : i32
  %c16 = llvm.mlir.constant(16 : i32) : i32
  %all = llvm.mlir.constant(-1 : i32) : i32
  %first = llvm.mul %tid, %c8 : i32
  %px = llvm.getelementptr %x[%first] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %py = llvm.getelementptr %y[%first] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %rows = llvm.mlir.addressof @rows : !llvm.ptr<3>
  %rowOffset = llvm.mul %tid, %c16 : i32
  %row = llvm.getelementptr %rows[%rowOffset] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
)" + body +
         "llvm.return\n}\n";
}

class MatrixTest : public TensorCoreTest {
protected:
  /// Runs a body on `x`; its results are in `y`.
  std::string run(const std::string &body, const std::vector<uint32_t> &x) {
    compile(kernel(body));
    if (!emulator)
      return "does not compile";
    y.assign(32 * 8, 0);
    addBuffer(x, "x", /*isWritable=*/false);
    addBuffer(y, "y", /*isWritable=*/true);
    return launch(/*numBlocks=*/1, /*numThreads=*/32, /*sharedBytes=*/0,
                  x.data(), y.data());
  }

  void checkProduct(const Factor &type, unsigned rowBytes,
                    const std::string &registerType,
                    const std::string &attributes);

  std::vector<uint32_t> y;
};

/// Compares `mma.sync` with a plain loop. As the PTX ISA draws it, a lane has
/// four bytes of a row of a and of the row below by eight, and of a column of
/// b; those 16 bytes further on follow.
void MatrixTest::checkProduct(const Factor &type, unsigned rowBytes,
                              const std::string &registerType,
                              const std::string &attributes) {
  unsigned depth = rowBytes / type.bytes, numA = rowBytes / 8, numB = numA / 2;
  Matrix a(16, depth, 1), b(8, depth, 2);
  std::vector<char> aBytes = encode(type, a), bBytes = encode(type, b);
  std::vector<uint32_t> x(32 * 8);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < numA; ++i)
      std::memcpy(&x[lane * 8 + i],
                  &aBytes[(lane / 4 + (i & 1 ? 8 : 0)) * rowBytes +
                          lane % 4 * 4 + (i & 2 ? 16 : 0)],
                  4);
    for (unsigned i = 0; i < numB; ++i)
      std::memcpy(&x[lane * 8 + numA + i],
                  &bBytes[lane / 4 * rowBytes + lane % 4 * 4 + i * 16], 4);
  }
  std::string struct4 = "!llvm.struct<(f32, f32, f32, f32)>";
  ASSERT_EQ(
      run(loadAll("%r", numA + numB, registerType, "%px") +
              "%one = llvm.mlir.constant(1.0 : f32) : f32\n"
              "%d = nvvm.mma.sync A[" +
              names("%r", numA) + "] B[" +
              list(
                  numB,
                  [&](unsigned i) { return "%r" + std::to_string(numA + i); }) +
              "] C[%one, %one, %one, %one] {layoutA = #nvvm.mma_layout<row>, "
              "layoutB = #nvvm.mma_layout<col>, shape = #nvvm.shape<m = 16, "
              "n = 8, k = " +
              std::to_string(depth) + ">" + attributes + "} : (" +
              registerType + ", " + registerType + ", f32) -> " + struct4 +
              "\n" + storeAll("%d", 4, "f32", "%py"),
          x),
      "");
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      float sum;
      std::memcpy(&sum, &y[lane * 8 + i], 4);
      EXPECT_EQ(sum, 1 + dot(a, lane / 4 + i / 2 * 8, b, lane % 4 * 2 + i % 2))
          << lane << ' ' << i;
    }
}

TEST_F(MatrixTest, MultipliesBF16) {
  const std::string type = ", multiplicandAPtxType = #nvvm.mma_type<bf16>, "
                           "multiplicandBPtxType = #nvvm.mma_type<bf16>";
  checkProduct(kBF16, 32, "i32", type);
  checkProduct(kBF16, 16, "i32", type);
}

TEST_F(MatrixTest, MultipliesF16) {
  checkProduct(kF16, 32, "vector<2xf16>", "");
  checkProduct(kF16, 16, "vector<2xf16>", "");
}

/// The element of matrix `matrix` in `row` and `column` that each of the tests
/// below moves.
uint16_t elementAt(unsigned matrix, unsigned row, unsigned column) {
  return matrix << 8 | row << 4 | column;
}

/// The word with the elements that lane `lane` has of a matrix.
uint32_t wordAt(unsigned matrix, unsigned lane, bool isTransposed) {
  unsigned row = lane / 4, column = lane % 4 * 2;
  uint32_t low = isTransposed ? elementAt(matrix, column, row)
                              : elementAt(matrix, row, column);
  uint32_t high = isTransposed ? elementAt(matrix, column + 1, row)
                               : elementAt(matrix, row, column + 1);
  return low | high << 16;
}

/// All rows of four matrices, one after the other; lane l has row l.
std::vector<uint32_t> allRows() {
  std::vector<uint32_t> x(32 * 8);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i)
      x[lane * 8 + i] = elementAt(lane / 8, lane % 8, 2 * i) |
                        uint32_t(elementAt(lane / 8, lane % 8, 2 * i + 1))
                            << 16;
  return x;
}

const std::string kPlain = "shape = #nvvm.ld_st_matrix_shape<m = 8, n = 8>, "
                           "eltType = #nvvm.ld_st_matrix_elt_type<b16>";
/// Each lane writes a row to, or reads it from, shared memory.
const std::string kWriteRow =
    "%v = llvm.load %px : !llvm.ptr<1> -> vector<4xi32>\n"
    "llvm.store %v, %row : vector<4xi32>, !llvm.ptr<3>\n";
const std::string kReadRow =
    "%w = llvm.load %row : !llvm.ptr<3> -> vector<4xi32>\n"
    "llvm.store %w, %py : vector<4xi32>, !llvm.ptr<1>\n";
const std::string kMeet = "nvvm.bar.warp.sync %all : i32\n";

std::string load(unsigned count, bool isTransposed) {
  std::string type =
      count == 1 ? "i32" : "!llvm.struct<(" + types("i32", count) + ")>";
  return "%m = nvvm.ldmatrix %row {num = " + std::to_string(count) +
         " : i32, layout = #nvvm.mma_layout<" + (isTransposed ? "col" : "row") +
         ">, " + kPlain + "} : (!llvm.ptr<3>) -> " + type + "\n" +
         storeAll("%m", count, "i32", "%py");
}

std::string store(unsigned count, bool isTransposed) {
  return loadAll("%r", count, "i32", "%px") + "nvvm.stmatrix %row, " +
         names("%r", count) + " {layout = #nvvm.mma_layout<" +
         (isTransposed ? "col" : "row") + ">, " + kPlain +
         "} : !llvm.ptr<3>, " + types("i32", count) + "\n";
}

TEST_F(MatrixTest, LoadsMatrices) {
  for (unsigned count : {1U, 2U, 4U})
    for (bool isTransposed : {false, true}) {
      ASSERT_EQ(run(kWriteRow + kMeet + load(count, isTransposed), allRows()),
                "");
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned matrix = 0; matrix < count; ++matrix)
          EXPECT_EQ(y[lane * 8 + matrix], wordAt(matrix, lane, isTransposed));
    }
}

TEST_F(MatrixTest, StoresMatrices) {
  for (unsigned count : {1U, 2U, 4U})
    for (bool isTransposed : {false, true}) {
      std::vector<uint32_t> x(32 * 8);
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned matrix = 0; matrix < count; ++matrix)
          x[lane * 8 + matrix] = wordAt(matrix, lane, isTransposed);
      ASSERT_EQ(run(store(count, isTransposed) + kMeet + kReadRow, x), "");
      std::vector<uint32_t> rows = allRows();
      for (unsigned lane = 0; lane < 8 * count; ++lane)
        for (unsigned i = 0; i < 4; ++i)
          EXPECT_EQ(y[lane * 8 + i], rows[lane * 8 + i]);
    }
}

TEST_F(MatrixTest, LoadsNeedWhatLanesHaveStored) {
  // Each lane reads its own row, as far as addresses say.
  std::string other = "%ox = llvm.xor %tid, %c1 : i32\n"
                      "%oo = llvm.mul %ox, %c16 : i32\n"
                      "%or = llvm.getelementptr %rows[%oo] : (!llvm.ptr<3>, "
                      "i32) -> !llvm.ptr<3>, i8\n";
  std::string read = replaceOne(load(4, false), "%row ", "%or ");
  EXPECT_EQ(run(kWriteRow + kMeet + other + read, allRows()), "");
  std::string error = run(kWriteRow + other + read, allRows());
  EXPECT_TRUE(contains(error, "data race on byte ")) << error;
  EXPECT_TRUE(contains(error, "reads it in 'nvvm.ldmatrix'")) << error;
}

TEST_F(MatrixTest, RowsAreAlignedAndInBounds) {
  const std::string shift = "%shifted = llvm.getelementptr %row[8] : "
                            "(!llvm.ptr<3>) -> !llvm.ptr<3>, i8\n";
  std::string error =
      run(shift + replaceOne(load(4, false), "%row ", "%shifted "), allRows());
  EXPECT_TRUE(contains(error, "misaligned load of 16 bytes in 'nvvm.ldmatrix'"))
      << error;
  const std::string far = "%far = llvm.getelementptr %row[16] : "
                          "(!llvm.ptr<3>) -> !llvm.ptr<3>, i8\n";
  error = run(far + replaceOne(store(4, false), "%row,", "%far,"), allRows());
  EXPECT_TRUE(contains(error, "out-of-bounds store of 16 bytes at byte 512 of "
                              "'rows', which has 512, in 'nvvm.stmatrix'"))
      << error;
}

TEST_F(MatrixTest, AWarpStaysTogether) {
  std::string error = run(kWriteRow + kMeet +
                              "%isLow = llvm.icmp \"slt\" %tid, %c16 : i32\n"
                              "llvm.cond_br %isLow, ^low, ^join\n^low:\n" +
                              load(1, false) + "llvm.br ^join\n^join:\n",
                          allRows());
  EXPECT_TRUE(contains(error, "lanes named in a mask never arrive")) << error;
  EXPECT_TRUE(contains(error, "wait in 'nvvm.ldmatrix'")) << error;
}

} // namespace
