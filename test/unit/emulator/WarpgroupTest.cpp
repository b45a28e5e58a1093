//===- WarpgroupTest.cpp - Warps with roles of their own ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "TensorCoreTest.h"

using namespace bastile;
using namespace bastile::test;

namespace {

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

class WarpgroupTest : public TensorCoreTest {
protected:
  /// Runs one block; `body` may store `%result` for each thread at `%py`.
  std::string run(const std::string &body, unsigned numThreads,
                  Emulator::Order order = Emulator::Order::Forward) {
    compile(R"(
llvm.mlir.global internal @slot() {addr_space = 3 : i32} : !llvm.array<64 x i32>
llvm.func @kernel(%y: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c31 = llvm.mlir.constant(31 : i32) : i32
  %c32 = llvm.mlir.constant(32 : i32) : i32
  %c64 = llvm.mlir.constant(64 : i32) : i32
  %c128 = llvm.mlir.constant(128 : i32) : i32
  %c256 = llvm.mlir.constant(256 : i32) : i32
  %isLow = llvm.icmp "slt" %tid, %c128 : i32
  %isMiddle = llvm.icmp "slt" %tid, %c256 : i32
  %isFirstWarp = llvm.icmp "slt" %tid, %c32 : i32
  %lane = llvm.and %tid, %c31 : i32
  %slot = llvm.mlir.addressof @slot : !llvm.ptr<3>
  %own = llvm.getelementptr %slot[%lane] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %py = llvm.getelementptr %y[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
)" + body + "llvm.return\n}\n");
    if (!emulator)
      return "does not compile";
    emulator->setOrder(order, /*seed=*/1);
    y.assign(numThreads, -1);
    addBuffer(y, "y", /*isWritable=*/true);
    return launch(/*numBlocks=*/1, numThreads, /*sharedBytes=*/0, y.data());
  }

  /// Three warpgroups ask for registers.
  std::string runRegisters(unsigned low, unsigned middle, unsigned high) {
    auto set = [](unsigned count) {
      return std::string("nvvm.setmaxregister ") +
             (count < 168 ? "decrease " : "increase ") + std::to_string(count) +
             "\nllvm.br ^join\n";
    };
    return run("llvm.cond_br %isLow, ^low, ^others\n^low:\n" + set(low) +
                   "^others:\nllvm.cond_br %isMiddle, ^middle, ^high\n"
                   "^middle:\n" +
                   set(middle) + "^high:\n" + set(high) + "^join:\n",
               384);
  }

  std::vector<int32_t> y;
};

TEST_F(WarpgroupTest, RegistersMoveBetweenWarpgroups) {
  EXPECT_EQ(runRegisters(24, 240, 240), "");
  std::string error = runRegisters(40, 240, 240);
  EXPECT_TRUE(contains(error, "asks for 240 registers a thread, so that the "
                              "block's warpgroups have asked for 66560, but it "
                              "has 64512"))
      << error;
}

TEST_F(WarpgroupTest, RegistersAreOfAWholeWarpgroup) {
  const std::string set = "nvvm.setmaxregister decrease 24\n";
  std::string error = run("llvm.cond_br %isFirstWarp, ^set, ^join\n^set:\n" +
                              set + "llvm.br ^join\n^join:\n",
                          128);
  EXPECT_TRUE(contains(error, "32 threads, thread 0 the first, wait in "
                              "'nvvm.setmaxregister' at kernel.mlir:21:1 for "
                              "their warpgroup"))
      << error;
  error = run(set, 96);
  EXPECT_TRUE(contains(error, "takes a warpgroup of 128 threads, of which the "
                              "block lacks some"))
      << error;
}

/// A kernel must not rely on which lane it is.
TEST_F(WarpgroupTest, OneLaneOfAWarpIsElected) {
  for (Emulator::Order order :
       {Emulator::Order::Forward, Emulator::Order::Reverse}) {
    ASSERT_EQ(run("%is = nvvm.elect.sync -> i1\n"
                  "%result = llvm.zext %is : i1 to i32\n"
                  "llvm.store %result, %py : i32, !llvm.ptr<1>\n",
                  64, order),
              "");
    for (unsigned warp : {0, 1})
      EXPECT_EQ(
          std::count(y.begin() + warp * 32, y.begin() + warp * 32 + 32, 1), 1);
    EXPECT_EQ(y[0], order == Emulator::Order::Forward);
  }
}

const std::string kStore = "llvm.store %tid, %own : i32, !llvm.ptr<3>\n";
const std::string kLoad = "%result = llvm.load %own : !llvm.ptr<3> -> i32\n"
                          "llvm.store %result, %py : i32, !llvm.ptr<1>\n";

/// The first warp stores and arrives, the other one waits and loads.
std::string handOver(const std::string &write, const std::string &arrive,
                     const std::string &wait) {
  return "llvm.cond_br %isFirstWarp, ^write, ^read\n^write:\n" + write +
         arrive + "llvm.br ^join\n^read:\n" + wait + kLoad +
         "llvm.br ^join\n^join:\n";
}

const std::string kArrive =
    "nvvm.barrier.arrive id = %c1 number_of_threads = %c64\n";
const std::string kWait = "nvvm.barrier id = %c1 number_of_threads = %c64\n";

TEST_F(WarpgroupTest, WarpsArriveWithoutWaiting) {
  for (Emulator::Order order :
       {Emulator::Order::Forward, Emulator::Order::Reverse}) {
    ASSERT_EQ(run(handOver(kStore, kArrive, kWait), 64, order), "");
    EXPECT_EQ(y[63], 31);
  }
  // What a warp does after its arrival is not ordered.
  std::string error = run(handOver("", kArrive + kStore, kWait), 64);
  EXPECT_TRUE(contains(error, "data race on byte ")) << error;
  // Arriving is not waiting.
  error = run(handOver(kStore, kWait, kArrive), 64);
  EXPECT_TRUE(contains(error, "data race on byte ")) << error;
}

TEST_F(WarpgroupTest, WarpsArriveOnce) {
  // The first arrival meets the other warp, two more are left.
  std::string error =
      run(handOver(kStore, kArrive + kArrive + kArrive, kWait), 64);
  EXPECT_TRUE(contains(error, "at barrier 1, where its warp has arrived "
                              "already"))
      << error;
  error = run(handOver(kStore, "", kWait), 64);
  EXPECT_TRUE(contains(error, "32 threads, thread 32 the first, wait in "
                              "'nvvm.barrier'"))
      << error;
  error = run(handOver(kStore, kArrive,
                       "nvvm.barrier id = %c1 number_of_threads = %c32\n"),
              64);
  EXPECT_TRUE(contains(error, "differs in its kind or number of threads"))
      << error;
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

/// Both blocks of a cluster copy half of a tile to both, and free each other's
/// slot.
std::string multicastKernel(const std::string &copy,
                            const std::string &release) {
  return R"(
llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 128 : i64}
    : !llvm.array<256 x i8>
llvm.mlir.global internal @full() {addr_space = 3 : i32} : i64
llvm.mlir.global internal @empty() {addr_space = 3 : i32} : i64
llvm.func @kernel(%map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64},
                  %y: !llvm.ptr<1>)
    attributes {nvvm.kernel, nvvm.cluster_dim = array<i32: 2, 1, 1>} {
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c2 = llvm.mlir.constant(2 : i32) : i32
  %c4 = llvm.mlir.constant(4 : i32) : i32
  %c32 = llvm.mlir.constant(32 : i32) : i32
  %c128 = llvm.mlir.constant(128 : i32) : i32
  %bytes = llvm.mlir.constant(256 : i32) : i32
  %both = llvm.mlir.constant(3 : i16) : i16
  %isFirst = llvm.icmp "eq" %tid, %c0 : i32
  %isOdd = llvm.icmp "eq" %rank, %c1 : i32
  %other = llvm.xor %rank, %c1 : i32
  %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
  %full = llvm.mlir.addressof @full : !llvm.ptr<3>
  %empty = llvm.mlir.addressof @empty : !llvm.ptr<3>
  %half = llvm.getelementptr %tile[%rank] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<128 x i8>
  %halfAll = llvm.addrspacecast %half : !llvm.ptr<3> to !llvm.ptr<7>
  %row = llvm.mul %rank, %c4 : i32
  %own = llvm.getelementptr %tile[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
  %firstY = llvm.mul %rank, %c32 : i32
  %indexY = llvm.add %firstY, %tid : i32
  %py = llvm.getelementptr %y[%indexY] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i64
  llvm.cond_br %isFirst, ^init, ^meet
^init:
  nvvm.mbarrier.init %full, %c1 : !llvm.ptr<3>, i32
  nvvm.mbarrier.init %empty, %c2 : !llvm.ptr<3>, i32
  nvvm.fence.mbarrier.init
  llvm.br ^meet
^meet:
  nvvm.cluster.arrive {aligned}
  nvvm.cluster.wait {aligned}
  llvm.br ^turn(%c0 : i32)
^turn(%t: i32):
  %odd = llvm.xor %t, %c1 : i32
  llvm.cond_br %isFirst, ^copy, ^use
^copy:
  %free = nvvm.mbarrier.try_wait %empty, %odd : !llvm.ptr<3>, i32 -> i1
  nvvm.mbarrier.arrive.expect_tx %full, %bytes : !llvm.ptr<3>, i32
)" + copy +
         R"(
  llvm.br ^use
^use:
  %arrived = nvvm.mbarrier.try_wait %full, %t : !llvm.ptr<3>, i32 -> i1
  %v = llvm.load %own : !llvm.ptr<3> -> i64
  llvm.store %v, %py : i64, !llvm.ptr<1>
  nvvm.bar.warp.sync %all : i32
  llvm.cond_br %isFirst, ^release, ^next
^release:
)" + release +
         R"(
  llvm.br ^next
^next:
  %tnext = llvm.add %t, %c1 : i32
  %more = llvm.icmp "slt" %tnext, %c2 : i32
  llvm.cond_br %more, ^turn(%tnext : i32), ^end
^end:
  nvvm.cluster.arrive {aligned}
  nvvm.cluster.wait {aligned}
  llvm.return
}
)";
}

