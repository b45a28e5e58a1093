//===- SweepsTest.cpp - Rows that are swept tile by tile ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// Softmax and cross-entropy on rows too long for a block to hold at once. The
// sum follows the maximum in one sweep; another sweep takes the row from shared
// memory, which is poisoned at first, or loads it again.
//
//===----------------------------------------------------------------------===//

#include "CompiledTest.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include <cmath>
#include <limits>

using namespace bastile;
using namespace bastile::test;
using runtime::ElementType;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

constexpr char kCrossEntropy[] = R"mlir(
  func.func @loss(%x: tensor<?x{0}x{1}>, %t: tensor<?x1xi64>)
      -> (tensor<?x1xf32>, tensor<?x1xf32>) {{
    %loss, %lse, %correct, %invalid, %predicted =
        tile.cross_entropy %x, %t reduction(none)
        : tensor<?x{0}x{1}>, tensor<?x1xi64>
    return %loss, %lse : tensor<?x1xf32>, tensor<?x1xf32>
  })mlir";

/// The sum of powers is the result itself.
constexpr char kPowers[] = R"mlir(
  func.func @powers(%x: tensor<?x{0}x{1}>)
      -> (tensor<?x{0}x{1}>, tensor<?x1x{1}>) {{
    %max = tile.reduce max %x : tensor<?x{0}x{1}> -> tensor<?x1x{1}>
    %wide = tile.broadcast %max like %x
        : tensor<?x1x{1}>, tensor<?x{0}x{1}> -> tensor<?x{0}x{1}>
    %below = arith.subf %x, %wide : tensor<?x{0}x{1}>
    %power = math.exp %below : tensor<?x{0}x{1}>
    %sum = tile.reduce add %power : tensor<?x{0}x{1}> -> tensor<?x1x{1}>
    return %power, %sum : tensor<?x{0}x{1}>, tensor<?x1x{1}>
  })mlir";

/// Three pieces at a time, scaled by one number for each group of columns.
constexpr char kPieces[] = R"mlir(
  func.func @pieces(%x: tensor<?x{1}x{2}>, %s: tensor<?x{3}x{2}>)
      -> tensor<?x{0}xf32> {{
    %a, %b, %c = tile.split interleaved %x : tensor<?x{1}x{2}>
        -> tensor<?x{0}x{2}>, tensor<?x{0}x{2}>, tensor<?x{0}x{2}>
    %0 = tile.broadcast %s like %a
        : tensor<?x{3}x{2}>, tensor<?x{0}x{2}> -> tensor<?x{0}x{2}>
    %1 = arith.addf %a, %b : tensor<?x{0}x{2}>
    %2 = arith.subf %1, %c : tensor<?x{0}x{2}>
    %3 = arith.mulf %2, %0 : tensor<?x{0}x{2}>
    %4 = tile.softmax %3 : tensor<?x{0}x{2}>
    return %4 : tensor<?x{0}xf32>
  })mlir";

constexpr const char *kSchedules[] = {
    "threads=64,columns=512,vector=8,reread=shared",
    "threads=64,columns=512,vector=8,reread=memory",
    "threads=32,columns=256,vector=4,reread=shared,persistent=1",
    "rows=4,threads=128,columns=256,vector=8,reread=shared",
    "rows=2,threads=32,columns=128,vector=8,reread=shared,persistent=2",
    "cluster=2,threads=32,columns=512,vector=8,reread=shared",
    "cluster=4,threads=32,columns=1024,vector=8,reread=memory",
    "cluster=2,threads=64,columns=512,vector=4,reread=shared,persistent=2"};

/// The softmax of a row, its maximum and the sum that it divides by.
struct Reference {
  double maximum = -kInfinity, sum = 0;

  Reference(Buffer &x, int64_t row) : x(x), row(row) {
    for (int64_t column = 0; column < x.columns; ++column) {
      double value = x.get(row, column);
      if (std::isnan(value) || value > maximum)
        maximum = value;
      if (std::isnan(maximum))
        break;
    }
    for (int64_t column = 0; column < x.columns; ++column)
      sum += power(column);
  }
  double power(int64_t column) const {
    return std::exp(x.get(row, column) - maximum);
  }
  double softmax(int64_t column) const { return power(column) / sum; }

private:
  Buffer &x;
  int64_t row;
};

