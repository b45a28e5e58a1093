//===- Boxes.cpp - Boxes of operands that are copied ----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/products/Boxes.h"

#include "dialect/ElementBytes.h"
#include "passes/products/Epilogue.h"
#include "passes/products/StagedTiles.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

BoxShape bastile::getFactorTile(const Operand &operand,
                                const Extents &extents) {
  // Products on tensor cores sum so many elements at once.
  constexpr int64_t unit = 16;
  auto getSize = [&](Axis axis, unsigned ahead) {
    const int64_t place = operand.type.getRank() - 1 - ahead;
    return axis == Axis::Rows      ? extents.rows
           : axis == Axis::Columns ? extents.columns
           : axis == Axis::Whole   ? static_cast<int64_t>(llvm::alignTo(
                                         operand.type.getDimSize(place), unit))
                                   : extents.streamed;
  };
  return {getSize(operand.row, 1), getSize(operand.column, 0)};
}

BoxShape bastile::getFactorBox(const Operand &operand, const Extents &extents,
                               tile::MatmulAttr schedule) {
  const BoxShape tile = getFactorTile(operand, extents);
  const int64_t bytes = getElementBytes(operand.type);
  int64_t rows = tile.rows;
  if (operand.isOf(Axis::Columns))
    rows /= schedule.getRowBlocks();
  else if (operand.row == Axis::Rows)
    rows = extents.boxRows;
  return {rows, getSwizzleBytes(tile.columns * bytes) / bytes};
}

BoxShape bastile::getResultBox(const ProgramFrame &frame) {
  return {tile::MmaAttr::kWarpRows, EpilogueShape::get(frame).columns};
}

tile::TensorMapType bastile::getMapType(MemRefType memory,
                                        const BoxShape &shape,
                                        int64_t matrixRows) {
  SmallVector<int64_t> box(memory.getRank(), 1);
  int64_t &rows = box[box.size() - 2];
  rows = shape.rows;
  if (matrixRows != 0 && matrixRows < shape.rows) {
    rows = matrixRows;
    box[box.size() - 3] = shape.rows / matrixRows;
  }
  box.back() = shape.columns;
  return tile::TensorMapType::get(memory.getContext(), memory, box,
                                  shape.columns * getElementBytes(memory));
}
