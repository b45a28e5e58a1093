//===- MisalignedTest.cpp - Rows that no vector divides -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// Each row begins at another place between two aligned addresses. Vectors that
// a kernel stores must end where the row does: the emulator reports accesses
// outside of the operand, and bytes between the rows have to stay.
//
//===----------------------------------------------------------------------===//

#include "CompiledTest.h"
#include <cmath>

using namespace bastile;
using namespace bastile::test;
using runtime::ElementType;

namespace {

constexpr char kScale[] = R"mlir(
  func.func @scale(%x: tensor<?x{0}x{1}>, %s: tensor<?x1xf32>, %w: tensor<{0}xf32>)
      -> tensor<?x{0}xf32> {{
    %0 = arith.extf %x : tensor<?x{0}x{1}> to tensor<?x{0}xf32>
    %1 = tile.broadcast %s like %x
        : tensor<?x1xf32>, tensor<?x{0}x{1}> -> tensor<?x{0}xf32>
    %2 = tile.broadcast %w like %x
        : tensor<{0}xf32>, tensor<?x{0}x{1}> -> tensor<?x{0}xf32>
    %3 = arith.mulf %0, %1 : tensor<?x{0}xf32>
    %4 = arith.addf %3, %2 : tensor<?x{0}xf32>
    return %4 : tensor<?x{0}xf32>
  })mlir";

constexpr char kCrossEntropy[] = R"mlir(
  func.func @loss(%x: tensor<?x{0}x{1}>, %t: tensor<?x1xi64>) -> tensor<1xf32> {{
    %loss, %lse, %correct, %invalid, %predicted =
        tile.cross_entropy %x, %t reduction(sum)
        : tensor<?x{0}x{1}>, tensor<?x1xi64>
    return %loss : tensor<1xf32>
  })mlir";

double getError(ElementType type) {
  return type == ElementType::BF16  ? 0x1p-8
         : type == ElementType::F16 ? 0x1p-10
                                    : 0x1p-18;
}

const char *getName(ElementType type) {
  return type == ElementType::BF16  ? "bf16"
         : type == ElementType::F16 ? "f16"
                                    : "f32";
}

constexpr ElementType kTypes[] = {ElementType::BF16, ElementType::F16,
                                  ElementType::F32};

class MisalignedTest : public CompiledTest {
protected:
  void compileFor(const char *format, int64_t length, ElementType type,
                  const std::string &schedule = "",
                  const GradientOptions &gradients = {}) {
    compile(llvm::formatv(format, length, getName(type)).str(), schedule,
            gradients);
  }

  /// Keeps only variants that move vectors of `phase` elements; false if there
  /// are none.
  bool keepMisaligned() {
    bool isFound = false;
    for (runtime::Launch &launch : metadata.functions.front().launches) {
      const std::vector<int64_t> &phase = launch.variants.front().phase;
      if (llvm::all_of(phase, [](int64_t elements) { return elements == 1; }))
        continue;
      launch.variants.resize(1);
      isFound = true;
    }
    return isFound;
  }

  void expectSoftmax(int64_t length, ElementType type, int64_t rows,
                     int64_t gap, int64_t offset, Emulator::Order order) {
    std::mt19937 random(length + offset);
    Buffer x(type, rows, length, gap, offset),
        out(type, rows, length, gap, offset);
    x.fill(random);
    ASSERT_EQ(run({x.view()}, {out.view()}, order), "");
    for (int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (int64_t column = 0; column < length; ++column)
        sum += std::exp(x.get(row, column));
      for (int64_t column = 0; column < length; ++column) {
        double expected = std::exp(x.get(row, column)) / sum;
        ASSERT_NEAR(out.get(row, column), expected,
                    getError(type) * expected + 1e-7)
            << "row " << row << ", column " << column;
      }
    }
    expectMargins(out);
  }

