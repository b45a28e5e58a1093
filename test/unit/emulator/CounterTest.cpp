//===- CounterTest.cpp - Programs that wait for each other ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Programs of one launch add to the same numbers in turn, by counters in
// memory, and what becomes of them if a wait or a count is wrong.
//
//===----------------------------------------------------------------------===//

#include "CompiledTest.h"
#include "EmulatorTest.h"
#include "TensorCoreTest.h"

using namespace bastile;
using namespace bastile::test;
using runtime::ElementType;

namespace {

/// Adds the rows of x, one program for each row and eight columns. The buffer
/// is there to leave room for one block only on each of two multiprocessors.
constexpr char kSum[] = R"mlir(
!row = tensor<1x8xf32, #tile.mma<warps = 1>>
func.func @sum(%x: tensor<?x?xf32>) -> tensor<?xf32> {
  %y, %turns = tile.launch [@sum_of_rows](%x) : (tensor<?x?xf32>) -> (tensor<?xf32>, tensor<?xi32>)
  return %y : tensor<?xf32>
}
tile.program @sum_of_rows(%rows: index, %n: index,
    %x: memref<?x?xf32, strided<[?, 1]>> {tile.dimensions = ["rows", "n"], tile.readonly},
    %y: memref<?xf32> {tile.dimensions = ["n"]},
    %turns: memref<?xi32> {tile.counters = {n = 8 : i64}})
    attributes {dimensions = ["rows", "n"], programs = {rows = 1 : i64, n = 8 : i64},
                schedule = #tile.launch<threads = 32>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %room = tile.buffer {offset = 0 : i64} : memref<1x512x128xbf16, #tile.shared<swizzle = 128>>
  %tiles = arith.ceildivui %n, %c8 : index
  %parts = arith.muli %tiles, %rows : index
  %first = tile.program_id
  %programs = tile.program_count
  scf.for %program = %first to %parts step %programs {
    %turn = arith.divui %program, %tiles : index
    %tile = arith.remui %program, %tiles : index
    %column = arith.muli %tile, %c8 : index
    %own = tile.load %x[%turn, %column] {invariant} : memref<?x?xf32, strided<[?, 1]>> -> !row
    %adds = arith.cmpi ugt, %turn, %c0 : index
    %sum = scf.if %adds -> (!row) {
      tile.await_count %turns[%tile] reaches %turn : memref<?xi32>
      %others = tile.load %y[%column] : memref<?xf32> -> !row
      %both = arith.addf %others, %own : !row
      scf.yield %both : !row
    } else {
      scf.yield %own : !row
    }
    tile.store %sum, %y[%column] : !row, memref<?xf32>
    %next = arith.addi %turn, %c1 : index
    tile.release_count %turns[%tile] to %next : memref<?xi32>
  }
  tile.return
}
)mlir";

class CounterTest : public CompiledTest {
protected:
  /// Adds rows of numbers whose sum depends on their order; returns the error.
  /// Without one, how many of the results have other bits than sums in the
  /// rows' order is in `numWrong`.
  std::string add(const std::string &text, Emulator::Order order,
                  int64_t rows = 7, int64_t columns = 21) {
    compile(text);
    if (HasFatalFailure())
      return "does not compile";
    Buffer x(ElementType::F32, rows, columns), y(ElementType::F32, 1, columns);
    std::mt19937 random(1);
    x.fill(random);
    std::string error = run({x.view()}, {y.view(/*isVector=*/true)}, order);
    if (!error.empty())
      return error;
    numWrong = 0;
    for (int64_t column = 0; column < columns; ++column) {
      auto sum = static_cast<float>(x.get(0, column));
      for (int64_t row = 1; row < rows; ++row)
        sum += static_cast<float>(x.get(row, column));
      numWrong += y.get(0, column) != sum;
    }
    return "";
  }

  int numWrong = 0;
};

TEST_F(CounterTest, SumsHaveTheSameBitsInEveryOrder) {
  // Without a buffer, all programs run at once.
  const std::string alone = replaceOne(
      kSum,
      "  %room = tile.buffer {offset = 0 : i64} : memref<1x512x128xbf16, "
      "#tile.shared<swizzle = 128>>\n",
      "");
  // Each of two blocks goes through every second part.
  const std::string persistent =
      replaceOne(kSum, "<threads = 32>", "<threads = 32, persistent = 1>");
  for (const std::string &text : {std::string(kSum), alone, persistent})
    for (Emulator::Order order : kOrders) {
      EXPECT_EQ(add(text, order), "");
      EXPECT_EQ(numWrong, 0);
    }
}

