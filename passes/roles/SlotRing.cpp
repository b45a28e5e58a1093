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
  return arith::ConstantIntOp::create(builder, value, /*width=*/32);
}

Value SlotRing::makeBarriers(int64_t arrivals) const {
  return tile::MakeBarriersOp::create(
      builder, tile::BarriersType::get(builder.getContext(), slots),
      builder.getI64IntegerAttr(arrivals));
}

/// The fill `number` as an integer of 32 bits: a block makes fewer fills, and a
/// GPU divides it in a third of the time that one of 64 bits takes.
static Value toInt32(ImplicitLocOpBuilder &builder, Value number) {
  return arith::IndexCastUIOp::create(builder, builder.getI32Type(), number);
}

static Value toIndex(ImplicitLocOpBuilder &builder, Value value) {
  return arith::IndexCastUIOp::create(builder, builder.getIndexType(), value);
}

Value SlotRing::getSlot(Value number) const {
  return toIndex(builder,
                 arith::RemUIOp::create(builder, toInt32(builder, number),
                                        constant(builder, slots)));
}

Value SlotRing::getParity(Value number, int64_t ahead) const {
  Value round = arith::DivUIOp::create(builder, toInt32(builder, number),
                                       constant(builder, slots));
  if (ahead)
    round = arith::AddIOp::create(builder, round, constant(builder, ahead));
  return toIndex(builder,
                 arith::RemUIOp::create(builder, round, constant(builder, 2)));
}
