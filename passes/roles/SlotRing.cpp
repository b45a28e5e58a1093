//===- SlotRing.cpp - Slots that are filled in turn -----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/roles/SlotRing.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bastile;

static Value constant(ImplicitLocOpBuilder &builder, int64_t value) {
  return arith::ConstantIndexOp::create(builder, value);
}

Value SlotRing::makeBarriers(int64_t arrivals) const {
  return tile::MakeBarriersOp::create(
      builder, tile::BarriersType::get(builder.getContext(), slots),
      builder.getI64IntegerAttr(arrivals));
}

Value SlotRing::getSlot(Value number) const {
  return arith::RemUIOp::create(builder, number, constant(builder, slots));
}

Value SlotRing::getParity(Value number, int64_t ahead) const {
  Value round =
      arith::DivUIOp::create(builder, number, constant(builder, slots));
  if (ahead)
    round = arith::AddIOp::create(builder, round, constant(builder, ahead));
  return arith::RemUIOp::create(builder, round, constant(builder, 2));
}
