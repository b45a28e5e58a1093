//===- ProductTest.cpp - Products of warpgroups ---------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One warpgroup multiplies two matrices that the test has laid out in memory as
// a swizzle asks for, and the sums are compared with plain loops.
//
//===----------------------------------------------------------------------===//

#include "TensorCoreTest.h"

using namespace bastile;
using namespace bastile::test;

namespace {

/// How a factor lies in shared memory.
struct Layout {
  unsigned swizzle = 128;
  bool isTransposed = false;
};

constexpr unsigned numRows = 64;

/// The bytes of one piece of the contracted dimension.
constexpr unsigned stepBytes = 32;

/// A factor in shared memory, with what #tile.shared_matrix says of it.
struct Placed {
  Placed(const Factor &type, const Matrix &matrix, Layout layout)
      : type(type), matrix(matrix), layout(layout) {
    unsigned inner = layout.isTransposed ? matrix.rows : matrix.columns;
    unsigned width = layout.swizzle == 0 ? 16 : layout.swizzle;
    bytes.resize(llvm::divideCeil(inner * type.bytes, width) * leading());
    for (unsigned row = 0; row < matrix.rows; ++row)
      for (unsigned k = 0; k < matrix.columns; ++k)
        encode(type, matrix(row, k), &bytes[place(row, k)]);
  }

  /// Rows of the contiguous dimension, `swizzle` bytes long each, lie one after
  /// the other; without a swizzle they have 16 bytes.
  unsigned place(unsigned row, unsigned k) const {
    unsigned outer = layout.isTransposed ? k : row;
    unsigned inner = (layout.isTransposed ? row : k) * type.bytes;
    unsigned width = layout.swizzle == 0 ? 16 : layout.swizzle;
    unsigned place = inner / width * leading() + outer * width + inner % width;
    // The row within a group of eight permutes its pieces of 16 bytes.
    switch (layout.swizzle) {
    case 128:
      return place ^ (outer % 8) << 4;
    case 64:
      return place ^ (outer % 8 / 2) << 4;
    case 32:
      return place ^ (outer % 8 / 4) << 4;
    default:
      return place;
    }
  }
  unsigned leading() const {
    unsigned outer = layout.isTransposed ? matrix.columns : matrix.rows;
    return outer * (layout.swizzle == 0 ? 16 : layout.swizzle);
  }
  /// The operand's text for one step along the contracted dimension.
  std::string text(unsigned step, unsigned swizzle) const {
    unsigned width = layout.swizzle == 0 ? 16 : layout.swizzle;
    unsigned offset = 0;
    if (layout.isTransposed)
      offset = step * (stepBytes / type.bytes) * width;
    else if (layout.swizzle == 0)
      offset = step * 2 * leading();
    else
      offset = step * stepBytes / width * leading() + step * stepBytes % width;
    return "offset = " + std::to_string(offset) +
           ", leading = " + std::to_string(leading()) +
           ", stride = " + std::to_string(8 * width) +
           ", swizzle = " + std::to_string(swizzle) +
           ", transposed = " + (layout.isTransposed ? "true" : "false");
  }

