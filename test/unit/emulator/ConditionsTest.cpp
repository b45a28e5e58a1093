//===- ConditionsTest.cpp - Conditions between kernels --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// One kernel finds numbers that another one compares, compiled for the GPU: no
// condition lies in memory between them.
//
//===----------------------------------------------------------------------===//

#include "CompiledTest.h"

using namespace bastile;
using namespace bastile::test;

namespace {

/// Each element, or its negative where the sum of its column is not positive.
constexpr char kBySums[] = R"mlir(
func.func @f(%x: tensor<?x40xf32>) -> tensor<?x40xf32> {
  %zero = arith.constant dense<0.0> : tensor<40xf32>
  %0 = tile.reduce_rows add %x : tensor<?x40xf32> -> tensor<40xf32>
  %1 = arith.cmpf ogt, %0, %zero : tensor<40xf32>
  %2 = tile.broadcast %1 like %x
      : tensor<40xi1>, tensor<?x40xf32> -> tensor<?x40xi1>
  %3 = arith.negf %x : tensor<?x40xf32>
  %4 = arith.select %2, %x, %3 : tensor<?x40xi1>, tensor<?x40xf32>
  return %4 : tensor<?x40xf32>
})mlir";

/// Each element, or its negative where a number of its column, the same for all
/// rows, is not less than 0.5.
constexpr char kByOneRow[] = R"mlir(
func.func @f(%x: tensor<?x40xf32>, %t: tensor<1x40xf32>) -> tensor<?x40xf32> {
  %half = arith.constant dense<0.5> : tensor<1x40xf32>
  %1 = arith.cmpf olt, %t, %half : tensor<1x40xf32>
  %2 = tile.broadcast %1 like %x
      : tensor<1x40xi1>, tensor<?x40xf32> -> tensor<?x40xi1>
  %3 = arith.negf %x : tensor<?x40xf32>
  %4 = arith.select %2, %x, %3 : tensor<?x40xi1>, tensor<?x40xf32>
  return %4 : tensor<?x40xf32>
})mlir";

constexpr int64_t kRows = 9, kColumns = 40;

struct ConditionsTest : public CompiledTest {
  ConditionsTest() {
    std::mt19937 random(5);
    x.fill(random);
    t.fill(random);
  }
  void expectNegated(const std::function<bool(int64_t)> &holds) {
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t column = 0; column < kColumns; ++column)
        ASSERT_EQ(y.get(row, column),
                  holds(column) ? x.get(row, column) : -x.get(row, column))
            << "row " << row << ", column " << column;
  }

  Buffer x{runtime::ElementType::F32, kRows, kColumns};
  Buffer t{runtime::ElementType::F32, 1, kColumns};
  Buffer y{runtime::ElementType::F32, kRows, kColumns};
};

TEST_F(ConditionsTest, SumsAreComparedWhereTheyAreNeeded) {
  compile(kBySums);
  if (HasFatalFailure())
    return;
  for (const runtime::BufferSpec &temporary :
       metadata.functions.front().temporaries)
    EXPECT_EQ(temporary.type, runtime::ElementType::F32);
  for (Emulator::Order order : kOrders) {
    ASSERT_EQ(run({x.view()}, {y.view()}, order), "");
    expectNegated([&](int64_t column) {
      double sum = 0;
      for (int64_t row = 0; row < kRows; ++row)
        sum += x.get(row, column);
      return sum > 0;
    });
  }
}

TEST_F(ConditionsTest, RepeatedRowsAreComparedInOneKernel) {
  compile(kByOneRow);
  if (HasFatalFailure())
    return;
  EXPECT_TRUE(metadata.functions.front().temporaries.empty());
  EXPECT_EQ(metadata.functions.front().launches.size(), 1u);
  ASSERT_EQ(run({x.view(), t.view()}, {y.view()}, Emulator::Order::Random), "");
  expectNegated([&](int64_t column) { return t.get(0, column) < 0.5; });
}

} // namespace