  /// Checks that no kernel has written between the rows.
  static void expectMargins(Buffer &buffer) {
    auto expectUntouched = [](const char *begin, const char *end) {
      for (; begin < end; ++begin)
        ASSERT_EQ(*begin, '\xff');
    };
    expectUntouched(buffer.bytes.data(), buffer.element(0, 0));
    for (int64_t row = 0; row < buffer.rows; ++row)
      expectUntouched(buffer.element(row, buffer.columns),
                      row + 1 == buffer.rows
                          ? buffer.bytes.data() + buffer.bytes.size()
                          : buffer.element(row + 1, 0));
  }
};

TEST_F(MisalignedTest, SoftmaxAgreesWithTheFormula) {
  for (ElementType type : kTypes)
    for (int64_t length : {1, 7, 8, 9, 129, 1337}) {
      SCOPED_TRACE(std::string(getName(type)) + ", " + std::to_string(length));
      compileFor(kSoftmax, length, type);
      if (HasFatalFailure())
        return;
      EXPECT_EQ(keepMisaligned(), length % 2 != 0 && length >= 129);
      for (int64_t offset = 0; offset < 8; ++offset)
        expectSoftmax(length, type, /*rows=*/5, /*gap=*/offset % 3, offset,
                      kOrders[offset % 3]);
      if (HasFatalFailure())
        return;
    }
}

TEST_F(MisalignedTest, SchedulesOfAllKindsAgree) {
  constexpr const char *kSchedules[] = {
      "vector=8,threads=64,columns=512,reread=shared",
      "vector=8,threads=64,columns=512,reread=memory",
      "vector=8,rows=4,threads=128,columns=256,reread=shared",
      "vector=8,rows=2,threads=32,columns=128,reread=shared,persistent=2",
      "vector=8,cluster=2,threads=32,columns=512,reread=shared",
      "vector=8,cluster=4,threads=32,columns=2048",
      "vector=2,threads=128,columns=512,reread=shared",
      "vector=8,rows=8,threads=128,columns=2048",
      "vector=8,rows=4,threads=256,persistent=1,stages=2",
      "vector=16,threads=32,columns=512"};
  for (const char *schedule : kSchedules)
    for (int64_t length : {1025, 1031}) {
      SCOPED_TRACE(schedule);
      compileFor(kSoftmax, length, ElementType::BF16, schedule);
      if (HasFatalFailure())
        return;
      EXPECT_TRUE(keepMisaligned());
      for (Emulator::Order order : kOrders)
        expectSoftmax(length, ElementType::BF16, /*rows=*/9, /*gap=*/0,
                      /*offset=*/3, order);
      if (HasFatalFailure())
        return;
    }
}

/// In rows of few vectors, many vectors hold an edge of the row.
TEST_F(MisalignedTest, ShortRowsCanBeMisaligned) {
  for (int64_t length : {15, 17, 23, 31}) {
    SCOPED_TRACE(length);
    compileFor(kSoftmax, length, ElementType::BF16, "vector=8");
    if (HasFatalFailure())
      return;
    EXPECT_TRUE(keepMisaligned());
    for (int64_t offset = 0; offset < 8; ++offset)
      expectSoftmax(length, ElementType::BF16, /*rows=*/70, /*gap=*/0, offset,
                    kOrders[offset % 3]);
  }
}

/// Operands of other types begin as many elements behind an aligned address; an
/// operand that all rows share may begin anywhere.
TEST_F(MisalignedTest, TypesMayDiffer) {
  for (const char *schedule : {"", "vector=8,rows=4,threads=64,columns=128"})
    for (int64_t length : {257, 1000, 1337}) {
      compileFor(kScale, length, ElementType::BF16, schedule);
      if (HasFatalFailure())
        return;
      EXPECT_EQ(keepMisaligned(), length % 8 != 0);
      for (int64_t offset = 0; offset < 8; ++offset) {
        const int64_t rows = 6;
        std::mt19937 random(offset);
        int64_t behind = length % 8 == 0 ? 0 : offset;
        Buffer x(ElementType::BF16, rows, length, /*gap=*/0, behind),
            s(ElementType::F32, rows, 1), w(ElementType::F32, 1, length, 0, 1),
            out(ElementType::F32, rows, length, /*gap=*/8, behind);
        x.fill(random);
        s.fill(random);
        w.fill(random);
        ASSERT_EQ(run({x.view(), s.view(), w.view(/*isVector=*/true)},
                      {out.view()}, kOrders[offset % 3]),
                  "");
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t column = 0; column < length; ++column)
            ASSERT_NEAR(out.get(row, column),
                        x.get(row, column) * s.get(row, 0) + w.get(0, column),
                        1e-5)
                << "row " << row << ", column " << column;
        expectMargins(out);
      }
    }
}

/// Where rows of operands begin differently, elements are moved one by one.
TEST_F(MisalignedTest, OtherPhasesTakeTheOtherVariant) {
  compileFor(kSoftmax, /*length=*/1337, ElementType::BF16);
  if (HasFatalFailure())
    return;
  std::mt19937 random;
  Buffer x(ElementType::BF16, 3, 1337, /*gap=*/0, /*offset=*/1),
      out(ElementType::BF16, 3, 1337);
  x.fill(random);
  EXPECT_EQ(run({x.view()}, {out.view()}, Emulator::Order::Forward), "");
  ASSERT_TRUE(keepMisaligned());
  EXPECT_NE(run({x.view()}, {out.view()}, Emulator::Order::Forward)
                .find("to begin as far behind an aligned address"),
            std::string::npos);
}