/// Rows of special numbers among ordinary ones: whole shares of threads, of
/// warps and of tiles are minus infinity, whatever the schedule.
void fillSpecial(Buffer &x, std::mt19937 &random) {
  x.fill(random);
  auto set = [&](int64_t row, double value, auto condition) {
    for (int64_t column = 0; row < x.rows && column < x.columns; ++column)
      if (condition(column))
        x.set(row, column, value);
  };
  auto all = [](int64_t) { return true; };
  set(0, -kInfinity, [](int64_t column) { return column / 8 % 4 != 1; });
  set(1, -kInfinity, [](int64_t column) { return column < 600; });
  set(2, -kInfinity, all);
  set(3, kInfinity, [](int64_t column) { return column == 700; });
  set(4, kNaN, [](int64_t column) { return column == 3; });
  set(5, -kInfinity, all);
  set(5, 1, [&](int64_t column) { return column == x.columns - 1; });
  set(6, -kInfinity, all);
  set(6, kNaN, [&](int64_t column) { return column == x.columns - 1; });
  set(7, kInfinity, all);
  set(8, 3e38, [](int64_t column) { return column % 5 == 0; });
}

/// Whether `got` is within `bound` of `expected`; NaN and infinities must be
/// equal.
testing::AssertionResult isNear(double got, double expected, double bound) {
  bool isSame = std::isnan(expected)   ? std::isnan(got)
                : std::isinf(expected) ? got == expected
                                       : std::abs(got - expected) <= bound;
  if (isSame)
    return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << got << " instead of " << expected << " +- " << bound;
}

class SweepsTest : public CompiledTest {
protected:
  void compileFor(const char *format, const char *type,
                  const std::string &schedule,
                  const GradientOptions &gradients = {}) {
    compile(llvm::formatv(format, kLength, type).str(), schedule, gradients);
    EXPECT_EQ(getSharedBytes() > 0,
              schedule.find("shared") != std::string::npos);
  }

  int64_t getSharedBytes() const {
    return metadata.functions.front()
        .launches.front()
        .variants.front()
        .sharedMemory;
  }

  void expectSoftmax(ElementType type, int64_t rows, Emulator::Order order,
                     int64_t gap = 0, int64_t offset = 0) {
    std::mt19937 random(rows);
    Buffer x(type, rows, kLength, gap, offset),
        out(type, rows, kLength, gap, offset);
    fillSpecial(x, random);
    ASSERT_EQ(run({x.view()}, {out.view()}, order), "");
    double error = type == ElementType::BF16 ? 0x1p-8 : 0x1p-11;
    for (int64_t row = 0; row < rows; ++row) {
      Reference reference(x, row);
      for (int64_t column = 0; column < kLength; ++column) {
        double expected = reference.softmax(column);
        ASSERT_TRUE(
            isNear(out.get(row, column), expected, error * expected + 1e-8))
            << "row " << row << ", column " << column;
      }
    }
  }

  /// The length is a multiple of neither a tile nor a thread's share of one.
  static constexpr int64_t kLength = 1336, kRows = 9;
};

TEST_F(SweepsTest, SoftmaxAgreesWithTheFormula) {
  for (const char *schedule : kSchedules) {
    SCOPED_TRACE(schedule);
    compileFor(kSoftmax, "bf16", schedule);
    if (HasFatalFailure())
      return;
    for (Emulator::Order order : kOrders)
      expectSoftmax(ElementType::BF16, kRows, order);
    for (int64_t rows : {0, 1, 2})
      expectSoftmax(ElementType::BF16, rows, Emulator::Order::Random);
  }
}

/// The schedule for operands of any alignment keeps rows too.
TEST_F(SweepsTest, RowsAreKeptWhateverTheirAlignment) {
  for (const char *schedule : {"", "threads=64,columns=512,reread=shared"})
    for (auto [gap, offset] :
         {std::pair<int64_t, int64_t>(0, 1), {5, 0}, {8, 0}}) {
      SCOPED_TRACE(schedule);
      compile(llvm::formatv(kSoftmax, kLength, "bf16").str(), schedule);
      if (HasFatalFailure())
        return;
      expectSoftmax(ElementType::BF16, 3, Emulator::Order::Random, gap, offset);
    }
}