TEST_F(CounterTest, MistakesAreFoundOut) {
  struct Mistake {
    const char *from, *to, *found;
    Emulator::Order order = Emulator::Order::Forward;
  };
  for (const Mistake &one : std::initializer_list<Mistake>{
           {"      tile.await_count %turns[%tile] reaches %turn : "
            "memref<?xi32>\n",
            "", "of 'output': thread 0 reads it in 'llvm.intr.masked.load'"},
           {"      tile.await_count %turns[%tile] reaches %turn : "
            "memref<?xi32>\n",
            "", "data race on byte ", Emulator::Order::Reverse},
           {"    tile.release_count %turns[%tile] to %next : memref<?xi32>\n",
            "", "for count 1 of a counter at 0; "},
           // One release too early.
           {"    tile.store %sum, %y[%column] : !row, memref<?xf32>\n"
            "    %next = arith.addi %turn, %c1 : index\n"
            "    tile.release_count %turns[%tile] to %next : memref<?xi32>\n",
            "    %next = arith.addi %turn, %c1 : index\n"
            "    tile.release_count %turns[%tile] to %next : memref<?xi32>\n"
            "    tile.store %sum, %y[%column] : !row, memref<?xf32>\n",
            "and no count that was released after that has been awaited"},
           // The wrong counts: one that nobody releases, one that comes too
           // early, one that was there before.
           {"reaches %turn", "reaches %program", "deadlock: "},
           {"reaches %turn", "reaches %c1", "which is no more than it was, 7",
            Emulator::Order::Reverse},
           {"to %next :", "to %turn :", "which is no more than it was, 0"},
           {"%next = arith.addi %turn, %c1", "%next = arith.addi %turn, %c2",
            "which is no more than it was, ", Emulator::Order::Reverse},
           // Another tile's counter.
           {"release_count %turns[%tile]", "release_count %turns[%c0]",
            "which is no more than it was, 1"},
           {"await_count %turns[%tile]", "await_count %turns[%c0]",
            "data race on byte ", Emulator::Order::Reverse},
           // Who waits for a later program keeps it from starting.
           {"%turn = arith.divui %program, %tiles : index",
            "%before = arith.divui %program, %tiles : index\n"
            "    %rest = arith.subi %rows, %before : index\n"
            "    %turn = arith.subi %rest, %c1 : index",
            "A program may wait only for programs with smaller numbers"},
       }) {
    SCOPED_TRACE(std::string(one.from) + " -> " + one.to);
    std::string error = add(replaceOne(kSum, one.from, one.to), one.order);
    EXPECT_TRUE(contains(error, one.found)) << error;
  }
}

/// A persistent program whose block goes through its parts backwards waits for
/// a part of its own, or of one that waits for it.
TEST_F(CounterTest, PersistentProgramsThatGoBackwardsWaitForever) {
  std::string text =
      replaceOne(kSum, "<threads = 32>", "<threads = 32, persistent = 1>");
  text = replaceOne(text, "%turn = arith.divui %program, %tiles : index",
                    "%before = arith.divui %program, %tiles : index\n"
                    "    %rest = arith.subi %rows, %before : index\n"
                    "    %turn = arith.subi %rest, %c1 : index");
  for (Emulator::Order order : kOrders) {
    std::string error = add(text, order);
    EXPECT_TRUE(contains(error, "0 have ended and 0 can start only behind"))
        << error;
  }
}

//===----------------------------------------------------------------------===//
// Copies of tensors
//===----------------------------------------------------------------------===//

/// Block 0 copies a tile to memory and releases a count; block 1 waits for it
/// and reads a number of it.
std::string copyKernel(const std::string &wait) {
  return R"(
llvm.mlir.global internal @tile() {addr_space = 3 : i32, alignment = 1024 : i64}
    : !llvm.array<64 x f32>
llvm.func @kernel(%map: !llvm.ptr {llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64},
                  %y: !llvm.ptr<1>, %turn: !llvm.ptr<1>)
    attributes {nvvm.kernel} {
  %block = nvvm.read.ptx.sreg.ctaid.x : i32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c1 = llvm.mlir.constant(1 : i32) : i32
  %tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
  %isFirst = llvm.icmp "eq" %block, %c0 : i32
  llvm.cond_br %isFirst, ^first, ^second
^first:
  nvvm.cp.async.bulk.tensor.global.shared.cta %map, %tile, box[%c0, %c0] : !llvm.ptr, !llvm.ptr<3>
  nvvm.cp.async.bulk.commit.group
)" + wait +
         R"(
  tile.publish_count %turn, %c1 : !llvm.ptr<1>
  nvvm.cp.async.bulk.wait_group 0
  llvm.return
^second:
  tile.poll_count %turn, %c1 : !llvm.ptr<1>
  %number = llvm.load %y : !llvm.ptr<1> -> i16
  llvm.return
}
)";
}

class CopyOrderTest : public TensorCoreTest {
protected:
  std::string run(const std::string &wait, Emulator::Order order) {
    compile(copyKernel(wait));
    if (!emulator)
      return "does not compile";
    std::vector<uint16_t> y(8 * 16);
    std::vector<uint32_t> turn(1);
    addBuffer(y, "y", /*isWritable=*/true);
    addBuffer(turn, "turn", /*isWritable=*/true);
    emulator->setMultiprocessors(2);
    emulator->setOrder(order);
    TestMap map = mapOf(y.data(), /*rows=*/8, /*columns=*/16, /*boxRows=*/8,
                        /*boxColumns=*/16, /*swizzle=*/0);
    return launch(/*numBlocks=*/2, /*numThreads=*/1, /*sharedBytes=*/0, map,
                  y.data(), turn.data());
  }
};

TEST_F(CopyOrderTest, ACountIsReleasedOnceCopiesHaveWritten) {
  for (Emulator::Order order : kOrders) {
    EXPECT_EQ(run("nvvm.cp.async.bulk.wait_group 0", order), "");
    // It has only read, or may be under way.
    for (const char *wait : {"nvvm.cp.async.bulk.wait_group 0 {read}",
                             "nvvm.cp.async.bulk.wait_group 1", ""}) {
      std::string error = run(wait, order);
      EXPECT_TRUE(contains(error, "data race on byte 0 of 'y': thread 0 reads "
                                  "it in 'llvm.load'"))
          << error;
    }
  }
}

} // namespace
