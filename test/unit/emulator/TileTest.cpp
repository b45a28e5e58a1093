//===- TileTest.cpp - Programs on tiles, on the emulator ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// Runs the code that the passes from `distribute` on make of one op on tiles.
// Numbers are small integers, so that results are exact in any order of
// summation.
//
//===----------------------------------------------------------------------===//

#include "EmulatorTest.h"

#include "bastile/Registration.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>

using namespace bastile;
using namespace bastile::test;

namespace {

class TileTest : public EmulatorTest {
protected:
  TileTest() {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Lowers `source`, one program; the test fails if that fails.
  void compileTiles(const std::string &source) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(source, &context,
                                                          "kernel.mlir");
    ASSERT_TRUE(module);
    mlir::PassManager passes(&context);
    passes.addPass(createDistribute());
    passes.addPass(createLowerTiles());
    passes.addPass(createExpandMath());
    passes.addPass(mlir::createCSEPass());
    passes.addPass(createLowerToNVVM());
    ASSERT_TRUE(succeeded(passes.run(*module)));
    auto created = Emulator::create(*module);
    if (!created)
      FAIL() << llvm::toString(created.takeError());
    emulator = std::move(*created);
  }

  static std::vector<float> getInput(int64_t count) {
    std::vector<float> input(count);
    for (int64_t index = 0; index < count; ++index)
      input[index] = static_cast<float>((index * 7919) % 101) - 50;
    return input;
  }
};

struct Shape {
  int64_t rows, threads, vector, columns;
};

/// Every order of threads must give the same numbers.
constexpr Emulator::Order kOrders[] = {Emulator::Order::Forward,
                                       Emulator::Order::Reverse,
                                       Emulator::Order::Random};

/// Sums the columns of two tiles, twice, so that a thread may come to the
/// second reduction while others still read the result of the first.
constexpr char kReduceRows[] = R"mlir(
tile.program @kernel(%rows: index, %x: memref<?x{3}xf32, strided<[?, 1]>>,
                     %y: memref<?x{3}xf32, strided<[?, 1]>>)
    attributes {{leading = 1 : i64, schedule = #tile.rows<
        rows = {0}, threads = {1}, vector = {2}, columns = {3}>} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %height = arith.constant {0} : index
  scf.for %tile = %c0 to %c2 step %c1 {{
    %row = arith.muli %tile, %height : index
    %0 = tile.load %x[%row, %c0]
        : memref<?x{3}xf32, strided<[?, 1]>> -> tensor<{0}x{3}xf32>
    %1 = tile.reduce_rows add %0 : tensor<{0}x{3}xf32> -> tensor<1x{3}xf32>
    tile.store %1, %y[%tile, %c0]
        : tensor<1x{3}xf32>, memref<?x{3}xf32, strided<[?, 1]>>
  }
  tile.return
})mlir";

TEST_F(TileTest, ReduceRowsSumsColumns) {
  for (const Shape &shape : {
           Shape{4, 32, 1, 32},   // within threads
           Shape{4, 32, 2, 16},   // within a warp
           Shape{64, 32, 4, 4},   // one thread to a row
           Shape{16, 128, 2, 16}, // within and across warps
           Shape{4, 128, 4, 128}, // across warps
           Shape{8, 64, 4, 256},  // several vectors a thread
           Shape{4, 128, 1, 64},  // several warps to a row
       })
    for (Emulator::Order order : kOrders) {
      auto [rows, threads, vector, columns] = shape;
      compileTiles(
          llvm::formatv(kReduceRows, rows, threads, vector, columns).str());
      if (HasFatalFailure())
        return;
      std::vector<float> x = getInput(2 * rows * columns), y(2 * columns, -1);
      addBuffer(x, "x", /*isWritable=*/false);
      addBuffer(y, "y", /*isWritable=*/true);
      emulator->setOrder(order, /*seed=*/7);
      ASSERT_EQ(
          launch(1, threads, 0, 2 * rows, x.data(), columns, y.data(), columns),
          "");
      for (int64_t tile = 0; tile < 2; ++tile)
        for (int64_t column = 0; column < columns; ++column) {
          float sum = 0;
          for (int64_t row = tile * rows; row < (tile + 1) * rows; ++row)
            sum += x[row * columns + column];
          ASSERT_EQ(y[tile * columns + column], sum)
              << rows << "x" << columns << " on " << threads << " threads";
        }
    }
}

/// All rows of a statistic.
constexpr char kReduceStatistic[] = R"mlir(
tile.program @kernel(%rows: index, %x: memref<?x1xf32, strided<[?, 1]>>,
                     %y: memref<1xf32>)
    attributes {{leading = 1 : i64, schedule = #tile.rows<
        rows = {0}, threads = {1}, vector = {2}, columns = {3}>} {{
  %c0 = arith.constant 0 : index
  %0 = tile.load %x[%c0, %c0]
      : memref<?x1xf32, strided<[?, 1]>> -> tensor<{0}x1xf32>
  %1 = tile.reduce_rows max %0 : tensor<{0}x1xf32> -> tensor<1x1xf32>
  tile.store %1, %y[%c0] : tensor<1x1xf32>, memref<1xf32>
  tile.return
})mlir";

TEST_F(TileTest, ReduceRowsOfAStatistic) {
  for (const Shape &shape :
       {Shape{4, 32, 2, 16}, Shape{16, 128, 2, 16}, Shape{4, 128, 1, 64}}) {
    auto [rows, threads, vector, columns] = shape;
    compileTiles(
        llvm::formatv(kReduceStatistic, rows, threads, vector, columns).str());
    if (HasFatalFailure())
      return;
    std::vector<float> x = getInput(rows), y(1, -1);
    addBuffer(x, "x", /*isWritable=*/false);
    addBuffer(y, "y", /*isWritable=*/true);
    ASSERT_EQ(launch(1, threads, 0, rows, x.data(), int64_t(1), y.data()), "");
    EXPECT_EQ(y[0], *std::max_element(x.begin(), x.end()));
  }
}

/// The sums of groups of columns, and each element less its group's sum and
/// plus its group's number from memory, in steps along the row.
constexpr char kGroups[] = R"mlir(
tile.program @kernel(%rows: index, %x: memref<?x{4}xf32, strided<[?, 1]>>,
                     %s: memref<?x{5}xf32, strided<[?, 1]>>,
                    %y: memref<?x{4}xf32, strided<[?, 1]>>,
                    %z: memref<?x{5}xf32, strided<[?, 1]>>)
    attributes {{leading = 1 : i64, schedule = #tile.rows<
        rows = {0}, threads = {1}, vector = {2}, columns = {3}>} {{
  %c0 = arith.constant 0 : index
  %step = arith.constant {3} : index
  %length = arith.constant {4} : index
  %size = arith.constant {7} : index
  scf.for %column = %c0 to %length step %step {{
    %first = arith.divui %column, %size : index
    %0 = tile.load %x[%c0, %column]
        : memref<?x{4}xf32, strided<[?, 1]>> -> tensor<{0}x{3}xf32>
    %1 = tile.load %s[%c0, %first]
        : memref<?x{5}xf32, strided<[?, 1]>> -> tensor<{0}x{6}xf32>
    %sum = tile.reduce add %0 : tensor<{0}x{3}xf32> -> tensor<{0}x{6}xf32>
    %2 = arith.subf %1, %sum : tensor<{0}x{6}xf32>
    %3 = tile.broadcast %2 : tensor<{0}x{6}xf32> -> tensor<{0}x{3}xf32>
    %4 = arith.addf %0, %3 : tensor<{0}x{3}xf32>
    tile.store %4, %y[%c0, %column]
        : tensor<{0}x{3}xf32>, memref<?x{4}xf32, strided<[?, 1]>>
    tile.store %sum, %z[%c0, %first]
        : tensor<{0}x{6}xf32>, memref<?x{5}xf32, strided<[?, 1]>>
  }
  tile.return
})mlir";

TEST_F(TileTest, GroupsOfColumnsStayWithTheirThreads) {
  struct Case {
    Shape shape;
    int64_t group;
  };
  for (auto [shape, group] : {
           Case{{1, 64, 4, 256}, 128}, // all lanes of a warp
           Case{{1, 32, 4, 256}, 32},  // several groups in a warp
           Case{{4, 32, 2, 32}, 32},   // a tile of one group, several rows
           Case{{2, 64, 4, 128}, 4},   // one vector
           Case{{8, 32, 2, 32}, 16},   // several pieces of the same threads
           Case{{1, 96, 8, 1536}, 64}, // several pieces of each thread
       })
    for (Emulator::Order order : kOrders) {
      auto [rows, threads, vector, columns] = shape;
      // Two steps, the last of which goes beyond the row by a group.
      int64_t length = columns > group ? 2 * columns - group : 2 * columns;
      int64_t groups = length / group;
      compileTiles(llvm::formatv(kGroups, rows, threads, vector, columns,
                                 length, groups, columns / group, group)
                       .str());
      if (HasFatalFailure())
        return;
      std::vector<float> x = getInput(rows * length),
                         s = getInput(rows * groups);
      std::vector<float> y(rows * length, -1), z(rows * groups, -1);
      addBuffer(x, "x", /*isWritable=*/false);
      addBuffer(s, "s", /*isWritable=*/false);
      addBuffer(y, "y", /*isWritable=*/true);
      addBuffer(z, "z", /*isWritable=*/true);
      emulator->setOrder(order, /*seed=*/7);
      ASSERT_EQ(launch(1, threads, 0, rows, x.data(), length, s.data(), groups,
                       y.data(), length, z.data(), groups),
                "");
      for (int64_t index = 0; index < rows * groups; ++index) {
        float sum = 0;
        for (int64_t i = index * group; i < (index + 1) * group; ++i)
          sum += x[i];
        ASSERT_EQ(z[index], sum) << "group " << index << " of " << group;
        for (int64_t i = index * group; i < (index + 1) * group; ++i)
          ASSERT_EQ(y[i], x[i] + (s[index] - sum)) << "group of " << group;
      }
    }
}

/// Multiplies the first of n interleaved pieces by its element's number in the
/// row and stores the product as the second piece. The other pieces and a
/// margin on both sides stay.
constexpr char kInterleaved[] = R"mlir(
tile.program @kernel(%rows: index, %x: memref<?x{4}xf32, strided<[?, 1]>>,
                     %y: memref<?x{5}xf32, strided<[?, 1]>>)
    attributes {{leading = 1 : i64, schedule = #tile.rows<
        rows = {0}, threads = {1}, vector = {2}, columns = {3}>} {{
  %c0 = arith.constant 0 : index
  %0 = tile.load %x[%c0, %c0] {{offset = 3 : i64, length = {5} : i64}
      : memref<?x{4}xf32, strided<[?, 1]>> -> tensor<{0}x{6}xf32>
  {7} = tile.split interleaved %0 : tensor<{0}x{6}xf32> -> {8}
  %i = tile.iota from %c0 : tensor<{0}x{3}xi32>
  %number = arith.sitofp %i : tensor<{0}x{3}xi32> to tensor<{0}x{3}xf32>
  %new = arith.mulf %p0, %number : tensor<{0}x{3}xf32>
  %1 = tile.join interleaved {9} : {8} -> tensor<{0}x{6}xf32>
  tile.store %1, %y[%c0, %c0]
      : tensor<{0}x{6}xf32>, memref<?x{5}xf32, strided<[?, 1]>>
  tile.return
})mlir";

TEST_F(TileTest, InterleavedPiecesKeepTheirPlaces) {
  for (const Shape &shape :
       {Shape{1, 32, 4, 128}, Shape{1, 32, 1, 64}, Shape{4, 32, 2, 16}})
    for (int64_t count : {2, 3, 4}) {
      auto [rows, threads, vector, columns] = shape;
      // The last vector of each piece lies beyond the row. The margin of 3 and
      // 4 is more than pieces need: MLIR's data layout, by which the emulator
      // checks accesses, rounds the size of 12 elements up to 16.
      int64_t length = count * (columns - vector);
      std::string results, types, pieces;
      for (int64_t piece = 0; piece < count; ++piece) {
        std::string comma = piece ? ", " : "";
        results += llvm::formatv("{0}%p{1}", comma, piece).str();
        types += llvm::formatv("{0}tensor<{1}x{2}xf32>", comma, rows, columns);
        pieces += piece == 1 ? ", %new"
                             : llvm::formatv("{0}%p{1}", comma, piece).str();
      }
      compileTiles(llvm::formatv(kInterleaved, rows, threads, vector, columns,
                                 length + 7, length, count * columns, results,
                                 types, pieces)
                       .str());
      if (HasFatalFailure())
        return;
      std::vector<float> x = getInput(rows * (length + 7));
      std::vector<float> y(rows * length, -1);
      addBuffer(x, "x", /*isWritable=*/false);
      addBuffer(y, "y", /*isWritable=*/true);
      ASSERT_EQ(
          launch(1, threads, 0, rows, x.data(), length + 7, y.data(), length),
          "");
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < length; ++column) {
          const float *piece =
              &x[row * (length + 7) + 3 + column / count * count];
          float expected = column % count == 1 ? piece[0] * (column / count)
                                               : piece[column % count];
          ASSERT_EQ(y[row * length + column], expected)
              << count << " pieces, row " << row << ", column " << column;
        }
    }
}

} // namespace
