//===- OperandTile.cpp - A tile of an operand in memory -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/OperandTile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "passes/pieces/Pieces.h"

using namespace mlir;
using namespace bastile;

Value bastile::isFirstHolder(OpBuilder &builder, Location loc,
                             RankedTensorType tile, Value row, Value column) {
  auto isZero = [&](Value value) -> Value {
    return arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq, value,
        arith::ConstantIndexOp::create(builder, loc, 0));
  };
  Value condition;
  if (tile.getDimSize(1) == 1 && column)
    condition = isZero(column);
  if (tile.getDimSize(0) == 1 && row)
    condition = combine(builder, loc, condition, isZero(row));
  return condition;
}

Value bastile::advance(OpBuilder &builder, Location loc, Value from,
                       Type element, Value elements) {
  Value count = arith::IndexCastUIOp::create(builder, loc, builder.getI64Type(),
                                             elements);
  return LLVM::GEPOp::create(builder, loc, from.getType(),
                             getMemoryType(element), from, ValueRange{count},
                             LLVM::GEPNoWrapFlags::none);
}

Value bastile::getOperandSize(OpBuilder &builder, Location loc,
                              tile::ProgramOp program, ArrayAttr names,
                              MemRefType memref, int64_t dimension) {
  if (auto name = dyn_cast<StringAttr>(names[dimension]))
    return program.getSize(name);
  return arith::ConstantIndexOp::create(builder, loc,
                                        memref.getDimSize(dimension));
}

OperandTile::OperandTile(OpBuilder &builder, Operation *op, MemRefType memref,
                         ValueRange parts, ArrayRef<ValueRange> indices)
    : address(parts.front()), element(memref.getElementType()) {
  Location loc = op->getLoc();
  const int64_t rank = memref.getRank();
  auto names = op->getAttrOfType<ArrayAttr>(kDimensions);
  auto program = op->getParentOfType<tile::ProgramOp>();
  if (auto ofMatrix = op->getAttrOfType<IntegerAttr>(kMatrixRows)) {
    matrixRows = ofMatrix.getInt();
    repeatsRow = rank >= 2 && !isa<StringAttr>(names[rank - 2]);
    if (rank >= 3 && isa<StringAttr>(names[rank - 3]))
      matrixStride = parts[1 + rank - 3];
  }
  auto getSize = [&](int64_t dimension) {
    return getOperandSize(builder, loc, program, names, memref, dimension);
  };
  for (auto [dimension, index] : llvm::enumerate(indices)) {
    const auto left = rank - 1 - static_cast<int64_t>(dimension);
    if (left == 0) {
      column = index.front();
      columns = getSize(dimension);
    } else if (left == 1) {
      row = index.front();
      rows = getSize(dimension);
      rowStride = parts[1 + dimension];
    } else {
      address = advance(builder, loc, address, element,
                        arith::MulIOp::create(builder, loc, index.front(),
                                              parts[1 + dimension]));
    }
  }
}

Value OperandTile::isInside(OpBuilder &builder, Location loc, Value elementRow,
                            Value elementColumn) const {
  auto isBelow = [&](Value value, Value limit) -> Value {
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, value,
                                 limit);
  };
  Value inside = isBelow(elementColumn, columns);
  if (elementRow)
    inside = combine(builder, loc, inside, isBelow(elementRow, rows));
  return inside;
}

Value OperandTile::getAddress(OpBuilder &builder, Location loc,
                              Value elementRow, Value elementColumn,
                              Value inside, Value ofMatrix) const {
  Value offset = elementColumn;
  if (ofMatrix)
    offset = arith::AddIOp::create(builder, loc, offset, ofMatrix);
  if (elementRow)
    offset = arith::AddIOp::create(
        builder, loc, offset,
        arith::MulIOp::create(builder, loc, elementRow, rowStride));
  if (inside)
    offset = arith::SelectOp::create(
        builder, loc, inside, offset,
        arith::ConstantIndexOp::create(builder, loc, 0));
  return advance(builder, loc, address, element, offset);
}