  const Factor &type;
  const Matrix &matrix;
  Layout layout;
  std::vector<char> bytes;
};

struct Case {
  const Factor &type = kBF16;
  unsigned columns = 16;
  Layout a, b;
  bool hasFragment = false;
  unsigned steps = 2;
  /// The swizzle that the product of `b` names, if not the one it has.
  std::optional<unsigned> wrongSwizzle;
  /// Whether the fragment's second and third register are exchanged.
  bool hasWrongFragment = false;
};

class ProductTest : public TensorCoreTest {
protected:
  /// Multiplies random matrices; returns how many sums differ from a plain
  /// loop's, or -1 after an error, which is in `error`.
  int countWrong(const Case &one) {
    const Factor &type = one.type;
    unsigned depth = one.steps * stepBytes / type.bytes;
    Matrix a(numRows, depth, 1), b(one.columns, depth, 2);
    Placed placedA(type, a, one.a), placedB(type, b, one.b);
    // Swizzles are patterns of addresses that repeat after 1024 bytes.
    std::vector<char> image(llvm::alignTo(placedA.bytes.size(), 1024));
    unsigned bOffset = image.size();
    std::copy(placedA.bytes.begin(), placedA.bytes.end(), image.begin());
    image.insert(image.end(), placedB.bytes.begin(), placedB.bytes.end());
    // A wrong layout shall read wrong numbers, and not end in an error.
    image.resize(image.size() + 8192);

    // A register has four bytes of a row of a.
    std::vector<char> rows = encode(type, a);
    std::vector<uint32_t> fragments(128 * one.steps * 4);
    for (unsigned thread = 0; thread < 128; ++thread)
      for (unsigned step = 0; step < one.steps; ++step)
        for (unsigned i = 0; i < 4; ++i) {
          unsigned row = thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8;
          unsigned byte = step * stepBytes + thread % 4 * 4 + i / 2 * 16;
          std::memcpy(&fragments[(thread * one.steps + step) * 4 + i],
                      &rows[row * depth * type.bytes + byte], 4);
        }

    unsigned count = one.columns / 2;
    std::string body, accumulators;
    for (unsigned step = 0; step < one.steps; ++step) {
      std::string s = std::to_string(step);
      ProductText product;
      product.name = "%d" + s;
      product.columns = one.columns;
      product.type = type.name;
      product.accumulators = accumulators;
      product.b = "%b";
      product.bMatrix =
          placedB.text(step, one.wrongSwizzle.value_or(one.b.swizzle));
      if (one.hasFragment) {
        for (unsigned i = 0; i < 4; ++i) {
          std::string n = s + "_" + std::to_string(i);
          body += "%pf" + n + " = llvm.getelementptr %pf[" +
                  std::to_string(step * 4 + i) +
                  "] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32\n%f" + n +
                  " = llvm.load %pf" + n + " : !llvm.ptr<1> -> i32\n";
        }
        product.fragment =
            one.hasWrongFragment
                ? "%f" + s + "_0, %f" + s + "_2, %f" + s + "_1, %f" + s + "_3"
                : list(4, [&](unsigned i) {
                    return "%f" + s + "_" + std::to_string(i);
                  });
      } else {
        product.a = "%memory";
        product.aMatrix = placedA.text(step, one.a.swizzle);
      }
      body += product.print();
      accumulators = results(product.name, count);
    }
    body +=
        "nvvm.wgmma.commit.group.sync.aligned\n%sum:" + std::to_string(count) +
        " = tile.wgmma_wait 0 of " + accumulators + " : " +
        types("f32", count) + "\n";
    for (unsigned i = 0; i < count; ++i) {
      std::string n = std::to_string(i);
      body += "%p" + n + " = llvm.getelementptr %py[" + n +
              "] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32\nllvm.store %sum#" + n +
              ", %p" + n + " : f32, !llvm.ptr<1>\n";
    }
    compile(kernel(image.size(), bOffset, one.steps * 4, count, body));
    if (!emulator)
      return -1;
    std::vector<float> y(128 * count, -1);
    addBuffer(image, "image", /*isWritable=*/false);
    addBuffer(fragments, "fragments", /*isWritable=*/false);
    addBuffer(y, "y", /*isWritable=*/true);
    error = launch(/*numBlocks=*/1, /*numThreads=*/128, /*sharedBytes=*/0,
                   image.data(), fragments.data(), y.data());
    if (!error.empty())
      return -1;
    int numWrong = 0;
    for (unsigned thread = 0; thread < 128; ++thread)
      for (unsigned i = 0; i < count; ++i) {
        auto [row, column] = sumAt(thread, i);
        numWrong += y[thread * count + i] != dot(a, row, b, column);
      }
    return numWrong;
  }

