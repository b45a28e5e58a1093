//===- ProxyTest.cpp - Threads and engines that share memory --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Threads write shared memory that a product or a copy of a tensor reads. They
// have to fence the generic from the async proxy, and to wait before they write
// it again.
//
//===----------------------------------------------------------------------===//

#include "TensorCoreTest.h"

using namespace bastile;
using namespace bastile::test;

namespace {

const std::string kFence = "nvvm.fence.proxy {kind = #nvvm.proxy_kind<async."
                           "shared>, space = #nvvm.shared_space<cta>}\n";
const std::string kBarrier = "nvvm.barrier0\n";

//===----------------------------------------------------------------------===//
// Copies from shared memory
//===----------------------------------------------------------------------===//

const std::string kWrite = "llvm.store %value, %place : f32, !llvm.ptr<3>\n";
const std::string kStore =
    "nvvm.cp.async.bulk.tensor.global.shared.cta %map, %tile, box[%c8, %c3] "
    ": !llvm.ptr, !llvm.ptr<3>\n";
const std::string kCommit = "nvvm.cp.async.bulk.commit.group\n";
const std::string kWait = "nvvm.cp.async.bulk.wait_group 0\n";
/// The first thread alone stores.
const std::string kFirst = "llvm.cond_br %isFirst, ^first, ^rest\n^first:\n";
const std::string kRest = "llvm.br ^rest\n^rest:\n";

/// 64 threads write a tile of 8 x 16 16-bit numbers, a float's bits each.
std::string storeKernel(const std::string &body) {
  return R"(
llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 1024 : i64}
    : !llvm.array<64 x f32>
llvm.func @kernel(%map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64})
    attributes {nvvm.kernel} {
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c3 = llvm.mlir.constant(3 : i32) : i32
  %c8 = llvm.mlir.constant(8 : i32) : i32
  %isFirst = llvm.icmp "eq" %tid, %c0 : i32
  %value = llvm.sitofp %tid : i32 to f32
  %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
  %place = llvm.getelementptr %tile[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, f32
)" + body +
         "llvm.return\n}\n";
}

class TensorStoreTest : public TensorCoreTest {
protected:
  /// Stores the tile to columns 8 to 23 of rows 3 to 10 of a matrix of 9 x 40
  /// or so.
  std::string run(const std::string &body, uint8_t swizzle = 0,
                  int64_t columns = 40) {
    compile(storeKernel(body));
    if (!emulator)
      return "does not compile";
    y.assign(9 * columns, 0);
    addBuffer(y, "y", /*isWritable=*/true);
    TestMap map = mapOf(y.data(), /*rows=*/9, columns, /*boxRows=*/8,
                        /*boxColumns=*/16, swizzle);
    return launch(/*numBlocks=*/1, /*numThreads=*/64, /*sharedBytes=*/0, map);
  }

  std::vector<uint16_t> y;
};

const std::string kStoreTile =
    kWrite + kFence + kBarrier + kFirst + kStore + kCommit + kWait + kRest;

TEST_F(TensorStoreTest, StoresWhatLiesInTheTensor) {
  for (uint8_t swizzle : {0, 32})
    for (unsigned columns : {40U, 16U}) {
      ASSERT_EQ(run(kStoreTile, swizzle, columns), "");
      for (unsigned row = 0; row < 9; ++row)
        for (unsigned column = 0; column < columns; ++column) {
          uint16_t expected = 0;
          if (row >= 3 && column >= 8 && column < 24) {
            // Threads have written the rows of 32 bytes in order; a swizzle of
            // 32 bytes exchanges the halves of rows 4 to 7.
            unsigned byte = (row - 3) * 32 + (column - 8) * 2;
            if (swizzle == 32)
              byte ^= byte >> 3 & 16;
            float value = byte / 4;
            uint32_t bits;
            std::memcpy(&bits, &value, 4);
            expected = bits >> byte % 4 * 8;
          }
          EXPECT_EQ(y[row * columns + column], expected)
              << row << ' ' << column;
        }
    }
}

