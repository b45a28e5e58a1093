//===- PipelineTest.cpp - Copies ahead of products ------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The loop of a product on Hopper, small: one warp copies tiles of both factors
// into two slots by turns, one warpgroup multiplies them. Each change to how
// they wait for each other has to be found.
//
//===----------------------------------------------------------------------===//

#include "TensorCoreTest.h"

using namespace bastile;
using namespace bastile::test;

namespace {

constexpr unsigned numRows = 64, numColumns = 16, numRegisters = 8;
constexpr unsigned tileDepth = 64;

const std::string kArrive = "nvvm.mbarrier.arrive %emptyAt : !llvm.ptr<3>\n";
const std::string kCommit = "nvvm.wgmma.commit.group.sync.aligned\n";
const std::string kWait = "%sum:8 = tile.wgmma_wait 0 of " + results("%d3", 8) +
                          " : " + types("f32", 8) + "\n";
const std::string kWaitForCopies =
    "%arrived = nvvm.mbarrier.try_wait %fullAt, %parity : "
    "!llvm.ptr<3>, i32 -> i1\n";
const std::string kRelease = "llvm.cond_br %isFirst, ^release, ^next\n"
                             "^release:\n" +
                             kArrive + "llvm.br ^next\n";

/// The products of one tile, to be waited for.
std::string products() {
  std::string text =
      "%f:8 = tile.wgmma_fence of " +
      list(8, [](unsigned i) { return "%s" + std::to_string(i); }) + " : " +
      types("f32", 8) + "\n";
  std::string accumulators = results("%f", 8);
  for (unsigned step = 0; step < 4; ++step) {
    std::string offset = "offset = " + std::to_string(step * 32);
    ProductText product;
    product.name = "%d" + std::to_string(step);
    product.columns = numColumns;
    product.accumulators = accumulators;
    product.a = "%a";
    product.aMatrix = offset + ", stride = 1024, swizzle = 128";
    product.b = "%b";
    product.bMatrix = offset + ", stride = 1024, swizzle = 128";
    text += product.print();
    accumulators = results(product.name, 8);
  }
  return text;
}

std::string kernel() {
  std::string states, stateTypes, sums, stores;
  for (unsigned i = 0; i < numRegisters; ++i) {
    std::string n = std::to_string(i);
    states += ", %s" + n + ": f32";
    stateTypes += ", f32";
    sums += ", %sum#" + n;
    stores += "%p" + n + " = llvm.getelementptr %py[" + n +
              "] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32\nllvm.store %s" + n +
              ", %p" + n + " : f32, !llvm.ptr<1>\n";
  }
  std::string zeros = ", " + types("%zero", numRegisters);
  return R"(
llvm.mlir.global internal @slots() {addr_space = 3 : i32, alignment = 1024 : i64}
    : !llvm.array<20480 x i8>
llvm.mlir.global internal @full() {addr_space = 3 : i32} : !llvm.array<2 x i64>
llvm.mlir.global internal @empty() {addr_space = 3 : i32} : !llvm.array<2 x i64>
llvm.func @kernel(%mapA: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64},
                  %mapB: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64},
                  %y: !llvm.ptr<1>, %tiles: i32) attributes {nvvm.kernel} {
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %zero = llvm.mlir.constant(0.0 : f32) : f32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %c8 = llvm.mlir.constant(8 : i32) : i32
  %c64 = llvm.mlir.constant(64 : i32) : i32
  %c128 = llvm.mlir.constant(128 : i32) : i32
  %c160 = llvm.mlir.constant(160 : i32) : i32
  %slotBytes = llvm.mlir.constant(10240 : i32) : i32
  %expected = llvm.mlir.constant(10240 : i32) : i32
  %slots = llvm.mlir.addressof @slots : !llvm.ptr<3>
  %full = llvm.mlir.addressof @full : !llvm.ptr<3>
  %empty = llvm.mlir.addressof @empty : !llvm.ptr<3>
  %full1 = llvm.getelementptr %full[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
  %empty1 = llvm.getelementptr %empty[1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i64
  %noMap = llvm.addrspacecast %y : !llvm.ptr<1> to !llvm.ptr
  %isFirst = llvm.icmp "eq" %tid, %c0 : i32
  %isConsumer = llvm.icmp "slt" %tid, %c128 : i32
  %isProducer = llvm.icmp "slt" %tid, %c160 : i32
  llvm.cond_br %isFirst, ^init, ^meet
^init:
  nvvm.mbarrier.init %full, %c1 : !llvm.ptr<3>, i32
  nvvm.mbarrier.init %full1, %c1 : !llvm.ptr<3>, i32
  nvvm.mbarrier.init %empty, %c1 : !llvm.ptr<3>, i32
  nvvm.mbarrier.init %empty1, %c1 : !llvm.ptr<3>, i32
  nvvm.fence.mbarrier.init
  llvm.br ^meet
^meet:
  nvvm.barrier0
  llvm.cond_br %isConsumer, ^consume, ^produce

^produce:
  nvvm.setmaxregister decrease 24
  llvm.cond_br %isProducer, ^elect, ^exit
^elect:
  %isLeader = nvvm.elect.sync -> i1
  llvm.cond_br %isLeader, ^fill(%c0 : i32), ^exit
^fill(%t: i32):
  %more = llvm.icmp "slt" %t, %tiles : i32
  llvm.cond_br %more, ^copy, ^exit
^copy:
  %pslot = llvm.and %t, %c1 : i32
  %pround = llvm.lshr %t, %c1 : i32
  %pparity = llvm.and %pround, %c1 : i32
  %pother = llvm.xor %pparity, %c1 : i32
  %pfullAt = llvm.getelementptr %full[%pslot] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
  %pemptyAt = llvm.getelementptr %empty[%pslot] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
  %poffset = llvm.mul %pslot, %slotBytes : i32
  %pa = llvm.getelementptr %slots[%poffset] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
  %pb = llvm.getelementptr %pa[8192] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
  %k = llvm.mul %t, %c64 : i32
  %free = nvvm.mbarrier.try_wait %pemptyAt, %pother : !llvm.ptr<3>, i32 -> i1
  nvvm.mbarrier.arrive.expect_tx %pfullAt, %expected : !llvm.ptr<3>, i32
  nvvm.cp.async.bulk.tensor.shared.cluster.global %pa, %mapA, %pfullAt, box[%k, %c0] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
  nvvm.cp.async.bulk.tensor.shared.cluster.global %pb, %mapB, %pfullAt, box[%k, %c0] {isCTAOnly = true} : !llvm.ptr<3>, !llvm.ptr
  %tnext = llvm.add %t, %c1 : i32
  llvm.br ^fill(%tnext : i32)

^consume:
  nvvm.setmaxregister increase 232
  llvm.br ^loop(%c0)" +
         zeros + " : i32" + stateTypes + R"()
^loop(%u: i32)" +
         states + R"():
  %left = llvm.icmp "slt" %u, %tiles : i32
  llvm.cond_br %left, ^multiply, ^store
^multiply:
  %slot = llvm.and %u, %c1 : i32
  %round = llvm.lshr %u, %c1 : i32
  %parity = llvm.and %round, %c1 : i32
  %fullAt = llvm.getelementptr %full[%slot] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
  %emptyAt = llvm.getelementptr %empty[%slot] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i64
  %offset = llvm.mul %slot, %slotBytes : i32
  %a = llvm.getelementptr %slots[%offset] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
  %b = llvm.getelementptr %a[8192] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
)" + kWaitForCopies +
         products() + kCommit + kWait + kRelease + R"(
^next:
  %unext = llvm.add %u, %c1 : i32
  llvm.br ^loop(%unext)" +
         sums + " : i32" + stateTypes + R"()
^store:
  %first = llvm.mul %tid, %c8 : i32
  %py = llvm.getelementptr %y[%first] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
)" + stores +
         R"(
  llvm.br ^exit
^exit:
  llvm.return
}
)";
}

