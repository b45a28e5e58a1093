//===- AddedSums.cpp - Sums that several programs add up ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/roles/AddedSums.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/products/StagedTiles.h"

using namespace mlir;
using namespace bastile;

/// While one step's factor or part is read, the next one is written.
static constexpr int64_t kSlots = 2;
static constexpr int64_t kSumBytes = 4;

int64_t AddedSums::getBytes(const Extents &extents, int64_t elementBytes) {
  return kSlots * extents.streamed *
         (extents.rows * elementBytes + extents.columns * kSumBytes);
}

AddedSums::AddedSums(ProgramFrame &frame, tile::DotOp sharing, unsigned whole,
                     int64_t offset)
    : frame(frame), builder(frame.builder), extents(frame.extents),
      sharing(sharing), whole(whole), ring(frame.builder, kSlots) {
  const int64_t warps = frame.schedule.getDotWarps();
  MLIRContext *context = builder.getContext();
  auto addBuffer = [&](MemRefType type, int64_t first) -> Value {
    return tile::BufferOp::create(builder, type,
                                  builder.getI64IntegerAttr(first));
  };
  const MemRefType factorType = getSlotsType(
      context, kSlots, extents.rows, extents.streamed, sharing.getFactorType());
  factors = addBuffer(factorType, offset);
  offset += factorType.getNumElements() * getElementBytes(factorType);
  Type sumType = builder.getF32Type();
  parts = addBuffer(
      getSlotsType(context, kSlots, extents.streamed, extents.columns, sumType),
      offset);
  factorFull = ring.makeBarriers(warps);
  full = ring.makeBarriers(warps);
  empty = ring.makeBarriers(/*arrivals=*/1);
}

Value AddedSums::begin(Value left, Value tile, Value number) {
  Value slot = ring.getSlot(number);
  // The slot was multiplied two steps ago, and no warpgroup comes to a step's
  // product before all of them have ended the step before.
  tile::KeepOp::create(builder, left, factors, slot);
  tile::FenceSharedOp::create(builder);
  tile::ArriveOp::create(builder, factorFull, slot, /*cluster=*/false,
                         /*warps=*/true);
  auto slots = cast<MemRefType>(factors.getType());
  Type type =
      MemRefType::get(slots.getShape().drop_front(), slots.getElementType(),
                      slots.getLayout(), slots.getMemorySpace());
  Value factor =
      tile::AwaitOp::create(builder, type, factorFull, slot,
                            ring.getParity(number, /*ahead=*/0), factors)
          .getTiles()
          .front();
  auto part = RankedTensorType::get({extents.columns, extents.streamed},
                                    builder.getF32Type(), frame.layout);
  return tile::DotOp::create(
      builder, tile::PendingType::get(builder.getContext(), part), tile, factor,
      /*accumulator=*/Value(), ArrayRef<int64_t>{0, 0});
}

void AddedSums::leave(Value part, Value number) {
  Value slot = ring.getSlot(number);
  tile::AwaitOp::create(builder, TypeRange(), empty, slot,
                        ring.getParity(number, /*ahead=*/1), ValueRange());
  tile::KeepOp::create(builder, part, parts, slot, /*transposed=*/true);
  tile::FenceSharedOp::create(builder);
  tile::ArriveOp::create(builder, full, slot, /*cluster=*/false,
                         /*warps=*/true);
}

void AddedSums::await(Value number) {
  tile::AwaitOp::create(builder, TypeRange(), full, ring.getSlot(number),
                        ring.getParity(number, /*ahead=*/0), ValueRange());
}

void AddedSums::release(Value number) {
  tile::ArriveOp::create(builder, empty, ring.getSlot(number),
                         /*cluster=*/false, /*warps=*/false);
}
