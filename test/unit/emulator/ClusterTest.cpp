//===- ClusterTest.cpp - Blocks that share memory -------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "EmulatorTest.h"

using namespace bastile;
using namespace bastile::test;

namespace {

class ClusterTest : public EmulatorTest {
protected:
  /// Runs four blocks of `numThreads` in clusters of two. `body` stands behind
  /// the lines that give the kernel its rank, the other block's rank and the
  /// address of its slot in both blocks, and ahead of one that stores the i32
  /// `%result` for the block and thread.
  std::string run(const std::string &body, unsigned numThreads = 64,
                  Emulator::Order order = Emulator::Order::Forward) {
    compile(R"(
llvm.mlir.global internal @slots() {addr_space = 3 : i32}
    : !llvm.array<64 x i32>
llvm.func @kernel(%y: !llvm.ptr<1>)
    attributes {nvvm.kernel, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c2 = llvm.mlir.constant(2 : i32) : i32
  %c64 = llvm.mlir.constant(64 : i32) : i32
  %first = llvm.icmp "eq" %rank, %c0 : i32
  %other = llvm.xor %rank, %c1 : i32
  %slots = llvm.mlir.addressof @slots : !llvm.ptr<3>
  %own = llvm.getelementptr %slots[%tid]
    : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %remote = nvvm.mapa %own, %other : !llvm.ptr<3> -> !llvm.ptr<7>
)" + body + R"(
  %row = llvm.mul %block, %c64 : i32
  %index = llvm.add %row, %tid : i32
  %py = llvm.getelementptr %y[%index]
    : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %result, %py : i32, !llvm.ptr<1>
  llvm.return
}
)");
    if (!emulator)
      return "does not compile";
    emulator->setOrder(order, /*seed=*/5);
    y.assign(4 * 64, -1);
    return launchClusters(/*cluster=*/2, /*numBlocks=*/4, numThreads, y.data());
  }

  std::vector<int32_t> y;
};

const std::string kMeet = R"(
  nvvm.cluster.arrive {aligned}
  nvvm.cluster.wait {aligned}
)";
const std::string kStore = "llvm.store %block, %remote : i32, !llvm.ptr<7>\n";
const std::string kLoad = "%result = llvm.load %own : !llvm.ptr<3> -> i32\n";

TEST_F(ClusterTest, BlocksExchangeThroughSharedMemory) {
  for (Emulator::Order order :
       {Emulator::Order::Forward, Emulator::Order::Reverse,
        Emulator::Order::Random}) {
    ASSERT_EQ(run(kMeet + kStore + kMeet + kLoad, 64, order), "");
    for (int32_t block = 0; block < 4; ++block)
      EXPECT_EQ(y[block * 64 + 63], block ^ 1);
  }
}

TEST_F(ClusterTest, RegistersCountClusters) {
  ASSERT_EQ(run(R"(
    %id = nvvm.read.ptx.sreg.clusterid.x : i32
    %count = nvvm.read.ptx.sreg.nclusterid.x : i32
    %size = nvvm.read.ptx.sreg.cluster.nctaid.x : i32
    %in = nvvm.read.ptx.sreg.cluster.ctaid.x : i32
    %a = llvm.mul %id, %c64 : i32
    %b = llvm.add %a, %count : i32
    %c = llvm.mul %b, %c64 : i32
    %d = llvm.add %c, %size : i32
    %e = llvm.mul %d, %c64 : i32
    %result = llvm.add %e, %in : i32)"),
            "");
  for (int32_t block = 0; block < 4; ++block)
    EXPECT_EQ(y[block * 64], ((block / 2 * 64 + 2) * 64 + 2) * 64 + block % 2);
}

TEST_F(ClusterTest, BlocksMustHaveStarted) {
  EXPECT_EQ(run(kStore + kMeet + kLoad),
            "kernel 'kernel', cluster 0: store to the shared memory of block 1 "
            "in 'llvm.store' at kernel.mlir:19:1 by thread 0 of block 0: that "
            "block may not have started: no barrier of the cluster lies in "
            "between");
}

