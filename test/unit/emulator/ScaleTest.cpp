//===- ScaleTest.cpp - Scaling gradients in place -------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// The function that scales gradients, beside one that computes them with the
// value, compiled for the GPU. Tests see whether it writes by making its
// outputs read-only.
//
//===----------------------------------------------------------------------===//

#include "CompiledTest.h"

using namespace bastile;
using namespace bastile::test;

namespace {

/// A sum of products: it has gradients of rows and of a vector.
constexpr char kSum[] = R"mlir(
func.func @f(%x: tensor<?x40xf32>, %w: tensor<40xf32>) -> tensor<1xf32> {
  %0 = tile.broadcast %w like %x
      : tensor<40xf32>, tensor<?x40xf32> -> tensor<?x40xf32>
  %1 = arith.mulf %x, %0 : tensor<?x40xf32>
  %2 = tile.reduce add %1 : tensor<?x40xf32> -> tensor<?x1xf32>
  %3 = tile.reduce_rows add %2 : tensor<?x1xf32> -> tensor<1xf32>
  return %3 : tensor<1xf32>
})mlir";

constexpr int64_t kColumns = 40, kRows = 9;

class ScaleTest : public CompiledTest {
protected:
  void SetUp() override {
    GradientOptions gradients;
    gradients.arguments = {"all"};
    gradients.together = true;
    compile(kSum, /*schedule=*/"", gradients);
    ASSERT_FALSE(HasFatalFailure());
    emulator = createEmulator();
    ASSERT_TRUE(emulator);
  }

  void add(std::vector<float> &numbers, const char *name, bool isWritable) {
    emulator->registerBuffer(numbers.data(), numbers.size() * sizeof(float),
                             name, isWritable);
  }

  /// Scales `rows` and `vector`, writing to the outputs; returns the message of
  /// the error, or nothing.
  std::string scale(std::vector<float> &factor, std::vector<float> &rows,
                    std::vector<float> &vector, std::vector<float> &rowsOut,
                    std::vector<float> &vectorOut) {
    auto getView = [](std::vector<float> &numbers, runtime::Dimensions sizes) {
      return runtime::TensorView::contiguous(numbers.data(),
                                             runtime::ElementType::F32, sizes);
    };
    const runtime::Dimensions one{1}, matrix{kRows, kColumns}, row{kColumns};
    std::vector<runtime::TensorView> inputs{
        getView(factor, one), getView(rows, matrix), getView(vector, row)};
    std::vector<runtime::TensorView> outputs{getView(rowsOut, matrix),
                                             getView(vectorOut, row)};
    const runtime::Function *function = metadata.find("f_scale");
    return function ? launch(*emulator, *function, inputs, outputs)
                    : "there is no f_scale";
  }

  std::unique_ptr<Emulator> emulator;
  std::vector<float> factor{1};
  std::vector<float> rows = std::vector<float>(kRows * kColumns, 3),
                     vector = std::vector<float>(kColumns, 5);
};

TEST_F(ScaleTest, ByOneInPlaceWritesNothing) {
  add(factor, "factor", /*isWritable=*/false);
  add(rows, "rows", /*isWritable=*/false);
  add(vector, "vector", /*isWritable=*/false);
  EXPECT_EQ(scale(factor, rows, vector, rows, vector), "");
  factor[0] = 2;
  EXPECT_NE(scale(factor, rows, vector, rows, vector), "");
}

TEST_F(ScaleTest, ByAnotherNumberScalesInPlace) {
  factor[0] = -2;
  add(factor, "factor", /*isWritable=*/false);
  add(rows, "rows", /*isWritable=*/true);
  add(vector, "vector", /*isWritable=*/true);
  ASSERT_EQ(scale(factor, rows, vector, rows, vector), "");
  EXPECT_EQ(rows, std::vector<float>(kRows * kColumns, -6));
  EXPECT_EQ(vector, std::vector<float>(kColumns, -10));
}

TEST_F(ScaleTest, ByOneCopiesToOtherMemory) {
  std::vector<float> rowsOut(rows.size()), vectorOut(vector.size());
  add(factor, "factor", /*isWritable=*/false);
  add(rows, "rows", /*isWritable=*/false);
  add(vector, "vector", /*isWritable=*/false);
  add(rowsOut, "rows out", /*isWritable=*/true);
  add(vectorOut, "vector out", /*isWritable=*/true);
  ASSERT_EQ(scale(factor, rows, vector, rowsOut, vectorOut), "");
  EXPECT_EQ(rowsOut, rows);
  EXPECT_EQ(vectorOut, vector);
}

} // namespace