  static std::string kernel(unsigned imageBytes, unsigned bOffset,
                            unsigned numFragments, unsigned count,
                            const std::string &body) {
    auto number = [](unsigned n) { return std::to_string(n); };
    return R"(
llvm.mlir.global internal @memory() {addr_space = 3 : i32, alignment = 1024 : i64}
    : !llvm.array<)" +
           number(imageBytes) + R"( x i8>
llvm.mlir.global internal @arrived() {addr_space = 3 : i32} : i64
llvm.func @kernel(%image: !llvm.ptr<1>, %fragments: !llvm.ptr<1>,
                  %y: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %bytes = llvm.mlir.constant()" +
           number(imageBytes) + R"( : i32) : i32
  %cf = llvm.mlir.constant()" +
           number(numFragments) + R"( : i32) : i32
  %cy = llvm.mlir.constant()" +
           number(count) + R"( : i32) : i32
  %isFirst = llvm.icmp "eq" %tid, %c0 : i32
  %memory = llvm.mlir.addressof @memory : !llvm.ptr<3>
  %arrived = llvm.mlir.addressof @arrived : !llvm.ptr<3>
  %b = llvm.getelementptr %memory[)" +
           number(bOffset) + R"(] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  %firstF = llvm.mul %tid, %cf : i32
  %pf = llvm.getelementptr %fragments[%firstF]
    : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %firstY = llvm.mul %tid, %cy : i32
  %py = llvm.getelementptr %y[%firstY]
    : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  llvm.cond_br %isFirst, ^copy, ^meet
^copy:
  nvvm.mbarrier.init %arrived, %c1 : !llvm.ptr<3>, i32
  nvvm.fence.mbarrier.init
  nvvm.mbarrier.arrive.expect_tx %arrived, %bytes : !llvm.ptr<3>, i32
  nvvm.cp.async.bulk.shared.cluster.global %memory, %image, %arrived, %bytes
    : !llvm.ptr<3>, !llvm.ptr<1>
  llvm.br ^meet
^meet:
  nvvm.barrier0
  %done = nvvm.mbarrier.try_wait %arrived, %c0 : !llvm.ptr<3>, i32 -> i1
  "tile.wgmma_fence"() : () -> ()
)" + body + R"(
  llvm.return
}
)";
  }

  std::string error;
};

TEST_F(ProductTest, MultipliesEveryType) {
  for (const Factor *type : {&kBF16, &kF16, &kF8E4M3, &kF8E5M2}) {
    SCOPED_TRACE(type->name);
    EXPECT_EQ(countWrong({*type}), 0) << error;
  }
}

TEST_F(ProductTest, ReadsEverySwizzle) {
  for (unsigned swizzle : {128U, 64U, 32U, 0U}) {
    SCOPED_TRACE(swizzle);
    Layout layout = {swizzle, /*isTransposed=*/false};
    EXPECT_EQ(countWrong({kBF16, 32, layout, layout, false, /*steps=*/4}), 0)
        << error;
    EXPECT_EQ(countWrong({kF8E4M3, 24, layout, layout}), 0) << error;
  }
}

TEST_F(ProductTest, ReadsTransposedFactors) {
  for (unsigned swizzle : {128U, 64U, 32U}) {
    SCOPED_TRACE(swizzle);
    Layout plain = {swizzle, /*isTransposed=*/false};
    Layout transposed = {swizzle, /*isTransposed=*/true};
    EXPECT_EQ(countWrong({kF16, 64, transposed, plain}), 0) << error;
    EXPECT_EQ(countWrong({kBF16, 128, plain, transposed}), 0) << error;
    EXPECT_EQ(countWrong({kBF16, 192, transposed, transposed}), 0) << error;
  }
}

TEST_F(ProductTest, ReadsAFactorFromRegisters) {
  for (const Factor *type : {&kBF16, &kF16, &kF8E4M3, &kF8E5M2}) {
    SCOPED_TRACE(type->name);
    EXPECT_EQ(countWrong({*type, 256, {}, {}, /*hasFragment=*/true}), 0)
        << error;
  }
}

TEST_F(ProductTest, AWrongSwizzleGivesWrongNumbers) {
  Case one = {kBF16, 16, {}, {64, /*isTransposed=*/false}};
  one.wrongSwizzle = 0;
  one.steps = 1;
  EXPECT_GT(countWrong(one), 500);
}

TEST_F(ProductTest, AWrongFragmentGivesWrongNumbers) {
  Case one = {kBF16, 16, {}, {}, /*hasFragment=*/true};
  one.hasWrongFragment = true;
  EXPECT_GT(countWrong(one), 500);
}

/// The descriptor of a GPU can say where the pattern begins only to rows of
/// eight.
TEST_F(ProductTest, FactorsBeginWithThePatternOfTheirSwizzle) {
  Case one = {kBF16, 16, {}, {64, /*isTransposed=*/false}};
  one.wrongSwizzle = 32;
  EXPECT_EQ(countWrong(one), -1);
  EXPECT_TRUE(contains(error, "by warpgroup 0 reads a factor that begins "
                              "within the eight rows of its swizzle's pattern"))
      << error;
}

} // namespace