TEST_F(TensorStoreTest, AMissingFenceIsFoundOut) {
  std::string error = run(replaceOne(kStoreTile, kFence, ""));
  EXPECT_EQ(error,
            "kernel 'kernel', block 0: missing fence for byte 0 of 'tile': a "
            "copy that thread 0 begins reads it in 'nvvm.cp.async.bulk.tensor."
            "global.shared.cta' at kernel.mlir:18:1, thread 0 wrote it before, "
            "and that thread has run no fence between the generic and the "
            "async proxy since");
}

/// The thread that stores cannot fence for the others.
TEST_F(TensorStoreTest, AFenceOfAnotherThreadIsNoFence) {
  std::string error = run(kWrite + kBarrier + kFirst + kFence + kStore +
                          kCommit + kWait + kRest);
  EXPECT_TRUE(contains(error, "missing fence for byte 4 of 'tile'")) << error;
}

TEST_F(TensorStoreTest, AFenceAheadOfTheWriteIsNoFence) {
  std::string error = run(kFence + kWrite + kBarrier + kFirst + kStore +
                          kCommit + kWait + kRest);
  EXPECT_TRUE(contains(error, "missing fence for byte 0 of 'tile'")) << error;
}

TEST_F(TensorStoreTest, AMissingBarrierIsFoundOut) {
  std::string error = run(replaceOne(kStoreTile, kBarrier, ""));
  // Thread 0 stores ahead of the others' writes.
  EXPECT_TRUE(contains(error, "data race on byte ")) << error;
  EXPECT_TRUE(contains(error, "stores of tensors by thread 0 read it before"))
      << error;
}

TEST_F(TensorStoreTest, WritingAgainNeedsTheWait) {
  const std::string again = kBarrier + kWrite;
  EXPECT_EQ(run(kStoreTile + again), "");
  std::string late = kWrite + kFence + kBarrier + kFirst + kStore + kCommit +
                     kRest + again + "llvm.cond_br %isFirst, ^end, ^exit\n" +
                     "^end:\n" + kWait + "llvm.br ^exit\n^exit:\n";
  std::string error = run(late);
  EXPECT_TRUE(contains(error, "data race on byte 0 of 'tile': thread 0 writes "
                              "it in 'llvm.store'"))
      << error;
  EXPECT_TRUE(contains(error, "stores of tensors by thread 0 read it before, "
                              "and nothing has waited for them since"))
      << error;
  // Only the reads have to be over.
  EXPECT_EQ(run(replaceOne(kStoreTile, kWait,
                           "nvvm.cp.async.bulk.wait_group 0 {read}\n") +
                again),
            "");
}

TEST_F(TensorStoreTest, AMissingCommitOrWaitIsFoundOut) {
  for (const std::string &line : {kCommit, kWait}) {
    std::string error = run(replaceOne(kStoreTile, line, ""));
    EXPECT_TRUE(contains(error, "thread 0 exits before it has waited for its "
                                "stores of tensors"))
        << error;
  }
}

TEST_F(TensorStoreTest, BoxesBeginWithTheirPattern) {
  std::string error =
      run("%far = llvm.getelementptr %tile[4] : (!llvm.ptr<3>) -> "
          "!llvm.ptr<3>, f32\n" +
          replaceOne(kStoreTile, "%tile,", "%far,"));
  EXPECT_TRUE(contains(error, "whose place in shared memory is no multiple of "
                              "128"))
      << error;
}

TEST_F(TensorStoreTest, TensorsLieInABuffer) {
  compile(storeKernel(kStoreTile));
  std::vector<uint16_t> data(9 * 40);
  emulator->registerBuffer(data.data(), 5 * 40 * 2, "y", /*isWritable=*/true);
  TestMap map = mapOf(data.data(), 9, 40, 8, 16, 0);
  std::string error = launch(1, 64, 0, map);
  EXPECT_TRUE(contains(error, "out-of-bounds store of ")) << error;
  EXPECT_TRUE(contains(error, "at byte 256 of 'y', which has 400")) << error;
}

//===----------------------------------------------------------------------===//
// Products of what threads have written
//===----------------------------------------------------------------------===//

const std::string kZeroA = "llvm.store %none, %rowA : vector<8xi32>, "
                           "!llvm.ptr<3>\n";
const std::string kZeroB = "llvm.store %none, %rowB : vector<2xi32>, "
                           "!llvm.ptr<3>\n";