TEST_F(SweepsTest, RowsOfStridedDimensionsAreKept) {
  constexpr char softmax[] = R"mlir(
    func.func @softmax(%x: tensor<?x?x{0}xbf16>) -> tensor<?x?x{0}xbf16> {{
      %0 = tile.softmax %x : tensor<?x?x{0}xbf16>
      return %0 : tensor<?x?x{0}xbf16>
    })mlir";
  for (const char *schedule :
       {"threads=32,columns=256,rows=2,reread=shared",
        "cluster=2,threads=32,columns=512,persistent=1,reread=shared"}) {
    SCOPED_TRACE(schedule);
    compile(llvm::formatv(softmax, kLength).str(), schedule);
    if (HasFatalFailure())
      return;
    std::mt19937 random(4);
    Buffer x(ElementType::BF16, 8, kLength), out(ElementType::BF16, 8, kLength);
    x.fill(random);
    // The views have three of each four rows.
    auto getView = [](Buffer &buffer) {
      runtime::TensorView view = buffer.view();
      view.sizes = {2, 3, kLength};
      view.strides = {4 * buffer.stride, buffer.stride, 1};
      return view;
    };
    ASSERT_EQ(run({getView(x)}, {getView(out)}, Emulator::Order::Random), "");
    for (int64_t row : {0, 1, 2, 4, 5, 6}) {
      Reference reference(x, row);
      for (int64_t column = 0; column < kLength; ++column)
        ASSERT_TRUE(isNear(out.get(row, column), reference.softmax(column),
                           0x1p-8 * reference.softmax(column)))
            << "row " << row << ", column " << column;
    }
  }
}

TEST_F(SweepsTest, OtherTypesAreKept) {
  for (auto [name, type] : {std::pair("f16", ElementType::F16),
                            std::pair("f32", ElementType::F32)}) {
    SCOPED_TRACE(name);
    compileFor(kSoftmax, name, "threads=64,columns=256,reread=shared");
    if (HasFatalFailure())
      return;
    expectSoftmax(type, kRows, Emulator::Order::Random);
  }
}

/// The sum is also that of the formula in rows whose sum is no number. The test
/// reads the sum itself, without anything divided by it or subtracted from it.
TEST_F(SweepsTest, SumsThatFollowAMaximumAreThoseOfTheFormula) {
  for (const char *schedule :
       {"threads=64,columns=256,vector=4,reread=shared",
        "cluster=2,threads=32,columns=256,vector=2",
        "threads=32,columns=128,vector=1,persistent=1", "columns=1536"}) {
    SCOPED_TRACE(schedule);
    compile(llvm::formatv(kPowers, kLength, "f32").str(), schedule);
    if (HasFatalFailure())
      return;
    std::mt19937 random(5);
    constexpr ElementType type = ElementType::F32;
    Buffer x(type, kRows, kLength), powers(type, kRows, kLength),
        sums(type, kRows, 1);
    fillSpecial(x, random);
    ASSERT_EQ(
        run({x.view()}, {powers.view(), sums.view()}, Emulator::Order::Random),
        "");
    for (int64_t row = 0; row < kRows; ++row) {
      Reference reference(x, row);
      EXPECT_TRUE(isNear(sums.get(row, 0), reference.sum, 1e-5 * reference.sum))
          << "row " << row;
      for (int64_t column = 0; column < kLength; column += 7)
        EXPECT_TRUE(
            isNear(powers.get(row, column), reference.power(column), 1e-5))
            << "row " << row << ", column " << column;
    }
  }
}

