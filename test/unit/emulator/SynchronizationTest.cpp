//===- SynchronizationTest.cpp - Barriers, shuffles and votes -------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "EmulatorTest.h"

using namespace bastile;
using namespace bastile::test;

namespace {

class SynchronizationTest : public EmulatorTest {
protected:
  /// Compiles a kernel with `body` behind the lines that give it its thread and
  /// some constants, and ahead of one that stores the i32 `%result`.
  void compileBody(const std::string &body) {
    compile(R"(
llvm.mlir.global internal @flag() {addr_space = 3 : i32} : !llvm.array<2 x i32>
llvm.mlir.global external @dynamic()
    {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i32>
llvm.func @kernel(%y: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %lane = nvvm.read.ptx.sreg.laneid : i32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c2 = llvm.mlir.constant(2 : i32) : i32
  %c16 = llvm.mlir.constant(16 : i32) : i32
  %c31 = llvm.mlir.constant(31 : i32) : i32
  %c32 = llvm.mlir.constant(32 : i32) : i32
  %full = llvm.mlir.constant(-1 : i32) : i32
  %half = llvm.mlir.constant(65535 : i32) : i32
  %low = llvm.icmp "ult" %lane, %c16 : i32
  %warp0 = llvm.icmp "ult" %tid, %c32 : i32
  %shared = llvm.mlir.addressof @flag : !llvm.ptr<3>
)" + body + R"(
  %py = llvm.getelementptr %y[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %result, %py : i32, !llvm.ptr<1>
  llvm.return
}
)");
  }

  std::string run(const std::string &body, unsigned numThreads,
                  uint64_t sharedBytes = 0) {
    compileBody(body);
    if (!emulator)
      return "does not compile";
    y.assign(numThreads, -1);
    return launch(1, numThreads, sharedBytes, y.data());
  }

  std::vector<int32_t> y;
};

TEST_F(SynchronizationTest, ShuffleKindsFollowThePtxIsa) {
  // `up` clamps at lane 0, `down` at 31: a lane out of range keeps its value.
  struct {
    const char *op;
    int32_t lane0, lane1, lane31;
  } const cases[] = {
      {"up %full, %tid, %c1, %c0", 0, 0, 30},
      {"down %full, %tid, %c1, %c31", 1, 2, 31},
      {"bfly %full, %tid, %c1, %c31", 1, 0, 30},
      {"idx %full, %tid, %c16, %c31", 16, 16, 16},
  };
  for (const auto &one : cases) {
    ASSERT_EQ(
        run("%result = nvvm.shfl.sync " + std::string(one.op) + " : i32 -> i32",
            32),
        "");
    EXPECT_EQ(y[0], one.lane0) << one.op;
    EXPECT_EQ(y[1], one.lane1) << one.op;
    EXPECT_EQ(y[31], one.lane31) << one.op;
  }
}

TEST_F(SynchronizationTest, ShuffleTellsWhetherItsSourceIsInRange) {
  ASSERT_EQ(run(R"(
    %both = nvvm.shfl.sync down %full, %tid, %c16, %c31
      {return_value_and_is_valid} : i32 -> !llvm.struct<(i32, i1)>
    %valid = llvm.extractvalue %both[1] : !llvm.struct<(i32, i1)>
    %result = llvm.zext %valid : i1 to i32)",
                32),
            "");
  EXPECT_EQ(y[15], 1);
  EXPECT_EQ(y[16], 0);
}

TEST_F(SynchronizationTest, HalfWarpsExchangeApart) {
  ASSERT_EQ(run(R"(
    %upper = llvm.xor %half, %full : i32
    %mask = llvm.select %low, %half, %upper : i1, i32
    %result = nvvm.shfl.sync bfly %mask, %tid, %c1, %c31 : i32 -> i32)",
                32),
            "");
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[17], 16);
}

TEST_F(SynchronizationTest, ShuffleMaskMustNameTheLane) {
  EXPECT_TRUE(contains(
      run("%result = nvvm.shfl.sync bfly %half, %tid, %c1, %c31 : i32 -> i32",
          32),
      "with mask 0xffff, which does not name its lane 16"));
}

TEST_F(SynchronizationTest, LanesOfTheMaskMustArrive) {
  std::string error = run(R"(
    llvm.cond_br %low, ^exchange, ^join(%c0 : i32)
  ^exchange:
    %s = nvvm.shfl.sync bfly %full, %tid, %c1, %c31 : i32 -> i32
    llvm.br ^join(%s : i32)
  ^join(%result: i32):
    nvvm.barrier0)",
                          32);
  EXPECT_TRUE(contains(error, "16 threads, thread 0 the first, wait in "
                              "'nvvm.shfl.sync' at kernel.mlir:"))
      << error;
  EXPECT_TRUE(contains(error, "16 threads, thread 16 the first, wait in "
                              "'nvvm.barrier0' at kernel.mlir:"));
}

TEST_F(SynchronizationTest, LanesOfTheMaskMustNotHaveExited) {
  std::string error = run(R"(
    llvm.cond_br %low, ^exchange, ^out
  ^out:
    llvm.return
  ^exchange:
    %result = nvvm.shfl.sync bfly %full, %tid, %c1, %c31 : i32 -> i32)",
                          32);
  EXPECT_TRUE(contains(error, "lanes named in a mask never arrive")) << error;
  EXPECT_TRUE(contains(error, "16 threads, thread 16 the first, exited"));
}

TEST_F(SynchronizationTest, MaskMustNotReachBeyondTheBlock) {
  EXPECT_TRUE(contains(
      run("%result = nvvm.shfl.sync bfly %full, %tid, %c1, %c31 : i32 -> i32",
          48),
      "names lanes beyond the end of the block"));
}

