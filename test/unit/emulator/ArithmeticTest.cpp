//===- ArithmeticTest.cpp - Values that differ between GPU and host -------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "EmulatorTest.h"
#include "lib/emulator/rewrite/EmulatedMath.h"
#include <cmath>

using namespace bastile;
using namespace bastile::test;

namespace {

class ArithmeticTest : public EmulatorTest {};

TEST_F(ArithmeticTest, VectorsRoundToBFloatAsTheGpuDoes) {
  compile(R"(
llvm.func @kernel(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %v = llvm.load %x {alignment = 4 : i64} : !llvm.ptr<1> -> vector<4xf32>
  %b = llvm.fptrunc %v : vector<4xf32> to vector<4xbf16>
  llvm.store %b, %y {alignment = 2 : i64} : vector<4xbf16>, !llvm.ptr<1>
  llvm.return
}
)");
  // These are halfway to the even neighbour below and above, a NaN whose
  // payload would be cut off, and infinity.
  std::vector<uint32_t> x = {0x3f808000, 0x3f818000, 0x7f800001, 0x7f800000};
  std::vector<uint16_t> y(4);
  ASSERT_EQ(launch(1, 1, 0, x.data(), y.data()), "");
  EXPECT_EQ(y, (std::vector<uint16_t>{0x3f80, 0x3f82, 0x7fc0, 0x7f80}));
}

TEST_F(ArithmeticTest, MaskedAccessesTouchTheirLanesOnly) {
  compile(R"(
llvm.func @kernel(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %n: i64)
    attributes {nvvm.kernel} {
  %zero = llvm.mlir.constant(dense<0.0> : vector<4xf32>) : vector<4xf32>
  %iota = llvm.mlir.constant(dense<[0, 1, 2, 3]> : vector<4xi32>)
      : vector<4xi32>
  %n32 = llvm.trunc %n : i64 to i32
  %poison = llvm.mlir.poison : vector<4xi32>
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %n1 = llvm.insertelement %n32, %poison[%c0 : i32] : vector<4xi32>
  %ns = llvm.shufflevector %n1, %poison [0, 0, 0, 0] : vector<4xi32>
  %mask = llvm.icmp "slt" %iota, %ns : vector<4xi32>
  %v = llvm.intr.masked.load %x, %mask, %zero {alignment = 4 : i32}
      : (!llvm.ptr<1>, vector<4xi1>, vector<4xf32>) -> vector<4xf32>
  %w = llvm.fadd %v, %v : vector<4xf32>
  llvm.intr.masked.store %w, %y, %mask {alignment = 4 : i32}
      : vector<4xf32>, vector<4xi1> into !llvm.ptr<1>
  llvm.return
}
)");
  std::vector<float> x = {1, 2, 3}, y(3, -1.0f);
  addBuffer(x, "x", /*isWritable=*/false);
  addBuffer(y, "y", /*isWritable=*/true);
  ASSERT_EQ(launch(1, 1, 0, x.data(), y.data(), int64_t(3)), "");
  EXPECT_EQ(y, (std::vector<float>{2, 4, 6}));
  EXPECT_TRUE(contains(launch(1, 1, 0, x.data(), y.data(), int64_t(4)),
                       "out-of-bounds load of 4 bytes at byte 12 of 'x'"));
}

TEST_F(ArithmeticTest, ApproximationsAreWithinTheirBounds) {
  compile(R"(
llvm.func @kernel(%x: f32, %y: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %a = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f"(%x) : (f32) -> f32
  %b = nvvm.rcp.approx.ftz.f %a : f32
  %c = llvm.call_intrinsic "llvm.nvvm.div.full"(%a, %b) : (f32, f32) -> f32
  llvm.store %c, %y : f32, !llvm.ptr<1>
  llvm.return
}
)");
  float y = 0;
  ASSERT_EQ(launch(1, 1, 0, 1.5f, &y), "");
  EXPECT_FLOAT_EQ(y, 8.0f);
  emulator->setWorstApproximations(true);
  ASSERT_EQ(launch(1, 1, 0, 1.5f, &y), "");
  EXPECT_NE(y, 8.0f);
  EXPECT_NEAR(y, 8.0f, 8.0f * 4 * 0x1p-22f);
}

TEST_F(ArithmeticTest, WorstApproximationsErrBothWays) {
  unsigned numAbove = 0, numBelow = 0;
  for (unsigned i = 0; i < 100; ++i) {
    float x = 1.0f + i / 64.0f;
    double wrong = approximate(Approximation::Tanh, false, true, x, x);
    double error = wrong / std::tanh(double(x)) - 1.0;
    EXPECT_LE(std::abs(error), 0x1.001p-11);
    numAbove += error > 0;
    numBelow += error < 0;
  }
  EXPECT_GT(numAbove, 10u);
  EXPECT_GT(numBelow, 10u);
}

TEST_F(ArithmeticTest, SubnormalsAreFlushedWhereAsked) {
  EXPECT_EQ(approximate(Approximation::Exp2, true, false, -130.0f, 0), 0.0f);
  EXPECT_GT(approximate(Approximation::Exp2, false, false, -130.0f, 0), 0.0f);
  EXPECT_EQ(approximate(Approximation::Reciprocal, true, false, 1e-40f, 0),
            INFINITY);
}

TEST_F(ArithmeticTest, UnknownOperationsAreErrors) {
  EXPECT_TRUE(contains(compileError(R"(
llvm.func @kernel() attributes {nvvm.kernel} {
  nvvm.cluster.arrive
  llvm.return
}
)"),
                       "the emulator does not run 'nvvm.cluster.arrive' at "
                       "kernel.mlir:3:3"));
  EXPECT_TRUE(contains(compileError(R"(
llvm.func @kernel(%x: f32) attributes {nvvm.kernel} {
  %y = llvm.call_intrinsic "llvm.nvvm.saturate.f"(%x) : (f32) -> f32
  llvm.return
}
)"),
                       "'llvm.call_intrinsic llvm.nvvm.saturate.f'"));
}

TEST_F(ArithmeticTest, KernelMustExist) {
  compile("llvm.func @other() attributes {nvvm.kernel} {\n  llvm.return\n}");
  EXPECT_EQ(launch(1, 1, 0), "the module has no kernel 'kernel'");
}

} // namespace