std::string multiply() {
  ProductText product;
  product.name = "%d";
  product.columns = 16;
  product.a = "%a";
  product.aMatrix = "stride = 256, leading = 128";
  product.b = "%b";
  product.bMatrix = "stride = 256, leading = 128";
  return "\"tile.wgmma_fence\"() : () -> ()\n" + product.print() +
         "nvvm.wgmma.commit.group.sync.aligned\n";
}
const std::string kWaitForSums = "%sum:8 = tile.wgmma_wait 0 of " +
                                 results("%d", 8) + " : " + types("f32", 8) +
                                 "\n";

/// 128 threads write the factors of a product.
std::string productKernel(const std::string &body) {
  return R"(
llvm.mlir.global internal @a() {addr_space = 3 : i32, alignment = 128 : i64}
    : !llvm.array<4096 x i8>
llvm.mlir.global internal @b() {addr_space = 3 : i32, alignment = 128 : i64}
    : !llvm.array<1024 x i8>
llvm.func @kernel() attributes {nvvm.kernel} {
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %none = llvm.mlir.zero : vector<8xi32>
  %few = llvm.mlir.zero : vector<2xi32>
  %a = llvm.mlir.addressof @a : !llvm.ptr<3>
  %b = llvm.mlir.addressof @b : !llvm.ptr<3>
  %rowA = llvm.getelementptr %a[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<32 x i8>
  %rowB = llvm.getelementptr %b[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, !llvm.array<8 x i8>
)" + body +
         "llvm.return\n}\n";
}

class FactorTest : public TensorCoreTest {
protected:
  std::string run(const std::string &body) {
    compile(productKernel(body));
    if (!emulator)
      return "does not compile";
    return launch(/*numBlocks=*/1, /*numThreads=*/128, /*sharedBytes=*/0);
  }
};

const std::string kWriteFactors = kZeroA + replaceOne(kZeroB, "%none", "%few");

TEST_F(FactorTest, ProductsReadWhatThreadsWrite) {
  EXPECT_EQ(run(kWriteFactors + kFence + kBarrier + multiply() + kWaitForSums),
            "");
  // Threads may write again once the product is over.
  EXPECT_EQ(run(kWriteFactors + kFence + kBarrier + multiply() + kWaitForSums +
                kBarrier + kWriteFactors),
            "");
}

TEST_F(FactorTest, AMissingFenceIsFoundOut) {
  std::string error = run(kWriteFactors + kBarrier + multiply() + kWaitForSums);
  EXPECT_TRUE(contains(error, "missing fence for byte 0 of 'a': a product of "
                              "warpgroup 0 reads it in 'tile.wgmma'"))
      << error;
}

TEST_F(FactorTest, AMissingBarrierIsFoundOut) {
  std::string error = run(kWriteFactors + kFence + multiply() + kWaitForSums);
  EXPECT_TRUE(contains(error, "data race on byte 0 of 'a': a product of "
                              "warpgroup 0 reads it in 'tile.wgmma'"))
      << error;
  EXPECT_TRUE(contains(error, "thread 0 wrote it before, and no barrier"))
      << error;
}

TEST_F(FactorTest, WritingAgainNeedsTheWait) {
  std::string error = run(kWriteFactors + kFence + kBarrier + multiply() +
                          kBarrier + kWriteFactors + kWaitForSums);
  EXPECT_TRUE(contains(error, "data race on byte 0 of 'a': thread 0 writes it "
                              "in 'llvm.store'"))
      << error;
  EXPECT_TRUE(contains(error, "products of warpgroup 0 read it before"))
      << error;
}

/// A warp's wait says that the products are over, and nothing of the stores of
/// the other warps.
TEST_F(FactorTest, AWaitForProductsIsNoBarrier) {
  std::string error =
      run(kWriteFactors + kFence + kBarrier + multiply() + kWaitForSums +
          "%next = llvm.getelementptr %a[4064] : (!llvm.ptr<3>) -> "
          "!llvm.ptr<3>, i8\nllvm.store %few, %next : vector<2xi32>, "
          "!llvm.ptr<3>\n");
  EXPECT_TRUE(contains(error, "data race on byte 4064 of 'a'")) << error;
}

} // namespace