const std::string kCopy =
    "nvvm.cp.async.bulk.tensor.shared.cluster.global %halfAll, %map, %full, "
    "box[%c0, %row] multicast_mask = %both : !llvm.ptr<7>, !llvm.ptr\n";
const std::string kRelease =
    "%otherEmpty = nvvm.mapa %empty, %other : !llvm.ptr<3> -> !llvm.ptr<7>\n"
    "nvvm.mbarrier.arrive %empty : !llvm.ptr<3>\n"
    "nvvm.mbarrier.arrive %otherEmpty : !llvm.ptr<7>\n";

class MulticastTest : public TensorCoreTest {
protected:
  std::string run(const std::string &source) {
    compile(replaceOne(source, "  %c0 = llvm",
                       "  %all = llvm.mlir.constant(-1 : i32) : i32\n"
                       "  %c0 = llvm"));
    if (!emulator)
      return "does not compile";
    x.resize(8 * 16);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = i;
    y.assign(2 * 8 * 16, 0);
    addBuffer(x, "x", /*isWritable=*/false);
    addBuffer(y, "y", /*isWritable=*/true);
    TestMap map = mapOf(x.data(), /*rows=*/8, /*columns=*/16, /*boxRows=*/4,
                        /*boxColumns=*/16, /*swizzle=*/0);
    return launchClusters(/*cluster=*/2, /*numBlocks=*/2, /*numThreads=*/32,
                          map, y.data());
  }

