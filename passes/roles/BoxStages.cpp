//===- BoxStages.cpp - Stages of shared memory for boxes ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/roles/BoxStages.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/products/Boxes.h"
#include "passes/products/StagedTiles.h"

using namespace mlir;
using namespace bastile;

BoxStages::BoxStages(ProgramFrame &frame, ArrayRef<unsigned> factors,
                     int64_t stages, Value rank, int64_t offset)
    : frame(frame), builder(frame.builder), ring(frame.builder, stages) {
  for (unsigned operand : factors)
    addFactor(operand, rank, offset);
  // A stage is full once the thread that copies has arrived and all bytes have
  // come, and empty once the warpgroups of all blocks have read it.
  full = ring.makeBarriers(1);
  empty = ring.makeBarriers(getReaders(frame.schedule));
}

void BoxStages::addFactor(unsigned operand, Value rank, int64_t offset) {
  if (llvm::any_of(factors, [&](const Factor &factor) {
        return factor.operand == operand;
      }))
    return;
  const Operand &own = frame.operands.getAll()[operand];
  const BoxShape shape = getFactorTile(own, frame.extents);
  MemRefType type =
      getSlotsType(builder.getContext(), ring.getSlots(), shape.rows,
                   shape.columns, own.type.getElementType());
  Value slots = tile::BufferOp::create(
      builder, type, builder.getI64IntegerAttr(offset + getBytes()));
  Value firstRow;
  if (rank && own.isOf(Axis::Columns))
    firstRow = arith::MulIOp::create(
        builder, rank,
        constant(getFactorBox(own, frame.extents, frame.schedule).rows));
  factors.push_back(
      {operand, slots,
       MemRefType::get(type.getShape().drop_front(), type.getElementType(),
                       type.getLayout(), type.getMemorySpace()),
       firstRow, Value()});
  stageBytes += shape.rows * shape.columns * getElementBytes(own.type);
}

void BoxStages::copy(Value number) {
  Value slot = ring.getSlot(number);
  // Ahead of the first round this returns at once: the phase before a barrier's
  // first one counts as ended.
  tile::AwaitOp::create(builder, TypeRange(), empty, slot,
                        ring.getParity(number, /*ahead=*/1), ValueRange());
  tile::ExpectOp::create(builder, builder.getI64IntegerAttr(stageBytes), full,
                         slot);
  for (const Factor &factor : factors) {
    SmallVector<Value> indices = frame.emitter.getIndices(factor.operand);
    Value everyBlock;
    if (factor.firstRow) {
      Value &row = indices[indices.size() - 2];
      row = arith::AddIOp::create(builder, row, factor.firstRow);
      everyBlock = constant((1 << frame.schedule.getRowBlocks()) - 1);
    }
    tile::CopyBoxOp::create(builder, frame.emitter.getMemory(factor.operand),
                            indices, factor.slots, slot, full, slot,
                            factor.firstRow, everyBlock);
  }
}

void BoxStages::await(Value number) {
  SmallVector<Value> slots;
  SmallVector<Type> types;
  for (const Factor &factor : factors) {
    slots.push_back(factor.slots);
    types.push_back(factor.type);
  }
  auto await =
      tile::AwaitOp::create(builder, types, full, ring.getSlot(number),
                            ring.getParity(number, /*ahead=*/0), slots);
  for (auto [factor, tile] : llvm::zip_equal(factors, await.getTiles()))
    factor.tile = tile;
}

Value BoxStages::getTile(unsigned operand) const {
  return llvm::find_if(
             factors,
             [&](const Factor &factor) { return factor.operand == operand; })
      ->tile;
}

void BoxStages::release(Value number) {
  tile::ArriveOp::create(builder, empty, ring.getSlot(number),
                         /*cluster=*/frame.schedule.getRowBlocks() > 1,
                         /*warps=*/false);
}