/// The rows of each row space begin at another place.
TEST_F(MisalignedTest, LaunchesOfSeveralSetsOfRowsAgree) {
  compile(R"mlir(
    func.func @both(%x: tensor<?x1029xf32>, %y: tensor<?x1029xf32>,
                    %w: tensor<1029xf32>)
        -> (tensor<?x1029xf32>, tensor<?x1029xf32>) {
      %0 = tile.rms_norm %x, %w : tensor<?x1029xf32>, tensor<1029xf32>
      %1 = tile.rms_norm %y, %w : tensor<?x1029xf32>, tensor<1029xf32>
      return %0, %1 : tensor<?x1029xf32>, tensor<?x1029xf32>
    })mlir",
          "rows=4,vector=4,threads=64,columns=512,reread=shared");
  if (HasFatalFailure())
    return;
  EXPECT_TRUE(keepMisaligned());
  ASSERT_EQ(metadata.functions.front().launches.size(), 1u);
  std::mt19937 random;
  Buffer x(ElementType::F32, 3, 1029, /*gap=*/1, /*offset=*/1),
      xNorm(ElementType::F32, 3, 1029, /*gap=*/1, /*offset=*/1),
      y(ElementType::F32, 6, 1029, /*gap=*/0, /*offset=*/2),
      yNorm(ElementType::F32, 6, 1029, /*gap=*/4, /*offset=*/2),
      w(ElementType::F32, 1, 1029, /*gap=*/0, /*offset=*/3);
  for (Buffer *buffer : {&x, &y, &w})
    buffer->fill(random);
  for (Emulator::Order order : kOrders) {
    ASSERT_EQ(run({x.view(), y.view(), w.view(/*isVector=*/true)},
                  {xNorm.view(), yNorm.view()}, order),
              "");
    for (auto [input, output] :
         {std::pair(&x, &xNorm), std::pair(&y, &yNorm)}) {
      for (int64_t row = 0; row < input->rows; ++row) {
        double sum = 0;
        for (int64_t column = 0; column < 1029; ++column)
          sum += std::pow(input->get(row, column), 2);
        double scale = 1 / std::sqrt(sum / 1029 + 1e-6);
        for (int64_t column = 0; column < 1029; ++column)
          ASSERT_NEAR(output->get(row, column),
                      input->get(row, column) * scale * w.get(0, column), 1e-4)
              << "row " << row << ", column " << column;
      }
      expectMargins(*output);
    }
  }
}

TEST_F(MisalignedTest, CrossEntropyHasItsGradientInPlace) {
  for (ElementType type : kTypes)
    for (int64_t length : {1337, 50257}) {
      SCOPED_TRACE(std::string(getName(type)) + ", " + std::to_string(length));
      GradientOptions gradients;
      gradients.arguments = {"x"};
      gradients.together = gradients.inPlace = true;
      compileFor(kCrossEntropy, length, type, "", gradients);
      if (HasFatalFailure())
        return;
      EXPECT_TRUE(keepMisaligned());
      for (int64_t offset : {0, 5}) {
        const int64_t rows = length < 2000 ? 9 : 3;
        std::mt19937 random(offset);
        Buffer x(type, rows, length, /*gap=*/offset / 4, offset),
            t(ElementType::I64, rows, 1), loss(ElementType::F32, 1, 1);
        x.fill(random);
        for (int64_t row = 0; row < rows; ++row)
          t.set(row, 0, row == 0 ? 0 : row == 1 ? length - 1 : 7 * row);
        Buffer before = x;
        ASSERT_EQ(run({x.view(), t.view()},
                      {loss.view(/*isVector=*/true), x.view()},
                      kOrders[offset % 3]),
                  "");
        double total = 0;
        for (int64_t row = 0; row < rows; ++row) {
          double sum = 0;
          for (int64_t column = 0; column < length; ++column)
            sum += std::exp(before.get(row, column));
          auto target = static_cast<int64_t>(t.get(row, 0));
          total += std::log(sum) - before.get(row, target);
          for (int64_t column = 0; column < length; ++column) {
            double power = std::exp(before.get(row, column)) / sum;
            double expected = power - (column == target);
            ASSERT_NEAR(x.get(row, column), expected,
                        getError(type) * std::abs(expected) + 1e-7)
                << "row " << row << ", column " << column;
          }
        }
        EXPECT_NEAR(loss.get(0, 0), total, 1e-4 * total);
        expectMargins(x);
      }
    }
}

} // namespace
