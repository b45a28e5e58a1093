//===- NoRowsTest.cpp - Combinations of no rows ---------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "CompiledTest.h"

using namespace bastile;
using namespace bastile::test;
using runtime::ElementType;

namespace {

constexpr char kSums[] = R"mlir(
  func.func @f(%x: tensor<?x200xf32>, %w: tensor<200xf32>)
      -> (tensor<200xf32>, tensor<200xf32>) {
    %0 = tile.reduce_rows add %x : tensor<?x200xf32> -> tensor<200xf32>
    %1 = arith.addf %0, %w : tensor<200xf32>
    %2 = tile.reduce_rows max %x : tensor<?x200xf32> -> tensor<200xf32>
    %3 = math.exp %2 : tensor<200xf32>
    return %1, %3 : tensor<200xf32>, tensor<200xf32>
  })mlir";

class NoRowsTest : public CompiledTest {};

/// The kernel that combines partial results runs, and reads none.
TEST_F(NoRowsTest, CombinesNothing) {
  for (const char *schedule :
       {"", "f_kernel1:stages=2", "f_kernel1:rows=8,threads=32,stages=2",
        "f_kernel1:rows=1,threads=32,columns=128,stages=3",
        "f_kernel0:persistent=1,stages=2"}) {
    SCOPED_TRACE(schedule);
    ASSERT_NO_FATAL_FAILURE(compile(kSums, schedule, {}));
    std::mt19937 random(5);
    Buffer x(ElementType::F32, 0, 200), weight(ElementType::F32, 1, 200),
        sum(ElementType::F32, 1, 200), power(ElementType::F32, 1, 200);
    weight.fill(random);
    for (Emulator::Order order : kOrders) {
      ASSERT_EQ(
          run({x.view(), weight.view(/*isVector=*/true)},
              {sum.view(/*isVector=*/true), power.view(/*isVector=*/true)},
              order),
          "");
      for (int64_t column = 0; column < 200; ++column) {
        ASSERT_EQ(sum.get(0, column), weight.get(0, column));
        // The maximum of no numbers is minus infinity, whose power is 0.
        ASSERT_EQ(power.get(0, column), 0);
      }
    }
  }
}

} // namespace
