//===- TileNumbers.cpp - What one role tells another of a tile ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/roles/TileNumbers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace bastile;

/// One role may be a tile ahead of the other.
static constexpr int64_t kSlots = 2;

static Value constant(ImplicitLocOpBuilder &builder, int64_t value) {
  return arith::ConstantIndexOp::create(builder, value);
}

TileNumbers::TileNumbers(ImplicitLocOpBuilder &builder, int64_t count,
                         int64_t warps)
    : builder(builder), count(count) {
  auto space = gpu::AddressSpaceAttr::get(builder.getContext(),
                                          gpu::AddressSpace::Workgroup);
  numbers = tile::MakeNumbersOp::create(
      builder, MemRefType::get({kSlots, count}, builder.getI32Type(),
                               MemRefLayoutAttrInterface(), space));
  auto makeBarriers = [&](int64_t arrivals) -> Value {
    return tile::MakeBarriersOp::create(
        builder, tile::BarriersType::get(builder.getContext(), kSlots),
        builder.getI64IntegerAttr(arrivals));
  };
  full = makeBarriers(1);
  empty = makeBarriers(warps);
}

Value TileNumbers::getSlot(Value turn) {
  return arith::RemUIOp::create(builder, turn, constant(builder, kSlots));
}

/// The parity of the phase `ahead` phases behind that in which the slot of
/// `turn` is filled.
Value TileNumbers::getParity(Value turn, int64_t ahead) {
  Value round =
      arith::DivUIOp::create(builder, turn, constant(builder, kSlots));
  if (ahead)
    round = arith::AddIOp::create(builder, round, constant(builder, ahead));
  return arith::RemUIOp::create(builder, round, constant(builder, 2));
}

void TileNumbers::arrive(Value barriers, Value slot, bool isOfWarps) {
  tile::ArriveOp::create(builder, barriers, slot, /*cluster=*/false,
                         /*published=*/false, /*warps=*/isOfWarps);
}

void TileNumbers::put(Value turn, ArrayRef<Value> values) {
  Value slot = getSlot(turn);
  // In the first round this returns at once.
  tile::AwaitOp::create(builder, TypeRange(), empty, slot,
                        getParity(turn, /*ahead=*/1), ValueRange(),
                        /*cluster=*/false);
  tile::PutNumbersOp::create(builder, values, numbers, slot);
  arrive(full, slot, /*isOfWarps=*/false);
}

void TileNumbers::await(Value turn) {
  tile::AwaitOp::create(builder, TypeRange(), full, getSlot(turn),
                        getParity(turn, /*ahead=*/0), ValueRange(),
                        /*cluster=*/false);
}

SmallVector<Value> TileNumbers::get(Value turn) {
  SmallVector<Type> types(count, builder.getIndexType());
  return tile::GetNumbersOp::create(builder, types, numbers, getSlot(turn))
      .getValues();
}

void TileNumbers::release(Value turn) {
  arrive(empty, getSlot(turn), /*isOfWarps=*/true);
}