/// Vectors whose length is no power of two lie in shared memory without gaps;
/// statistics that several threads hold are loaded again.
TEST_F(SweepsTest, InterleavedPiecesAreKeptAndGroupsAreNot) {
  constexpr int64_t length = 1344, group = 32, rows = 5;
  constexpr ElementType type = ElementType::F32;
  for (const char *schedule :
       {"threads=32,columns=256,vector=4,reread=shared",
        "threads=64,columns=128,vector=1,rows=2,reread=shared",
        "cluster=2,threads=32,columns=512,vector=4,reread=shared"}) {
    SCOPED_TRACE(schedule);
    compile(
        llvm::formatv(kPieces, length, 3 * length, "f32", length / group).str(),
        schedule);
    if (HasFatalFailure())
      return;
    std::mt19937 random(2);
    Buffer x(type, rows, 3 * length), s(type, rows, length / group),
        scaled(type, rows, length), out(type, rows, length);
    x.fill(random);
    s.fill(random);
    ASSERT_EQ(run({x.view(), s.view()}, {out.view()}, Emulator::Order::Random),
              "");
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < length; ++column)
        scaled.set(row, column,
                   s.get(row, column / group) *
                       (x.get(row, 3 * column) + x.get(row, 3 * column + 1) -
                        x.get(row, 3 * column + 2)));
      Reference reference(scaled, row);
      for (int64_t column = 0; column < length; ++column)
        ASSERT_TRUE(isNear(out.get(row, column), reference.softmax(column),
                           1e-5 * reference.softmax(column)))
            << "row " << row << ", column " << column;
    }
  }
}

/// The loss and its gradient, which takes the logits' place in memory.
TEST_F(SweepsTest, CrossEntropyAgreesWithTheFormula) {
  GradientOptions gradients;
  gradients.arguments = {"x"};
  gradients.together = gradients.inPlace = true;
  for (const char *schedule : kSchedules)
    for (bool isInPlace : {false, true}) {
      SCOPED_TRACE(schedule);
      compileFor(kCrossEntropy, "bf16", schedule, gradients);
      if (HasFatalFailure())
        return;
      std::mt19937 random(11);
      Buffer x(ElementType::BF16, kRows, kLength),
          own(ElementType::BF16, kRows, kLength),
          targets(ElementType::I64, kRows, 1), loss(ElementType::F32, kRows, 1),
          lse(ElementType::F32, kRows, 1);
      fillSpecial(x, random);
      for (int64_t row = 0; row < kRows; ++row)
        targets.set(row, 0, row == 8 ? -100 : (row * 997 + 10) % kLength);
      Buffer logits = x;
      Buffer &gradient = isInPlace ? x : own;
      ASSERT_EQ(run({x.view(), targets.view()},
                    {loss.view(), lse.view(), gradient.view()},
                    Emulator::Order::Random),
                "");
      for (int64_t row = 0; row < kRows; ++row) {
        SCOPED_TRACE("row " + std::to_string(row));
        Reference reference(logits, row);
        double logSum = std::log(reference.sum);
        EXPECT_TRUE(isNear(lse.get(row, 0), logSum + reference.maximum,
                           1e-5 * std::max(1.0, std::abs(reference.maximum))));
        int64_t target = static_cast<int64_t>(targets.get(row, 0));
        bool isIgnored = target < 0;
        double expected =
            isIgnored ? 0
                      : logSum - (logits.get(row, target) - reference.maximum);
        EXPECT_TRUE(isNear(loss.get(row, 0), expected,
                           1e-5 * std::max(1.0, std::abs(expected))));
        for (int64_t column = 0; column < kLength; ++column) {
          double slope =
              isIgnored ? 0 : reference.softmax(column) - (column == target);
          ASSERT_TRUE(isNear(gradient.get(row, column), slope,
                             0x1p-8 * std::abs(slope) + 1e-8))
              << "column " << column;
        }
      }
    }
}

/// Shared memory holds the data of its last user. A sweep that reads data
/// before its copy has arrived must be noticed.
TEST_F(SweepsTest, ACopyThatIsNotWaitedForIsFoundOut) {
  compileFor(kSoftmax, "bf16", kSchedules[0]);
  if (HasFatalFailure())
    return;
  llvm::SmallVector<mlir::NVVM::CpAsyncWaitGroupOp> waits;
  module->walk(
      [&](mlir::NVVM::CpAsyncWaitGroupOp wait) { waits.push_back(wait); });
  ASSERT_FALSE(waits.empty());
  for (mlir::NVVM::CpAsyncWaitGroupOp wait : waits)
    wait.erase();
  std::mt19937 random(1);
  Buffer x(ElementType::BF16, 1, kLength), out(ElementType::BF16, 1, kLength);
  x.fill(random);
  std::string message = run({x.view()}, {out.view()}, Emulator::Order::Forward);
  double error = std::abs(out.get(0, 0) - Reference(x, 0).softmax(0));
  EXPECT_TRUE(!message.empty() || !(error < 1e-3)) << error;
}

} // namespace
