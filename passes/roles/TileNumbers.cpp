//===- TileNumbers.cpp - What one role tells another of a tile ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/roles/TileNumbers.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace bastile;

/// One role may be a tile ahead of the other.
static constexpr int64_t kSlots = 2;

TileNumbers::TileNumbers(ImplicitLocOpBuilder &builder, int64_t count,
                         int64_t warps)
    : builder(builder), count(count), ring(builder, kSlots) {
  auto space = gpu::AddressSpaceAttr::get(builder.getContext(),
                                          gpu::AddressSpace::Workgroup);
  numbers = tile::MakeNumbersOp::create(
      builder, MemRefType::get({kSlots, count}, builder.getI32Type(),
                               MemRefLayoutAttrInterface(), space));
  full = ring.makeBarriers(1);
  empty = ring.makeBarriers(warps);
}

void TileNumbers::arrive(Value barriers, Value slot, bool isOfWarps) {
  tile::ArriveOp::create(builder, barriers, slot, /*cluster=*/false,
                         /*warps=*/isOfWarps);
}

void TileNumbers::put(Value turn, ArrayRef<Value> values) {
  Value slot = ring.getSlot(turn);
  // In the first round this returns at once.
  tile::AwaitOp::create(builder, TypeRange(), empty, slot,
                        ring.getParity(turn, /*ahead=*/1), ValueRange());
  tile::PutNumbersOp::create(builder, values, numbers, slot);
  arrive(full, slot, /*isOfWarps=*/false);
}

void TileNumbers::await(Value turn) {
  tile::AwaitOp::create(builder, TypeRange(), full, ring.getSlot(turn),
                        ring.getParity(turn, /*ahead=*/0), ValueRange());
}

SmallVector<Value> TileNumbers::get(Value turn) {
  SmallVector<Type> types(count, builder.getIndexType());
  return tile::GetNumbersOp::create(builder, types, numbers, ring.getSlot(turn))
      .getValues();
}

void TileNumbers::release(Value turn) {
  arrive(empty, ring.getSlot(turn), /*isOfWarps=*/true);
}
