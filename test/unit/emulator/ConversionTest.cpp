//===- ConversionTest.cpp - Tiles from one layout to another --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "CompiledTest.h"
#include "EmulatorTest.h"

using namespace bastile;
using namespace bastile::test;
using runtime::ElementType;

namespace {

/// Two tiles go to another layout one after the other, through the same memory,
/// and that twice.
constexpr char kConversions[] = R"mlir(
!memory = memref<?x?xf32, strided<[?, 1]>>
!tile = tensor<32x16xf32, #tile.mma<warps = 2>>
!dealt = tensor<32x16xf32, #tile.blocked<vector = 4, threadRows = 16, threadColumns = 4>>
func.func @f(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
  %y = tile.launch [@conversions](%x) : (tensor<?x?xf32>) -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}
tile.program @conversions(%m: index, %n: index,
    %x: !memory {tile.dimensions = ["m", "n"], tile.readonly},
    %y: !memory {tile.dimensions = ["m", "n"]})
    attributes {dimensions = ["m", "n"], programs = {m = 32 : i64},
                schedule = #tile.launch<threads = 64>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %x_tile = tile.load %x[%c0, %c0] {invariant} : !memory -> !tile
  %double = arith.addf %x_tile, %x_tile : !tile
  %zeros = arith.constant dense<0.0> : !dealt
  %sum = scf.for %i = %c0 to %c2 step %c1 iter_args(%before = %zeros) -> (!dealt) {
    %one = tile.convert_layout %x_tile : !tile -> !dealt
    %two = tile.convert_layout %double : !tile -> !dealt
    %less = arith.subf %one, %two : !dealt
    %more = arith.addf %before, %less : !dealt
    scf.yield %more : !dealt
  }
  %y_tile = tile.convert_layout %sum : !dealt -> !tile
  tile.store %y_tile, %y[%c0, %c0] : !tile, !memory
  tile.return
}
)mlir";

class ConversionTest : public CompiledTest {
protected:
  /// Runs the module; returns the error, or that elements are wrong.
  std::string convert(Emulator::Order order) {
    Buffer x(ElementType::F32, 32, 16), y(ElementType::F32, 32, 16);
    std::mt19937 random(1);
    x.fill(random);
    std::string error = run({x.view()}, {y.view()}, order);
    if (!error.empty())
      return error;
    for (int64_t row = 0; row < x.rows; ++row)
      for (int64_t column = 0; column < x.columns; ++column)
        if (y.get(row, column) != -2 * x.get(row, column))
          return "wrong elements";
    return "";
  }

  std::vector<mlir::Operation *> findBarriers() {
    std::vector<mlir::Operation *> barriers;
    module->walk([&](mlir::Operation *op) {
      if (mlir::isa<mlir::NVVM::Barrier0Op, mlir::NVVM::BarrierOp>(op))
        barriers.push_back(op);
    });
    return barriers;
  }
};

TEST_F(ConversionTest, TilesAreRightInEveryOrder) {
  compile(kConversions);
  for (Emulator::Order order : kOrders)
    EXPECT_EQ(convert(order), "");
}

TEST_F(ConversionTest, EachMeetingIsNeeded) {
  compile(kConversions);
  EXPECT_EQ(findBarriers().size(), 6U);
  // All but the meeting ahead of the last conversion, which lets each thread
  // write where only it has read.
  for (size_t index : {0, 1, 2, 3, 5}) {
    SCOPED_TRACE(index);
    compile(kConversions);
    findBarriers()[index]->erase();
    std::string error = convert(Emulator::Order::Forward);
    EXPECT_TRUE(contains(error, "data race on byte ")) << error;
  }
}

} // namespace