TEST_F(ClusterTest, BlocksMustNotHaveExited) {
  std::string error = run(kMeet + R"(
    llvm.cond_br %first, ^store, ^out
  ^out:
    llvm.return
  ^store:
    llvm.store %block, %remote : i32, !llvm.ptr<7>
    %result = llvm.add %c0, %c0 : i32)",
                          64, Emulator::Order::Reverse);
  EXPECT_TRUE(contains(error, "by thread 63 of block 0: that block has exited"))
      << error;
}

TEST_F(ClusterTest, ReadsNeedABarrierAfterRemoteStores) {
  std::string error = run(kMeet + kStore + "nvvm.barrier0\n" + kLoad);
  EXPECT_TRUE(contains(error, "data race on byte ")) << error;
  EXPECT_TRUE(contains(error, " of 'slots' in block "));
}

/// A block's stores after its arrival are not ordered for the threads that
/// wait.
TEST_F(ClusterTest, StoresAfterArrivingAreNotOrdered) {
  std::string error = run(kMeet + "nvvm.cluster.arrive {aligned}\n" + kStore +
                          "nvvm.cluster.wait {aligned}\n" + kLoad);
  EXPECT_TRUE(contains(error, "data race")) << error;
}

/// A relaxed arrival says that the block has started and nothing more.
TEST_F(ClusterTest, RelaxedArrivalsOrderNothing) {
  const std::string relaxed = R"(
    nvvm.cluster.arrive.relaxed {aligned}
    nvvm.cluster.wait {aligned}
)";
  EXPECT_EQ(run(relaxed + kStore + kMeet + kLoad), "");
  std::string error = run(kMeet + kStore + relaxed + kLoad);
  EXPECT_TRUE(contains(error, "data race")) << error;
}

TEST_F(ClusterTest, ArrivingAndWaitingTakeTurns) {
  const std::string result = "%result = llvm.add %c0, %c0 : i32";
  std::string error = run("nvvm.cluster.wait {aligned}\n" + result);
  EXPECT_TRUE(contains(error, "without having arrived")) << error;
  error = run("nvvm.cluster.arrive {aligned}\nnvvm.cluster.arrive {aligned}\n" +
              result);
  EXPECT_TRUE(contains(error, "without having waited")) << error;
}

TEST_F(ClusterTest, AllBlocksMustArrive) {
  std::string error = run(R"(
    llvm.cond_br %first, ^meet, ^join
  ^meet:
    nvvm.cluster.arrive {aligned}
    nvvm.cluster.wait {aligned}
    llvm.br ^join
  ^join:
    %result = llvm.add %c0, %c0 : i32)");
  EXPECT_TRUE(contains(error, "barrier divergence: 64 threads, thread 0 of "
                              "block 1 the first, exited; 64 threads, thread 0 "
                              "of block 0 the first, wait in "
                              "'nvvm.cluster.wait' at "))
      << error;
}

TEST_F(ClusterTest, BarriersOfABlockAreItsOwn) {
  // Only the first block has the barrier, and passes it alone.
  EXPECT_EQ(run(R"(
    llvm.cond_br %first, ^meet, ^join
  ^meet:
    nvvm.barrier0
    llvm.br ^join
  ^join:
    %result = llvm.add %c0, %c0 : i32)"),
            "");
}

TEST_F(ClusterTest, MapsOnlyBlocksOfTheCluster) {
  std::string error = run(R"(
    %far = nvvm.mapa %own, %c2 : !llvm.ptr<3> -> !llvm.ptr<7>
    %result = llvm.add %c0, %c0 : i32)");
  EXPECT_TRUE(contains(error, "names block 2 of a cluster of 2")) << error;
}

TEST_F(ClusterTest, LaunchesMustSuitTheKernel) {
  ASSERT_EQ(run("%result = llvm.add %c0, %c0 : i32"), "");
  EXPECT_EQ(launchClusters(1, 4, 64, y.data()),
            "kernel 'kernel' requires clusters of 2 blocks, not of 1");
  EXPECT_EQ(launchClusters(2, 3, 64, y.data()),
            "a grid of 3 blocks does not divide into clusters of 2");
  EXPECT_EQ(launchClusters(2, 4, 48, y.data()),
            "the emulator runs clusters of whole warps only, not of blocks of "
            "48 threads");
}

} // namespace
