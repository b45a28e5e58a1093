//===- SendTest.cpp - Bytes that blocks send to each other ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Threads send 16 bytes each to another block, whose mbarrier counts them. Each
// change to how they wait for that has to be found.
//
//===----------------------------------------------------------------------===//

#include "EmulatorTest.h"

using namespace bastile;
using namespace bastile::test;

namespace {

const std::string kMeet = "nvvm.cluster.arrive {aligned}\n"
                          "nvvm.cluster.wait {aligned}\n";
const std::string kInit = R"(
  llvm.cond_br %isFirst, ^init, ^meet
^init:
  nvvm.mbarrier.init %barrier, %c1 : !llvm.ptr<3>, i32
  nvvm.fence.mbarrier.init
  llvm.br ^meet
^meet:
)";
const std::string kExpect = R"(
  llvm.cond_br %isFirst, ^expect, ^send
^expect:
  nvvm.mbarrier.arrive.expect_tx %barrier, %bytes : !llvm.ptr<3>, i32
  llvm.br ^send
^send:
)";
const std::string kWait = "%arrived = nvvm.mbarrier.try_wait %barrier, %c0 : "
                          "!llvm.ptr<3>, i32 -> i1\n";
const std::string kLoad = "%result = llvm.load %own : !llvm.ptr<3> -> i32\n";

std::string send(const std::string &to = "%remote",
                 const std::string &barrier = "%remoteBarrier") {
  return "llvm.inline_asm has_side_effects \"st.async.weak.shared::cluster."
         "mbarrier::complete_tx::bytes.v4.b32 [$0], {$1, $2, $3, $4}, "
         "[$5];\", \"l,r,r,r,r,l,~{memory}\" " +
         to + ", %tid, %tid, %tid, %rank, " + barrier +
         " : (!llvm.ptr<7>, i32, i32, i32, i32, !llvm.ptr<7>) -> ()\n";
}

class SendTest : public EmulatorTest {
protected:
  /// Runs four blocks of 64 threads in clusters of two. Each thread has 16
  /// bytes, `%own`, and stores the i32 `%result`.
  std::string run(const std::string &body,
                  Emulator::Order order = Emulator::Order::Forward) {
    compile(R"(
llvm.mlir.global internal @slots() {addr_space = 3 : i32, alignment = 16 : i64}
    : !llvm.array<256 x i32>
llvm.mlir.global internal @barrier() {addr_space = 3 : i32} : i64
llvm.func @kernel(%y: !llvm.ptr<1>)
    attributes {nvvm.kernel, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c4 = llvm.mlir.constant(4 : i32) : i32
  %c64 = llvm.mlir.constant(64 : i32) : i32
  %bytes = llvm.mlir.constant(1024 : i32) : i32
  %few = llvm.mlir.constant(1008 : i32) : i32
  %isFirst = llvm.icmp "eq" %tid, %c0 : i32
  %other = llvm.xor %rank, %c1 : i32
  %slots = llvm.mlir.addressof @slots : !llvm.ptr<3>
  %barrier = llvm.mlir.addressof @barrier : !llvm.ptr<3>
  %word = llvm.mul %tid, %c4 : i32
  %own = llvm.getelementptr %slots[%word]
    : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %remote = nvvm.mapa %own, %other : !llvm.ptr<3> -> !llvm.ptr<7>
  %remoteBarrier = nvvm.mapa %barrier, %other : !llvm.ptr<3> -> !llvm.ptr<7>
  %ownBarrier = nvvm.mapa %barrier, %rank : !llvm.ptr<3> -> !llvm.ptr<7>
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
    return launchClusters(/*cluster=*/2, /*numBlocks=*/4, /*numThreads=*/64,
                          y.data());
  }

  std::vector<int32_t> y;
};

TEST_F(SendTest, BlocksReadWhatWasSent) {
  for (Emulator::Order order :
       {Emulator::Order::Forward, Emulator::Order::Reverse,
        Emulator::Order::Random}) {
    ASSERT_EQ(run(kInit + kMeet + kExpect + send() + kWait + kLoad, order), "");
    for (int32_t index = 0; index < 4 * 64; ++index)
      EXPECT_EQ(y[index], index % 64);
  }
}

/// Bytes may come before the block announces them: the phase lacks its arrival.
TEST_F(SendTest, BytesMayComeAhead) {
  EXPECT_EQ(run(kInit + kMeet + send() + kMeet + kExpect + kWait + kLoad), "");
}

/// Meeting the other block's threads does not say that the bytes have come.
TEST_F(SendTest, ReadsNeedAWait) {
  std::string error = run(kInit + kMeet + kExpect + send() + kMeet + kLoad);
  EXPECT_TRUE(contains(error, "data race on byte ")) << error;
  EXPECT_TRUE(contains(error, "copies for the mbarrier at byte 0 of 'barrier'"))
      << error;
}

TEST_F(SendTest, BytesHaveToBeAnnounced) {
  std::string error = run(kInit + kMeet + send() + kWait + kLoad);
  EXPECT_TRUE(contains(error, "wait in 'nvvm.mbarrier.try_wait'")) << error;
  // A phase that expects too few ends too early.
  std::string expect = kExpect;
  expect.replace(expect.find("%bytes"), 6, "%few");
  error = run(kInit + kMeet + expect + send() + kWait + kLoad);
  EXPECT_TRUE(contains(error, "data race on byte ")) << error;
}

TEST_F(SendTest, BlocksMustHaveMet) {
  std::string error = run(kInit + kExpect + send() + kWait + kLoad);
  EXPECT_TRUE(contains(error, "may not have started")) << error;
}

/// Who sends has to know that what it overwrites has been read.
TEST_F(SendTest, PlacesHaveToBeFree) {
  const std::string read = "%before = llvm.load %own : !llvm.ptr<3> -> i32\n";
  std::string error =
      run(kInit + kMeet + read + kExpect + send() + kWait + kLoad);
  EXPECT_TRUE(contains(error, "data race on byte ")) << error;
  EXPECT_EQ(
      run(kInit + kMeet + read + kMeet + kExpect + send() + kWait + kLoad), "");
}

TEST_F(SendTest, BlocksOutliveWhatComes) {
  std::string error = run(kInit + kMeet + kExpect + send() + kMeet +
                          "%result = llvm.add %c0, %c0 : i32");
  EXPECT_TRUE(contains(error, "may exit before")) << error;
}

TEST_F(SendTest, TheBarrierIsInTheSameBlock) {
  std::string error = run(kInit + kMeet + kExpect +
                          send("%remote", "%ownBarrier") + kWait + kLoad);
  EXPECT_TRUE(contains(error, "sends to block 1, and tells an mbarrier in "
                              "block 0"))
      << error;
}

TEST_F(SendTest, PlacesAreAligned) {
  std::string error =
      run(kInit + kMeet + kExpect +
          "%within = llvm.getelementptr %remote[1] : (!llvm.ptr<7>) -> "
          "!llvm.ptr<7>, i32\n" +
          send("%within") + kWait + kLoad);
  EXPECT_TRUE(contains(error, "that is no multiple of 16")) << error;
}

} // namespace