class PipelineTest : public TensorCoreTest {
protected:
  /// Runs the kernel on random factors; returns its error. The number of sums
  /// that differ from a plain loop's is then in `numWrong`.
  std::string run(const std::string &source, unsigned depth = 7 * tileDepth,
                  Emulator::Order order = Emulator::Order::Forward,
                  uint8_t swizzle = 128) {
    compile(source);
    if (!emulator)
      return "does not compile";
    emulator->setOrder(order, /*seed=*/3);
    Matrix a(numRows, depth, 1), b(numColumns, depth, 2);
    std::vector<char> aBytes = encode(kBF16, a), bBytes = encode(kBF16, b);
    std::vector<float> y(128 * numRegisters, -1);
    addBuffer(aBytes, "a", /*isWritable=*/false);
    addBuffer(bBytes, "b", /*isWritable=*/false);
    addBuffer(y, "y", /*isWritable=*/true);
    TestMap mapA =
        mapOf(aBytes.data(), numRows, depth, numRows, tileDepth, swizzle);
    TestMap mapB =
        mapOf(bBytes.data(), numColumns, depth, numColumns, tileDepth, swizzle);
    int32_t tiles = llvm::divideCeil(depth, tileDepth);
    std::string error = launch(/*numBlocks=*/1, /*numThreads=*/256,
                               /*sharedBytes=*/0, mapA, mapB, y.data(), tiles);
    numWrong = 0;
    for (unsigned thread = 0; thread < 128; ++thread)
      for (unsigned i = 0; i < numRegisters; ++i) {
        auto [row, column] = sumAt(thread, i);
        numWrong += y[thread * numRegisters + i] != dot(a, row, b, column);
      }
    return error;
  }

