//===- AddedSums.cpp - Sums that several programs add up ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/roles/AddedSums.h"

#include "dialect/ElementBytes.h"
#include "dialect/Warps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/products/StagedTiles.h"

using namespace mlir;
using namespace bastile;

int64_t AddedSums::Slots::getBytes(const Extents &extents,
                                   int64_t elementBytes) const {
  constexpr int64_t sumBytes = 4;
  return extents.streamed * (factors * extents.rows * elementBytes +
                             parts * extents.columns * sumBytes);
}

AddedSums::AddedSums(ProgramFrame &frame, tile::DotOp sharing, unsigned whole,
                     const Slots &slots, int64_t offset)
    : frame(frame), builder(frame.builder), extents(frame.extents),
      sharing(sharing), whole(whole), slots(slots),
      factorRing(frame.builder, slots.factors),
      partRing(frame.builder, slots.parts) {
  const int64_t warps = frame.schedule.getDotWarps();
  MLIRContext *context = builder.getContext();
  auto addBuffer = [&](MemRefType type, int64_t first) -> Value {
    return tile::BufferOp::create(builder, type,
                                  builder.getI64IntegerAttr(first));
  };
  const MemRefType factorType =
      getSlotsType(context, slots.factors, extents.rows, extents.streamed,
                   sharing.getFactorType());
  factors = addBuffer(factorType, offset);
  offset += factorType.getNumElements() * getElementBytes(factorType);
  parts = addBuffer(getSlotsType(context, slots.parts, extents.streamed,
                                 extents.columns, builder.getF32Type()),
                    offset);
  factorFull = factorRing.makeBarriers(warps);
  if (hasMultiplier())
    factorEmpty = factorRing.makeBarriers(kWarpsOfWarpgroup);
  partFull = partRing.makeBarriers(hasMultiplier() ? kWarpsOfWarpgroup : warps);
  partEmpty = partRing.makeBarriers(/*arrivals=*/1);
}

/// Waits until what the slot of fill `number` had before has been read.
void AddedSums::awaitFree(const SlotRing &ring, Value barriers, Value number) {
  tile::AwaitOp::create(builder, TypeRange(), barriers, ring.getSlot(number),
                        ring.getParity(number, /*ahead=*/1), ValueRange());
}

void AddedSums::give(Value left, Value number) {
  Value slot = factorRing.getSlot(number);
  // Where the warpgroups multiply, the slot was read two steps ago, and none of
  // them comes to a step's product before all have ended the step before.
  if (hasMultiplier())
    awaitFree(factorRing, factorEmpty, number);
  tile::KeepOp::create(builder, left, factors, slot);
  tile::FenceSharedOp::create(builder);
  tile::ArriveOp::create(builder, factorFull, slot, /*cluster=*/false,
                         /*warps=*/true);
}

RankedTensorType AddedSums::getPartType() const {
  Type element = builder.getF32Type();
  if (hasMultiplier())
    return RankedTensorType::get(
        {extents.streamed, extents.columns}, element,
        tile::MmaAttr::get(builder.getContext(), kWarpsOfWarpgroup));
  return RankedTensorType::get({extents.columns, extents.streamed}, element,
                               frame.layout);
}

Value AddedSums::multiply(Value tile, Value number) {
  Value slot = factorRing.getSlot(number);
  auto all = cast<MemRefType>(factors.getType());
  Type type = MemRefType::get(all.getShape().drop_front(), all.getElementType(),
                              all.getLayout(), all.getMemorySpace());
  Value factor =
      tile::AwaitOp::create(builder, type, factorFull, slot,
                            factorRing.getParity(number, /*ahead=*/0), factors)
          .getTiles()
          .front();
  Value left = tile, right = factor;
  if (hasMultiplier())
    std::swap(left, right);
  return tile::DotOp::create(
      builder, tile::PendingType::get(builder.getContext(), getPartType()),
      left, right, /*accumulator=*/Value(), ArrayRef<int64_t>{0, 0});
}

void AddedSums::leave(Value part, Value number) {
  Value slot = partRing.getSlot(number);
  awaitFree(partRing, partEmpty, number);
  tile::KeepOp::create(builder, part, parts, slot,
                       /*transposed=*/!hasMultiplier());
  tile::FenceSharedOp::create(builder);
  tile::ArriveOp::create(builder, partFull, slot, /*cluster=*/false,
                         /*warps=*/true);
}

void AddedSums::releaseFactor(Value number) {
  tile::ArriveOp::create(builder, factorEmpty, factorRing.getSlot(number),
                         /*cluster=*/false, /*warps=*/true);
}

void AddedSums::awaitMultiplier(Value number) {
  for (int64_t ahead = 0; ahead < slots.factors; ++ahead)
    awaitFree(factorRing, factorEmpty,
              arith::AddIOp::create(builder, number, frame.constant(ahead)));
}

void AddedSums::await(Value number) {
  tile::AwaitOp::create(builder, TypeRange(), partFull,
                        partRing.getSlot(number),
                        partRing.getParity(number, /*ahead=*/0), ValueRange());
}

void AddedSums::release(Value number) {
  tile::ArriveOp::create(builder, partEmpty, partRing.getSlot(number),
                         /*cluster=*/false, /*warps=*/false);
}
