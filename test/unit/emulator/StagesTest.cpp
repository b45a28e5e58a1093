//===- StagesTest.cpp - Programs that load the next rows ahead ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// The backward of a norm: each program goes through several groups of rows,
// loads the next group before it computes, and adds up the rows' shares of the
// weight's gradient.
//
//===----------------------------------------------------------------------===//

#include "CompiledTest.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include <cmath>

using namespace bastile;
using namespace bastile::test;
using runtime::ElementType;

namespace {

constexpr char kRmsNorm[] = R"mlir(
  func.func @rms_norm(%x: tensor<?x{0}xbf16>, %weight: tensor<{0}xbf16>)
      -> tensor<?x{0}xbf16> {{
    %0 = tile.rms_norm %x, %weight casting(gemma)
        : tensor<?x{0}xbf16>, tensor<{0}xbf16>
    return %0 : tensor<?x{0}xbf16>
  })mlir";

/// Sums of rows without a reduction: each tile of columns has programs of its
/// own.
constexpr char kProduct[] = R"mlir(
  func.func @product(%x: tensor<?x{0}xbf16>, %weight: tensor<{0}xbf16>)
      -> tensor<?x{0}xbf16> {{
    %0 = tile.broadcast %weight like %x
        : tensor<{0}xbf16>, tensor<?x{0}xbf16> -> tensor<?x{0}xbf16>
    %1 = arith.mulf %x, %0 : tensor<?x{0}xbf16>
    return %1 : tensor<?x{0}xbf16>
  })mlir";

/// Two sums of rows, which take turns in shared memory.
constexpr char kAffine[] = R"mlir(
  func.func @affine(%x: tensor<?x{0}xbf16>, %weight: tensor<{0}xbf16>,
                    %bias: tensor<{0}xbf16>) -> tensor<?x{0}xbf16> {{
    %0 = tile.broadcast %weight like %x
        : tensor<{0}xbf16>, tensor<?x{0}xbf16> -> tensor<?x{0}xbf16>
    %1 = arith.mulf %x, %0 : tensor<?x{0}xbf16>
    %2 = tile.broadcast %bias like %x
        : tensor<{0}xbf16>, tensor<?x{0}xbf16> -> tensor<?x{0}xbf16>
    %3 = arith.addf %1, %2 : tensor<?x{0}xbf16>
    return %3 : tensor<?x{0}xbf16>
  })mlir";

/// Expects `got` to be `expected`, up to a rounding in `scale` units.
void expectNear(double got, double expected, double scale) {
  ASSERT_LE(std::abs(got - expected), 0x1p-7 * (std::abs(expected) + scale));
}

class StagesTest : public CompiledTest {
protected:
  void compileBackward(const char *format, int64_t length,
                       const std::string &schedule) {
    GradientOptions gradients;
    gradients.arguments = {"all"};
    compile(llvm::formatv(format, length).str(), schedule, gradients);
  }

  void expectNormBackward(int64_t rows, int64_t length, Emulator::Order order) {
    std::mt19937 random(rows * 31 + length);
    constexpr ElementType type = ElementType::BF16;
    Buffer dy(type, rows, length), x(type, rows, length),
        weight(type, 1, length), rstd(ElementType::F32, rows, 1),
        dx(type, rows, length), dweight(type, 1, length);
    for (Buffer *buffer : {&dy, &x, &weight})
      buffer->fill(random);
    std::vector<double> sums(length);
    std::vector<double> slopes(rows);
    for (int64_t row = 0; row < rows; ++row) {
      double squares = 0, slope = 0;
      for (int64_t column = 0; column < length; ++column)
        squares += x.get(row, column) * x.get(row, column);
      rstd.set(row, 0, 1 / std::sqrt(squares / length + 1e-6));
      double scale = rstd.get(row, 0);
      for (int64_t column = 0; column < length; ++column) {
        double normed = x.get(row, column) * scale;
        sums[column] += dy.get(row, column) * normed;
        slope += dy.get(row, column) * weight.get(0, column) * normed;
      }
      slopes[row] = slope / length;
    }
    ASSERT_EQ(
        run({dy.view(), x.view(), weight.view(/*isVector=*/true), rstd.view()},
            {dx.view(), dweight.view(/*isVector=*/true)}, order,
            "rms_norm_backward"),
        "");
    for (int64_t column = 0; column < length; ++column)
      expectNear(dweight.get(0, column), sums[column], 1e-2);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < length; ++column) {
        double scale = rstd.get(row, 0);
        expectNear(dx.get(row, column),
                   scale * (dy.get(row, column) * weight.get(0, column) -
                            x.get(row, column) * scale * slopes[row]),
                   1e-2);
      }
  }

  void expectProductBackward(int64_t rows, int64_t length,
                             Emulator::Order order) {
    std::mt19937 random(rows * 37 + length);
    constexpr ElementType type = ElementType::BF16;
    Buffer dy(type, rows, length), x(type, rows, length),
        weight(type, 1, length), dx(type, rows, length),
        dweight(type, 1, length);
    for (Buffer *buffer : {&dy, &x, &weight})
      buffer->fill(random);
    ASSERT_EQ(run({dy.view(), x.view(), weight.view(/*isVector=*/true)},
                  {dx.view(), dweight.view(/*isVector=*/true)}, order,
                  "product_backward"),
              "");
    for (int64_t column = 0; column < length; ++column) {
      double sum = 0;
      for (int64_t row = 0; row < rows; ++row) {
        sum += dy.get(row, column) * x.get(row, column);
        expectNear(dx.get(row, column),
                   dy.get(row, column) * weight.get(0, column), 1e-2);
      }
      expectNear(dweight.get(0, column), sum, 1e-2);
    }
  }
};