  unsigned numWrong = 0;
};

TEST_F(PipelineTest, MultipliesInEveryOrder) {
  for (Emulator::Order order :
       {Emulator::Order::Forward, Emulator::Order::Reverse,
        Emulator::Order::Random}) {
    EXPECT_EQ(run(kernel(), 7 * tileDepth, order), "");
    EXPECT_EQ(numWrong, 0U);
  }
}

/// A box beyond the end of a row is zero there.
TEST_F(PipelineTest, TilesMayReachBeyondTheEnd) {
  EXPECT_EQ(run(kernel(), 2 * tileDepth + 24), "");
  EXPECT_EQ(numWrong, 0U);
}

/// The last products are still under way when their sums are stored.
TEST_F(PipelineTest, WaitingForTooFewGroupsIsFoundOut) {
  std::string error =
      run(replaceOne(kernel(), "tile.wgmma_wait 0 ", "tile.wgmma_wait 1 "),
          tileDepth);
  EXPECT_TRUE(contains(error, "which no 'tile.wgmma_wait' has waited for"))
      << error;
}

TEST_F(PipelineTest, AMissingWaitForSumsIsFoundOut) {
  std::string source = replaceOne(kernel(), kWait, "");
  for (unsigned i = 0; i < numRegisters; ++i) {
    std::string n = std::to_string(i);
    source = replaceOne(source, "%sum#" + n, "%d3#" + n);
  }
  std::string error = run(source, tileDepth);
  EXPECT_TRUE(contains(error, "thread 0 reads in 'llvm.store' at")) << error;
  EXPECT_TRUE(
      contains(error, "a register of the product begun in 'tile.wgmma'"))
      << error;
  EXPECT_TRUE(contains(error, "which no 'tile.wgmma_wait' has waited for"))
      << error;
}

TEST_F(PipelineTest, AMissingCommitIsFoundOut) {
  std::string error = run(replaceOne(kernel(), kCommit, ""), tileDepth);
  EXPECT_TRUE(contains(error, "which no 'nvvm.wgmma.commit.group.sync.aligned' "
                              "has added to a group"))
      << error;
}

TEST_F(PipelineTest, NotWaitingForCopiesIsFoundOut) {
  std::string error = run(replaceOne(kernel(), kWaitForCopies, ""), 64,
                          Emulator::Order::Reverse);
  EXPECT_TRUE(contains(error, "data race on byte 0 of 'slots': a product of "
                              "warpgroup 0 reads it in 'tile.wgmma'"))
      << error;
  EXPECT_TRUE(contains(error, "copies for the mbarrier at byte 0 of 'full' "
                              "wrote it before, and nothing has waited"))
      << error;
  // The other way around, the copy comes late.
  error = run(replaceOne(kernel(), kWaitForCopies, ""), 64);
  EXPECT_TRUE(contains(error, "data race on byte 0 of 'slots': a copy that "
                              "thread 128 begins writes it in"))
      << error;
  EXPECT_TRUE(contains(error, "products of warpgroup 0 read it before"))
      << error;
}

/// The last copy is still under way when the block ends.
TEST_F(PipelineTest, CopyingTooMuchIsFoundOut) {
  std::string error =
      run(replaceOne(kernel(), "%more = llvm.icmp \"slt\" %t, %tiles",
                     "%more = llvm.icmp \"sle\" %t, %tiles"));
  EXPECT_TRUE(contains(error,
                       "block 0 may exit before thread 128 is done with "
                       "its shared memory in 'nvvm.cp.async.bulk.tensor"))
      << error;
}

TEST_F(PipelineTest, AWrongPhaseOfCopiesIsFoundOut) {
  std::string wrong =
      replaceOne(kernel(), kWaitForCopies,
                 "%otherParity = llvm.xor %parity, %c1 : i32\n" +
                     replaceOne(kWaitForCopies, "%parity", "%otherParity"));
  EXPECT_TRUE(contains(run(wrong), "data race on byte 0 of 'slots'"));
}

TEST_F(PipelineTest, AWrongPhaseOfSlotsIsFoundOut) {
  std::string error =
      run(replaceOne(kernel(), "%pemptyAt, %pother", "%pemptyAt, %pparity"));
  EXPECT_TRUE(contains(error, "barrier divergence")) << error;
  EXPECT_TRUE(contains(error, "for messages of parity 0")) << error;
}

