//===- Waves.cpp - The order of programs that add in turn -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/crossed/Waves.h"

#include "passes/products/IndexArithmetic.h"

using namespace mlir;
using namespace bastile;

Value bastile::findPlaceInWaves(ProgramFrame &frame, Value number) {
  ImplicitLocOpBuilder &builder = frame.builder;
  // A wave is two programs for each that runs at the same time, and a few more
  // where that makes fewer waves: the cache holds what these stream and add to.
  constexpr int64_t runPrograms = 128, wavePrograms = 300;
  IndexArithmetic index(builder);
  Value one = frame.constant(1);
  Value tiles = frame.getRowTiles();
  // Sections have the same number of tiles, but for the last one; waves have
  // the same number of matrices.
  Value length =
      index.divideUp(tiles, index.divideUp(tiles, frame.constant(runPrograms)));
  Value all = frame.countMatrices();
  Value waves =
      index.divideUp(all, index.divide(frame.constant(wavePrograms), length));
  Value ofWave = index.divideUp(all, waves);
  Value ofWavePrograms = index.multiply(ofWave, tiles);
  Value firstMatrix =
      index.multiply(index.divide(number, ofWavePrograms), ofWave);
  Value inWave = index.getRest(number, ofWavePrograms);
  Value matrices = index.getSmaller(index.subtract(all, firstMatrix), ofWave);
  Value ofFirst = index.divide(matrices, frame.constant(2));
  Value ofSecond = index.subtract(matrices, ofFirst);

  Value sectionPrograms = index.multiply(matrices, length);
  Value ahead = index.multiply(index.divide(inWave, sectionPrograms), length);
  Value inSection = index.getRest(inWave, sectionPrograms);
  Value firstPrograms = index.multiply(
      ofFirst, index.getSmaller(index.subtract(tiles, ahead), length));
  Value isSecond = arith::CmpIOp::create(builder, arith::CmpIPredicate::uge,
                                         inSection, firstPrograms);
  Value inSecond = index.subtract(inSection, firstPrograms);
  auto select = [&](Value ofFirstHalf, Value ofSecondHalf) -> Value {
    return arith::SelectOp::create(builder, isSecond, ofSecondHalf,
                                   ofFirstHalf);
  };
  Value inHalf = select(inSection, inSecond);
  Value ofOwnHalf = select(ofFirst, ofSecond);
  Value behind = index.add(ahead, index.divide(inHalf, ofOwnHalf));
  Value rowTile =
      select(index.subtract(index.subtract(tiles, one), behind), behind);
  Value matrix = index.add(firstMatrix, index.getRest(inHalf, ofOwnHalf));
  frame.setTile(rowTile, select(matrix, index.add(matrix, ofFirst)));
  return isSecond;
}