TEST_F(SynchronizationTest, VotesCombinePredicates) {
  struct {
    const char *op;
    int32_t result;
  } const cases[] = {{"any %full, %low -> i1", 1},
                     {"all %full, %low -> i1", 0},
                     {"uni %full, %low -> i1", 0},
                     {"uni %full, %warp0 -> i1", 1}};
  for (const auto &one : cases) {
    ASSERT_EQ(run("%v = nvvm.vote.sync " + std::string(one.op) +
                      "\n%result = llvm.zext %v : i1 to i32",
                  32),
              "");
    EXPECT_EQ(y[5], one.result) << one.op;
  }
  ASSERT_EQ(run("%result = nvvm.vote.sync ballot %full, %low -> i32", 32), "");
  EXPECT_EQ(y[31], 0xffff);
}

TEST_F(SynchronizationTest, BarrierNeedsTheThreadsThatExited) {
  std::string error = run(R"(
    llvm.cond_br %warp0, ^wait, ^out
  ^out:
    llvm.return
  ^wait:
    %result = llvm.mlir.constant(1 : i32) : i32
    nvvm.barrier0)",
                          96);
  EXPECT_TRUE(contains(error, "block 0: barrier divergence: ")) << error;
  EXPECT_TRUE(contains(error, "64 threads, thread 32 the first, exited"));
  EXPECT_TRUE(contains(error, "32 threads, thread 0 the first, wait in "
                              "'nvvm.barrier0' at kernel.mlir:"));
}

TEST_F(SynchronizationTest, ThreadsOfAWarpMustMeetInOneBarrier) {
  EXPECT_TRUE(contains(run(R"(
    llvm.cond_br %low, ^one, ^two
  ^one:
    nvvm.barrier0
    llvm.br ^join
  ^two:
    nvvm.barrier0
    llvm.br ^join
  ^join:
    %result = llvm.mlir.constant(1 : i32) : i32)",
                           64),
                       "barrier divergence: thread "));
}

TEST_F(SynchronizationTest, NamedBarriersTakeSomeOfTheWarps) {
  // Two halves of the block pass through barriers of their own.
  ASSERT_EQ(run(R"(
    %c64 = llvm.mlir.constant(64 : i32) : i32
    %first = llvm.icmp "ult" %tid, %c64 : i32
    %id = llvm.select %first, %c1, %c2 : i1, i32
    nvvm.barrier id = %id number_of_threads = %c64
    %result = llvm.add %id, %c0 : i32)",
                128),
            "");
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[64], 2);
}

TEST_F(SynchronizationTest, BarrierReductionCountsThreads) {
  ASSERT_EQ(run(R"(
    %predicate = llvm.zext %low : i1 to i32
    %result = nvvm.barrier #nvvm.reduction<popc> %predicate -> i32)",
                64),
            "");
  EXPECT_EQ(y[0], 32);
}

TEST_F(SynchronizationTest, BarrierCountsWholeWarps) {
  EXPECT_TRUE(contains(run(R"(
    nvvm.barrier id = %c1 number_of_threads = %c16
    %result = llvm.add %c0, %c0 : i32)",
                           64),
                       "cannot wait for 16 threads of a block of 64"));
}

TEST_F(SynchronizationTest, WarpBarrierOrdersItsLanes) {
  const std::string store = R"(
    %is0 = llvm.icmp "eq" %tid, %c0 : i32
    llvm.cond_br %is0, ^store, ^join
  ^store:
    llvm.store %c31, %shared : i32, !llvm.ptr<3>
    llvm.br ^join
  ^join:
)";
  const std::string load = "%result = llvm.load %shared : !llvm.ptr<3> -> i32";
  ASSERT_EQ(run(store + "nvvm.bar.warp.sync %full : i32\n" + load, 32), "");
  EXPECT_EQ(y[7], 31);
  EXPECT_TRUE(contains(run(store + load, 32), "data race on byte 0 of 'flag'"));
}

TEST_F(SynchronizationTest, WriteAfterReadNeedsABarrier) {
  const std::string load = R"(
    %result = llvm.load %shared : !llvm.ptr<3> -> i32
)";
  const std::string store = R"(
    %last = llvm.icmp "eq" %tid, %c31 : i32
    llvm.cond_br %last, ^store, ^join
  ^store:
    llvm.store %c31, %shared : i32, !llvm.ptr<3>
    llvm.br ^join
  ^join:
)";
  EXPECT_EQ(run(load + "nvvm.barrier0" + store, 64), "");
  std::string error = run(load + store, 64);
  EXPECT_TRUE(contains(error, "thread 31 writes it in 'llvm.store'")) << error;
  EXPECT_TRUE(contains(error, "read it before"));
}

TEST_F(SynchronizationTest, DynamicSharedMemoryHasTheSizeOfTheLaunch) {
  const std::string body = R"(
    %buffer = llvm.mlir.addressof @dynamic : !llvm.ptr<3>
    %slot = llvm.getelementptr %buffer[%tid]
      : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %tid, %slot : i32, !llvm.ptr<3>
    nvvm.barrier0
    %mirror = llvm.xor %tid, %c31 : i32
    %other = llvm.getelementptr %buffer[%mirror]
      : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %result = llvm.load %other : !llvm.ptr<3> -> i32
)";
  ASSERT_EQ(run(body, 32, /*sharedBytes=*/128), "");
  EXPECT_EQ(y[0], 31);
  EXPECT_TRUE(contains(run(body, 32, /*sharedBytes=*/64),
                       "out-of-bounds store of 4 bytes at byte 64 of "
                       "'dynamic', which has 64"));
}

} // namespace