TEST_F(PipelineTest, NotWaitingForSlotsIsFoundOut) {
  std::string error =
      run(replaceOne(kernel(),
                     "%free = nvvm.mbarrier.try_wait %pemptyAt, %pother : "
                     "!llvm.ptr<3>, i32 -> i1\n",
                     ""),
          3 * tileDepth, Emulator::Order::Reverse);
  EXPECT_TRUE(contains(error, "data race on byte 0 of 'slots': a copy that "))
      << error;
}

/// The slot is free for the copies while the products still read it.
TEST_F(PipelineTest, ASlotReleasedEarlyIsFoundOut) {
  std::string source = replaceOne(kernel(), kWait, "");
  source = replaceOne(source, "^next:\n", "^next:\n" + kWait);
  std::string error = run(source, 3 * tileDepth);
  EXPECT_TRUE(contains(error, "data race on byte 0 of 'slots': a copy that "
                              "thread 128 begins writes it in "
                              "'nvvm.cp.async.bulk.tensor.shared.cluster."
                              "global'"))
      << error;
  EXPECT_TRUE(contains(error, "products of warpgroup 0 read it before, and "
                              "nothing has waited for them since"))
      << error;
}

TEST_F(PipelineTest, AWrongSwizzleGivesWrongNumbers) {
  EXPECT_EQ(run(kernel(), tileDepth, Emulator::Order::Forward, /*swizzle=*/0),
            "");
  EXPECT_GT(numWrong, 500U);
}

std::string expecting(const std::string &bytes) {
  return replaceOne(kernel(), "%expected = llvm.mlir.constant(10240 : i32)",
                    "%expected = llvm.mlir.constant(" + bytes + " : i32)");
}

TEST_F(PipelineTest, ExpectingTooManyBytesIsFoundOut) {
  std::string error = run(expecting("10256"));
  EXPECT_TRUE(contains(error, "barrier divergence")) << error;
  EXPECT_TRUE(contains(error, "128 threads, thread 0 the first, wait in "
                              "'nvvm.mbarrier.try_wait'"))
      << error;
}

/// The first copy completes the phase, the second one comes late.
TEST_F(PipelineTest, ExpectingTooFewBytesIsFoundOut) {
  std::string error = run(expecting("8192"));
  EXPECT_TRUE(contains(error, "data race on byte 8192 of 'slots'")) << error;
  error = run(expecting("9216"));
  EXPECT_TRUE(contains(error, "barrier divergence")) << error;
}

TEST_F(PipelineTest, ArrivingTooOftenIsFoundOut) {
  const std::string expect = "nvvm.mbarrier.arrive.expect_tx %pfullAt, "
                             "%expected : !llvm.ptr<3>, i32\n";
  std::string error = run(replaceOne(kernel(), expect, expect + expect));
  EXPECT_TRUE(contains(error, "thread 128 arrives in "
                              "'nvvm.mbarrier.arrive.expect_tx'"))
      << error;
  EXPECT_TRUE(contains(error, "at an mbarrier at which all have arrived"))
      << error;
  // Two phases of an empty slot end at once, so that its parity stays the same.
  error = run(replaceOne(kernel(), kRelease,
                         replaceOne(kRelease, kArrive, kArrive + kArrive)));
  EXPECT_TRUE(contains(error, "barrier divergence")) << error;
}

TEST_F(PipelineTest, BarriersAreInitializedAheadOfTheirUse) {
  std::string error =
      run(replaceOne(kernel(), "  nvvm.fence.mbarrier.init\n", ""));
  EXPECT_TRUE(contains(error, "by thread 128 arrives at an mbarrier that "
                              "thread 0 has initialized without a fence"))
      << error;
  error = run(replaceOne(kernel(), "  nvvm.barrier0\n", ""));
  EXPECT_TRUE(contains(error, "uses an mbarrier that thread 0 initializes, and "
                              "no barrier lies in between"))
      << error;
}

TEST_F(PipelineTest, AWarpgroupStaysTogether) {
  std::string error = run(replaceOne(kernel(), kCommit,
                                     "llvm.cond_br %isFirst, ^one, ^join\n"
                                     "^one:\n" +
                                         kCommit + "llvm.br ^join\n^join:\n"));
  EXPECT_TRUE(contains(error, "divergence in warpgroup 0: thread 1 is in "
                              "'tile.wgmma_wait'"))
      << error;
}

TEST_F(PipelineTest, CopiesNeedAMap) {
  std::string error = run(
      replaceOne(kernel(), "%pa, %mapA, %pfullAt", "%pa, %noMap, %pfullAt"));
  EXPECT_TRUE(contains(error, "by thread 128 reads a map that is none"))
      << error;
}

} // namespace
