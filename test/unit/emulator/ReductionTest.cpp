//===- ReductionTest.cpp - A block reduction, right and broken ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "EmulatorTest.h"
#include <limits>
#include <numeric>
#include <regex>

using namespace bastile;
using namespace bastile::test;

namespace {

/// The sum of one element of each thread: by shuffles within a warp, by shared
/// memory and a barrier across warps. Tests replace the words that start with a
/// dollar sign to break it.
constexpr const char *reduction = R"(
llvm.mlir.global internal @partials()
    {addr_space = 3 : i32, alignment = 4 : i64} : !llvm.array<4 x f32>
llvm.func @kernel(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
  %tid = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
  %bid = nvvm.read.ptx.sreg.ctaid.x : i32
  %size = nvvm.read.ptx.sreg.ntid.x : i32
  %start = llvm.mul %bid, %size : i32
  %index = llvm.add %start, %tid : i32
  %px = llvm.getelementptr %x[%index] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %v = llvm.load %px : !llvm.ptr<1> -> f32
  %mask = llvm.mlir.constant($MASK : i32) : i32
  %clamp = llvm.mlir.constant(31 : i32) : i32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c2 = llvm.mlir.constant(2 : i32) : i32
  %c4 = llvm.mlir.constant(4 : i32) : i32
  %c5 = llvm.mlir.constant(5 : i32) : i32
  %c8 = llvm.mlir.constant($EIGHT : i32) : i32
  %c16 = llvm.mlir.constant(16 : i32) : i32
  %s16 = nvvm.shfl.sync bfly %mask, %v, %c16, %clamp : f32 -> f32
  %v16 = llvm.fadd %v, %s16 : f32
  %s8 = nvvm.shfl.sync bfly %mask, %v16, %c8, %clamp : f32 -> f32
  %v8 = llvm.fadd %v16, %s8 : f32
  %s4 = nvvm.shfl.sync bfly %mask, %v8, %c4, %clamp : f32 -> f32
  %v4 = llvm.fadd %v8, %s4 : f32
  %s2 = nvvm.shfl.sync bfly %mask, %v4, %c2, %clamp : f32 -> f32
  %v2 = llvm.fadd %v4, %s2 : f32
  %s1 = nvvm.shfl.sync bfly %mask, %v2, %c1, %clamp
      {return_value_and_is_valid} : f32 -> !llvm.struct<(f32, i1)>
  %s1v = llvm.extractvalue %s1[0] : !llvm.struct<(f32, i1)>
  %v1 = llvm.fadd %v2, %s1v : f32
  %warp = llvm.lshr %tid, %c5 : i32
  %lane = nvvm.read.ptx.sreg.laneid : i32
  %first = llvm.icmp "eq" %lane, %c0 : i32
  %shared = llvm.mlir.addressof @partials : !llvm.ptr<3>
  llvm.cond_br %first, ^store, ^join
^store:
  %slot = llvm.getelementptr %shared[%warp]
      : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
  llvm.store %v1, %slot : f32, !llvm.ptr<3>
  llvm.br ^join
^join:
  $BARRIER
  %p0 = llvm.load %shared : !llvm.ptr<3> -> f32
  %a1 = llvm.getelementptr %shared[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, f32
  %p1 = llvm.load %a1 : !llvm.ptr<3> -> f32
  %a2 = llvm.getelementptr %shared[2] : (!llvm.ptr<3>) -> !llvm.ptr<3>, f32
  %p2 = llvm.load %a2 : !llvm.ptr<3> -> f32
  %a3 = llvm.getelementptr %shared[$LAST] : (!llvm.ptr<3>) -> !llvm.ptr<3>, f32
  %p3 = llvm.load %a3 : !llvm.ptr<3> -> f32
  %t1 = llvm.fadd %p0, %p1 : f32
  %t2 = llvm.fadd %t1, %p2 : f32
  %t3 = llvm.fadd %t2, %p3 : f32
  %leader = llvm.icmp "eq" %tid, %c0 : i32
  llvm.cond_br %leader, ^out, ^end
^out:
  %py = llvm.getelementptr %y[%bid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  llvm.store %t3, %py : f32, !llvm.ptr<1>
  llvm.br ^end
^end:
  llvm.return
}
)";

struct Options {
  std::string barrier = "nvvm.barrier0";
  std::string mask = "-1";
  std::string eight = "8";
  std::string last = "3";
};

std::string makeReduction(const Options &options) {
  std::string source = reduction;
  source =
      std::regex_replace(source, std::regex("\\$BARRIER"), options.barrier);
  source = std::regex_replace(source, std::regex("\\$MASK"), options.mask);
  source = std::regex_replace(source, std::regex("\\$EIGHT"), options.eight);
  return std::regex_replace(source, std::regex("\\$LAST"), options.last);
}

class ReductionTest : public EmulatorTest {
protected:
  ReductionTest() : x(3 * 128), y(3, -1.0f) {
    std::iota(x.begin(), x.end(), 0.0f);
    for (unsigned block = 0; block < 3; ++block)
      sums.push_back(std::accumulate(x.begin() + block * 128,
                                     x.begin() + (block + 1) * 128, 0.0f));
  }

  std::string run(const Options &options = Options()) {
    compile(makeReduction(options));
    if (!emulator)
      return "does not compile";
    return launchAll();
  }

  std::string launchAll() {
    return launch(3, 128, 0, static_cast<const float *>(x.data()), y.data());
  }

  std::vector<float> x, y, sums;
};

TEST_F(ReductionTest, SumsInEveryOrder) {
  ASSERT_EQ(run(), "");
  EXPECT_EQ(y, sums);
  for (auto order : {Emulator::Order::Reverse, Emulator::Order::Random,
                     Emulator::Order::Random}) {
    y.assign(3, -1.0f);
    emulator->setOrder(order, /*seed=*/7);
    ASSERT_EQ(launchAll(), "");
    EXPECT_EQ(y, sums);
  }
}

TEST_F(ReductionTest, ExplicitBarrierSynchronizes) {
  ASSERT_EQ(run({"%all = llvm.mlir.constant(128 : i32) : i32\n"
                 "nvvm.barrier id = %c1 number_of_threads = %all"}),
            "");
  EXPECT_EQ(y, sums);
}

TEST_F(ReductionTest, MissingBarrierIsARace) {
  std::string error = run({""});
  EXPECT_TRUE(contains(error, "data race on byte")) << error;
  EXPECT_TRUE(contains(error, "of 'partials'"));
  EXPECT_TRUE(contains(error, "kernel.mlir:"));
}

TEST_F(ReductionTest, MissingBarrierIsARaceInReverseToo) {
  compile(makeReduction({""}));
  emulator->setOrder(Emulator::Order::Reverse);
  EXPECT_TRUE(contains(launchAll(), "data race on byte"));
}

TEST_F(ReductionTest, WarpBarrierDoesNotOrderWarps) {
  EXPECT_TRUE(contains(run({"nvvm.bar.warp.sync %mask : i32"}), "data race"));
}

TEST_F(ReductionTest, MaskMustNameTheSourceLane) {
  Options options;
  options.mask = "65535";
  std::string error = run(options);
  EXPECT_TRUE(contains(error, "thread 0 reads lane 16 in 'nvvm.shfl.sync' at "
                              "kernel.mlir:"))
      << error;
  EXPECT_TRUE(contains(error, "mask 0xffff does not name that lane"));
}

TEST_F(ReductionTest, WrongOffsetGivesAWrongSum) {
  Options options;
  options.eight = "4";
  ASSERT_EQ(run(options), "");
  EXPECT_NE(y, sums);
}

TEST_F(ReductionTest, SharedMemoryEndsAtItsLastElement) {
  Options options;
  options.last = "4";
  std::string error = run(options);
  EXPECT_TRUE(contains(error, "out-of-bounds load of 4 bytes at byte 16 of "
                              "'partials', which has 16"))
      << error;
}

TEST_F(ReductionTest, SharedMemoryStartsPoisoned) {
  // Lane 0 of each warp has not stored when the others load.
  Options options{"llvm.cond_br %first, ^keep, ^clear\n^clear:\n"
                  "llvm.br ^keep\n^keep:\nnvvm.barrier0"};
  std::string source = makeReduction(options);
  source = std::regex_replace(
      source, std::regex("llvm.store %v1, %slot : f32, !llvm.ptr<3>"), "");
  compile(source);
  ASSERT_EQ(launchAll(), "");
  EXPECT_NE(y[0], y[0]);
}

TEST_F(ReductionTest, OutOfBoundsLoadNamesBufferAndThread) {
  compile(makeReduction({}));
  x.resize(3 * 128 - 1);
  addBuffer(x, "x", /*isWritable=*/false);
  addBuffer(y, "y", /*isWritable=*/true);
  std::string error = launchAll();
  EXPECT_TRUE(contains(error, "kernel 'kernel', block 2: out-of-bounds load of "
                              "4 bytes at byte 1532 of 'x', which has 1532, in "
                              "'llvm.load' at kernel.mlir:"))
      << error;
  EXPECT_TRUE(contains(error, "by thread 127"));
}

TEST_F(ReductionTest, ReadOnlyBufferMayNotBeWritten) {
  compile(makeReduction({}));
  addBuffer(x, "x", /*isWritable=*/false);
  addBuffer(y, "y", /*isWritable=*/false);
  EXPECT_TRUE(contains(launchAll(), "store to 'y', which is read-only"));
}

TEST_F(ReductionTest, MisalignedLoadIsReported) {
  compile(makeReduction({}));
  auto *odd = reinterpret_cast<const char *>(x.data()) + 2;
  EXPECT_TRUE(
      contains(launch(3, 128, 0, odd, y.data()), "misaligned load of 4 bytes"));
}

TEST_F(ReductionTest, BlockMustHaveTheRequiredSize) {
  compile(makeReduction({}));
  EXPECT_TRUE(contains(launch(3, 64, 0, x.data(), y.data()),
                       "requires 128 threads in dimension 0"));
}

} // namespace