/// Sums of more rows than a warp holds go through the same place in shared
/// memory, one after the other.
class SumsTest : public StagesTest {
protected:
  static constexpr int64_t rows = 22, length = 256;

  SumsTest() {
    compileBackward(kAffine, length,
                    "affine_backward_kernel0:rows=4,threads=128,columns=256,"
                    "vector=8,persistent=1");
    std::mt19937 random(7);
    for (Buffer *buffer : {&dy, &x, &weight})
      buffer->fill(random);
  }

  std::string runBackward(Emulator::Order order) {
    return run({dy.view(), x.view(), weight.view(/*isVector=*/true)},
               {dx.view(), dweight.view(/*isVector=*/true),
                dbias.view(/*isVector=*/true)},
               order, "affine_backward");
  }

  std::vector<mlir::Operation *> getBarriers() {
    std::vector<mlir::Operation *> barriers;
    module->lookupSymbol("affine_backward_kernel0")
        ->walk([&](mlir::Operation *op) {
          if (llvm::isa<mlir::NVVM::Barrier0Op, mlir::NVVM::BarrierOp>(op))
            barriers.push_back(op);
        });
    return barriers;
  }

  Buffer dy{ElementType::BF16, rows, length},
      x{ElementType::BF16, rows, length}, weight{ElementType::BF16, 1, length},
      dx{ElementType::BF16, rows, length},
      dweight{ElementType::BF16, 1, length},
      dbias{ElementType::BF16, 1, length};
};

TEST_F(SumsTest, AgreeWithTheFormula) {
  for (Emulator::Order order : kOrders) {
    ASSERT_EQ(runBackward(order), "");
    for (int64_t column = 0; column < length; ++column) {
      double weights = 0, biases = 0;
      for (int64_t row = 0; row < rows; ++row) {
        weights += dy.get(row, column) * x.get(row, column);
        biases += dy.get(row, column);
      }
      expectNear(dweight.get(0, column), weights, 1e-2);
      expectNear(dbias.get(0, column), biases, 1e-2);
    }
  }
}

/// All barriers but the first are needed; ahead of that one, no thread has
/// written yet.
TEST_F(SumsTest, NeedTheirBarriers) {
  size_t count = getBarriers().size();
  ASSERT_EQ(count, 4u);
  mlir::OwningOpRef<mlir::ModuleOp> whole = module->clone();
  for (size_t index = 1; index < count; ++index) {
    module = whole->clone();
    getBarriers()[index]->erase();
    bool isFound = false;
    for (Emulator::Order order : kOrders)
      isFound |= runBackward(order) != "";
    EXPECT_TRUE(isFound) << index;
  }
}

/// Numbers of rows that leave some programs without rows, or the last group not
/// full, or no rows at all.
constexpr int64_t kRowCounts[] = {0, 1, 3, 9, 22};

TEST_F(StagesTest, NormBackwardAgreesWithTheFormula) {
  for (const char *schedule :
       {"", "threads=64,persistent=1,stages=2",
        "rows=4,threads=64,persistent=1,stages=2",
        "rows=2,threads=128,columns=1024,persistent=3,stages=2",
        "rows=3,threads=384,columns=1024,persistent=1,stages=2",
        "rows=4,threads=128,columns=1024,persistent=2,stages=3",
        "cluster=2,threads=64,columns=1024,persistent=2,stages=2",
        "threads=64,persistent=1,stages=3",
        "rows=4,threads=64,persistent=1,stages=4",
        "cluster=2,threads=64,columns=1024,persistent=2,stages=3",
        "threads=64,persistent=1,stages=1"}) {
    SCOPED_TRACE(schedule);
    // Only the kernel that goes through the rows has the pinned schedule.
    std::string pinned = schedule;
    if (!pinned.empty())
      pinned = "rms_norm_backward_kernel0:" + pinned;
    compileBackward(kRmsNorm, 1000, pinned);
    if (HasFatalFailure())
      return;
    for (int64_t rows : kRowCounts)
      expectNormBackward(rows, 1000, kOrders[rows % 3]);
  }
}

/// Where there are several tiles of columns, the programs of each go through
/// all rows.
TEST_F(StagesTest, TilesOfColumnsLoadAhead) {
  for (const char *schedule :
       {"rows=1,threads=32,columns=256,vector=8,persistent=4,stages=2",
        "rows=2,threads=64,columns=256,vector=8,persistent=8,stages=2",
        "rows=2,threads=64,columns=256,vector=8,persistent=8,stages=3",
        "rows=1,threads=32,columns=256,vector=8,persistent=4,stages=8"}) {
    SCOPED_TRACE(schedule);
    compileBackward(kProduct, 1000,
                    std::string("product_backward_kernel0:") + schedule);
    if (HasFatalFailure())
      return;
    for (int64_t rows : kRowCounts)
      expectProductBackward(rows, 1000, kOrders[rows % 3]);
  }
}

} // namespace