  std::vector<uint16_t> x, y;
};

TEST_F(MulticastTest, CopiesGoToAllBlocksNamed) {
  ASSERT_EQ(run(multicastKernel(kCopy, kRelease)), "");
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_EQ(y[i], x[i % x.size()]);
}

/// A copy to both blocks needs both slots to be free.
TEST_F(MulticastTest, ReleasingOnlyTheOwnSlotIsFoundOut) {
  std::string source =
      multicastKernel(kCopy, "nvvm.mbarrier.arrive %empty : !llvm.ptr<3>\n");
  source = replaceOne(source, "init %empty, %c2", "init %empty, %c1");
  std::string error = run(source);
  EXPECT_TRUE(contains(error, "data race on byte ")) << error;
  EXPECT_TRUE(contains(error, "of 'tile' in block ")) << error;
}

TEST_F(MulticastTest, ABlockNotNamedGetsNothing) {
  std::string source = multicastKernel(kCopy, kRelease);
  source = replaceOne(source, "llvm.mlir.constant(3 : i16)",
                      "llvm.mlir.constant(1 : i16)");
  EXPECT_TRUE(contains(run(source), "barrier divergence"));
  source = replaceOne(source, "llvm.mlir.constant(1 : i16)",
                      "llvm.mlir.constant(7 : i16)");
  EXPECT_TRUE(contains(run(source), "names blocks 0x7 of a cluster of 2"));
}

} // namespace
