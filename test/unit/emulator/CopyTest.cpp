//===- CopyTest.cpp - Copies that threads begin and wait for --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "EmulatorTest.h"
#include <numeric>

using namespace bastile;
using namespace bastile::test;

namespace {

/// Each thread copies a number to its own place in shared memory.
class CopyTest : public EmulatorTest {
protected:
  /// Runs a kernel with `body`, which gives the i32 `%result`, behind the
  /// copies, which no group has yet; returns the error.
  std::string run(const std::string &body, unsigned numThreads = 64) {
    compile(R"(
llvm.mlir.global internal @numbers()
    {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<64 x i32>
llvm.func @kernel(%y: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %tid = nvvm.read.ptx.sreg.tid.x : i32
  %c0 = llvm.mlir.constant(0 : i32) : i32
  %c63 = llvm.mlir.constant(63 : i32) : i32
  %is_first = llvm.icmp "eq" %tid, %c0 : i32
  %shared = llvm.mlir.addressof @numbers : !llvm.ptr<3>
  %from = llvm.getelementptr %y[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  %own = llvm.getelementptr %shared[%tid]
    : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  %mirror = llvm.sub %c63, %tid : i32
  %other = llvm.getelementptr %shared[%mirror]
    : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  nvvm.cp.async.shared.global %own, %from, 4, cache = ca
    : !llvm.ptr<3>, !llvm.ptr<1>
)" + body + R"(
  llvm.store %result, %from : i32, !llvm.ptr<1>
  llvm.return
}
)");
    if (!emulator)
      return "does not compile";
    y.resize(numThreads);
    std::iota(y.begin(), y.end(), 100);
    return launch(1, numThreads, /*sharedBytes=*/0, y.data());
  }

  std::vector<int32_t> y;
};

const std::string kCommit = "nvvm.cp.async.commit.group\n";
const std::string kWait = "nvvm.cp.async.wait.group 0\n";
const std::string kMeet = "nvvm.barrier0\n";
const std::string kRead = "%result = llvm.load %other : !llvm.ptr<3> -> i32\n";
const std::string kReadOwn = "%result = llvm.load %own : !llvm.ptr<3> -> i32\n";

TEST_F(CopyTest, ArrivesWithTheWaitOfItsThread) {
  ASSERT_EQ(run(kCommit + kWait + kMeet + kRead), "");
  for (int32_t i = 0; i < 64; ++i)
    EXPECT_EQ(y[i], 163 - i);
}

TEST_F(CopyTest, MayNotBeReadAheadOfTheWait) {
  std::string error = run(kCommit + kReadOwn + kWait);
  for (const char *part :
       {"data race on byte 0 of 'numbers': thread 0 reads it in 'llvm.load'",
        ", a copy of thread 0 began to write it before, and that thread has "
        "not "
        "waited for it since"})
    EXPECT_TRUE(contains(error, part)) << error;
  // A barrier does not wait for copies.
  EXPECT_TRUE(
      contains(run(kCommit + kMeet + kRead + kWait), "a copy of thread "));
  // Nor does a wait for all groups but this one.
  EXPECT_TRUE(contains(
      run(kCommit + "nvvm.cp.async.wait.group 1\n" + kMeet + kRead + kWait),
      "a copy of thread "));
  // A wait is for groups.
  EXPECT_TRUE(contains(run(kWait + kReadOwn + kCommit), "a copy of thread 0"));
}

TEST_F(CopyTest, MayNotBeOverwrittenAheadOfTheWait) {
  const std::string store =
      "llvm.store %tid, %other : i32, !llvm.ptr<3>\n" + kMeet + kReadOwn;
  EXPECT_EQ(run(kCommit + kWait + kMeet + store), "");
  std::string error = run(kCommit + kMeet + store + kWait);
  EXPECT_TRUE(contains(error, "a copy of thread 63 began to write it"))
      << error;
  // Copies of one thread arrive in any order.
  const std::string again = "nvvm.cp.async.shared.global %own, %from, 4, cache "
                            "= ca : !llvm.ptr<3>, !llvm.ptr<1>\n" +
                            kCommit + kWait + kReadOwn;
  EXPECT_EQ(run(kCommit + kWait + again), "");
  error = run(kCommit + again);
  EXPECT_TRUE(contains(error, "thread 0 writes it in "
                              "'nvvm.cp.async.shared.global'"))
      << error;
  EXPECT_TRUE(contains(error, "a copy of thread 0 began to write it")) << error;
}

TEST_F(CopyTest, HasToArriveBeforeItsThreadEnds) {
  const std::string none = "%result = llvm.add %tid, %c0 : i32\n";
  EXPECT_EQ(run(kCommit + kWait + none), "");
  EXPECT_TRUE(contains(run(kCommit + none),
                       "thread 0 exits before it has waited for its copy to "
                       "shared memory in 'nvvm.cp.async.shared.global'"));
  EXPECT_TRUE(contains(run(kWait + none), "exits before it has waited"));
}

} // namespace
