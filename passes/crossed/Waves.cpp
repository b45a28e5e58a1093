//===- Waves.cpp - The order of programs that add in turn -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/crossed/Waves.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bastile;

Value bastile::findPlaceInWaves(ProgramFrame &frame, Value number) {
  ImplicitLocOpBuilder &builder = frame.builder;
  // A wave is two programs for each that runs at the same time, and a few more
  // where that makes fewer waves: the cache holds what these stream and add to.
  constexpr int64_t runPrograms = 128, wavePrograms = 300;
  auto add = [&](Value lhs, Value rhs) -> Value {
    return arith::AddIOp::create(builder, lhs, rhs);
  };
  auto subtract = [&](Value lhs, Value rhs) -> Value {
    return arith::SubIOp::create(builder, lhs, rhs);
  };
  auto multiply = [&](Value lhs, Value rhs) -> Value {
    return arith::MulIOp::create(builder, lhs, rhs);
  };
  auto divide = [&](Value lhs, Value rhs) -> Value {
    return arith::DivUIOp::create(builder, lhs, rhs);
  };
  auto divideUp = [&](Value lhs, Value rhs) -> Value {
    return arith::CeilDivUIOp::create(builder, lhs, rhs);
  };
  auto getRest = [&](Value lhs, Value rhs) -> Value {
    return arith::RemUIOp::create(builder, lhs, rhs);
  };
  Value one = frame.constant(1);
  Value tiles = frame.getRowTiles();
  // Sections have the same number of tiles, but for the last one; waves have
  // the same number of matrices.
  Value length = divideUp(tiles, divideUp(tiles, frame.constant(runPrograms)));
  Value all = frame.countMatrices();
  Value waves = divideUp(all, divide(frame.constant(wavePrograms), length));
  Value ofWave = divideUp(all, waves);
  Value ofWavePrograms = multiply(ofWave, tiles);
  Value firstMatrix = multiply(divide(number, ofWavePrograms), ofWave);
  Value inWave = getRest(number, ofWavePrograms);
  Value matrices =
      arith::MinUIOp::create(builder, subtract(all, firstMatrix), ofWave);
  Value ofFirst = divide(matrices, frame.constant(2));
  Value ofSecond = subtract(matrices, ofFirst);

  Value sectionPrograms = multiply(matrices, length);
  Value ahead = multiply(divide(inWave, sectionPrograms), length);
  Value inSection = getRest(inWave, sectionPrograms);
  Value firstPrograms = multiply(
      ofFirst, arith::MinUIOp::create(builder, subtract(tiles, ahead), length));
  Value isSecond = arith::CmpIOp::create(builder, arith::CmpIPredicate::uge,
                                         inSection, firstPrograms);
  Value inSecond = subtract(inSection, firstPrograms);
  auto select = [&](Value ofFirstHalf, Value ofSecondHalf) -> Value {
    return arith::SelectOp::create(builder, isSecond, ofSecondHalf,
                                   ofFirstHalf);
  };
  Value inHalf = select(inSection, inSecond);
  Value ofOwnHalf = select(ofFirst, ofSecond);
  Value behind = add(ahead, divide(inHalf, ofOwnHalf));
  Value rowTile = select(subtract(subtract(tiles, one), behind), behind);
  Value matrix = add(firstMatrix, getRest(inHalf, ofOwnHalf));
  frame.setTile(rowTile, select(matrix, add(matrix, ofFirst)));
  return isSecond;
}
