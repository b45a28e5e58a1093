//===- BoxStages.cpp - Stages of shared memory for boxes ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/roles/BoxStages.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/products/Boxes.h"
#include "passes/products/StagedTiles.h"

using namespace mlir;
using namespace bastile;

BoxStages::BoxStages(ProgramFrame &frame, ArrayRef<unsigned> factors,
                     int64_t stages, Value rank, int64_t offset,
                     const NumberStages *numbers)
    : frame(frame), builder(frame.builder), ring(frame.builder, stages),
      numbers(numbers && !numbers->isEmpty() ? numbers : nullptr) {
  for (unsigned operand : factors)
    addFactor(operand, rank, offset);
  // A stage is full once the thread that copies has arrived and all bytes have
  // come, and empty once the warpgroups of all blocks have read it. The warp
  // that copies numbers arrives as well, and warps read them one by one.
  full = ring.makeBarriers(this->numbers ? 2 : 1);
  empty = ring.makeBarriers(this->numbers ? frame.schedule.getDotWarps()
                                          : getReaders(frame.schedule));
}

SmallVector<unsigned> BoxStages::getOperands() const {
  return llvm::map_to_vector(
      factors, [](const Factor &factor) { return factor.operand; });
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
  const BoxShape box = getFactorBox(own, frame.extents, frame.schedule);
  const bool isShared = rank && own.isOf(Axis::Columns);
  Factor factor;
  factor.operand = operand;
  factor.slots = slots;
  factor.type =
      MemRefType::get(type.getShape().drop_front(), type.getElementType(),
                      type.getLayout(), type.getMemorySpace());
  if (isShared)
    factor.firstRow = arith::MulIOp::create(builder, rank, constant(box.rows));
  else
    factor.numBoxes = shape.rows / box.rows;
  factor.boxRows = box.rows;
  factor.boxBytes = box.rows * shape.columns * getElementBytes(own.type);
  factors.push_back(factor);
  stageBytes += shape.rows * shape.columns * getElementBytes(own.type);
  mostBoxes = std::max(mostBoxes, factor.numBoxes);
}

void BoxStages::copyBoxes(int64_t boxes, Value slot,
                          ArrayRef<SmallVector<Value>> indices) {
  int64_t bytes = stageBytes;
  for (const Factor &factor : factors)
    bytes -= std::max<int64_t>(0, factor.numBoxes - boxes) * factor.boxBytes;
  tile::ExpectOp::create(builder, builder.getI64IntegerAttr(bytes), full, slot);
  for (auto [factor, first] : llvm::zip_equal(factors, indices)) {
    Value everyBlock;
    if (factor.firstRow)
      everyBlock = constant((1 << frame.schedule.getRowBlocks()) - 1);
    for (int64_t box = 0; box < std::min(factor.numBoxes, boxes); ++box) {
      SmallVector<Value> place(first);
      Value row = factor.firstRow;
      if (factor.numBoxes > 1)
        row = constant(box * factor.boxRows);
      if (row)
        place[place.size() - 2] =
            arith::AddIOp::create(builder, place[place.size() - 2], row);
      tile::CopyBoxOp::create(builder, frame.emitter.getMemory(factor.operand),
                              place, factor.slots, slot, full, slot, row,
                              everyBlock);
    }
  }
}

/// In the first round all boxes are copied, so that rows beyond the operand are
/// zeros. Later rounds leave out boxes without a row of the operand, which keep
/// what they have: rows of the result beyond the last are computed of it, and
/// stored nowhere.
void BoxStages::copy(Value number) {
  Value slot = ring.getSlot(number);
  // Ahead of the first round this returns at once: the phase before a barrier's
  // first one counts as ended.
  tile::AwaitOp::create(builder, TypeRange(), empty, slot,
                        ring.getParity(number, /*ahead=*/1), ValueRange());
  SmallVector<SmallVector<Value>> indices;
  for (const Factor &factor : factors)
    indices.push_back(frame.emitter.getIndices(factor.operand));
  if (mostBoxes == 1)
    return copyBoxes(1, slot, indices);
  Value boxes;
  for (auto [factor, first] : llvm::zip_equal(factors, indices))
    if (factor.numBoxes > 1)
      boxes = arith::CeilDivUIOp::create(
          builder,
          arith::SubIOp::create(builder, frame.emitter.getSize("m"),
                                first[first.size() - 2]),
          constant(factor.boxRows));
  Value isFirst = arith::CmpIOp::create(builder, arith::CmpIPredicate::ult,
                                        number, constant(ring.getSlots()));
  boxes = arith::SelectOp::create(builder, isFirst, constant(mostBoxes), boxes);
  OpBuilder::InsertionGuard guard(builder);
  for (int64_t count = 1; count < mostBoxes; ++count) {
    Value isCount = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                                          boxes, constant(count));
    auto branch = scf::IfOp::create(builder, isCount, /*withElseRegion=*/true);
    builder.setInsertionPoint(branch.thenYield());
    copyBoxes(count, slot, indices);
    builder.setInsertionPoint(branch.elseYield());
  }
  copyBoxes(mostBoxes, slot, indices);
}

void BoxStages::copyNumbers(Value number) {
  if (!numbers)
    return;
  Value slot = ring.getSlot(number);
  numbers->copy(slot);
  tile::ArriveOp::create(builder, full, slot, /*cluster=*/false,
                         /*warps=*/true);
}

std::pair<SmallVector<Value>, SmallVector<Type>> BoxStages::getSlots() const {
  SmallVector<Value> slots;
  SmallVector<Type> types;
  for (const Factor &factor : factors) {
    slots.push_back(factor.slots);
    types.push_back(factor.type);
  }
  return {slots, types};
}

void BoxStages::setTiles(ValueRange tiles) {
  for (auto [factor, tile] : llvm::zip_equal(factors, tiles))
    factor.tile = tile;
}

void BoxStages::await(Value number) {
  awaited = ring.getSlot(number);
  auto [slots, types] = getSlots();
  setTiles(tile::AwaitOp::create(builder, types, full, awaited,
                                 ring.getParity(number, /*ahead=*/0), slots)
               .getTiles());
}

void BoxStages::select(Value number) {
  auto [slots, types] = getSlots();
  setTiles(tile::GetTilesOp::create(builder, types, slots, ring.getSlot(number))
               .getTiles());
}

Value BoxStages::takeNumbers(unsigned operand) const {
  return numbers ? numbers->take(operand, awaited) : Value();
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
                         /*warps=*/numbers != nullptr);
}
