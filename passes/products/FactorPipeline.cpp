//===- FactorPipeline.cpp - Factors that are copied by boxes --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/products/FactorPipeline.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/products/Boxes.h"
#include "passes/products/StagedTiles.h"

using namespace mlir;
using namespace bastile;

//===----------------------------------------------------------------------===//
// Stages
//===----------------------------------------------------------------------===//

FactorPipeline::FactorPipeline(ProgramFrame &frame, Value rank)
    : frame(frame), builder(frame.builder), stages(frame.schedule.getStages()),
      blocks(frame.schedule.getBlocks()) {
  for (tile::DotOp dot : frame.space.getDots())
    for (unsigned index : {0, 1})
      addFactor(frame.operands.findFactor(dot, index), rank);
  auto makeBarriers = [&](int64_t arrivals) -> Value {
    return tile::MakeBarriersOp::create(
        builder, tile::BarriersType::get(builder.getContext(), stages),
        builder.getI64IntegerAttr(arrivals));
  };
  // A stage is full once the thread that copies has arrived and all bytes have
  // come, and empty once the warpgroups of all blocks have read it.
  full = makeBarriers(1);
  empty = makeBarriers(getReaders());
}

void FactorPipeline::addFactor(unsigned operand, Value rank) {
  if (llvm::any_of(factors, [&](const Factor &factor) {
        return factor.operand == operand;
      }))
    return;
  const Operand &own = frame.operands.getAll()[operand];
  const BoxShape shape = getFactorTile(own, frame.extents);
  MemRefType type = getSlotsType(builder.getContext(), stages, shape.rows,
                                 shape.columns, own.type.getElementType());
  Value slots =
      tile::BufferOp::create(builder, type, builder.getI64IntegerAttr(bytes));
  Value firstRow;
  if (rank && own.isOf(Axis::Columns))
    firstRow = arith::MulIOp::create(
        builder, rank,
        constant(getFactorBox(own, frame.extents, frame.schedule).rows));
  factors.push_back(
      {operand, slots,
       MemRefType::get(type.getShape().drop_front(), type.getElementType(),
                       type.getLayout(), type.getMemorySpace()),
       firstRow});
  const int64_t tileBytes =
      shape.rows * shape.columns * getElementBytes(own.type);
  stepBytes += tileBytes;
  bytes += stages * tileBytes;
}

size_t FactorPipeline::findFactor(tile::DotOp dot, unsigned index) const {
  const unsigned operand = frame.operands.findFactor(dot, index);
  const auto *it = llvm::find_if(
      factors, [&](const Factor &factor) { return factor.operand == operand; });
  return it - factors.begin();
}

Value FactorPipeline::getSlot(Value step) {
  return arith::RemUIOp::create(builder, step, constant(stages));
}

/// The parity of the phase `ahead` phases behind that in which the stage of
/// `step` is filled.
Value FactorPipeline::getParity(Value step, int64_t ahead) {
  Value round = arith::DivUIOp::create(builder, step, constant(stages));
  if (ahead)
    round = arith::AddIOp::create(builder, round, constant(ahead));
  return arith::RemUIOp::create(builder, round, constant(2));
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void FactorPipeline::copyStep(Value at) {
  Value slot = getSlot(at);
  // Ahead of the first round this returns at once: the phase before a barrier's
  // first one counts as ended.
  tile::AwaitOp::create(builder, TypeRange(), empty, slot,
                        getParity(at, /*ahead=*/1), ValueRange());
  tile::ExpectOp::create(builder, builder.getI64IntegerAttr(stepBytes), full,
                         slot);
  for (const Factor &factor : factors) {
    SmallVector<Value> indices = frame.emitter.getIndices(factor.operand);
    Value everyBlock;
    if (factor.firstRow) {
      Value &row = indices[indices.size() - 2];
      row = arith::AddIOp::create(builder, row, factor.firstRow);
      everyBlock = constant((1 << blocks) - 1);
    }
    tile::CopyBoxOp::create(builder, frame.emitter.getMemory(factor.operand),
                            indices, factor.slots, slot, full, slot,
                            factor.firstRow, everyBlock);
  }
}

Value FactorPipeline::copy(Value at) {
  Value one = constant(1);
  return frame
      .buildOverBatch(
          frame.getSummedBatch(), at,
          [&](ValueRange before) -> SmallVector<Value> {
            Value steps =
                arith::CeilDivUIOp::create(builder, frame.emitter.getSize("k"),
                                           constant(frame.extents.streamed));
            auto loop =
                scf::ForOp::create(builder, constant(0), steps, one, before);
            OpBuilder::InsertionGuard guard(builder);
            builder.setInsertionPointToStart(loop.getBody());
            frame.emitter.stream =
                arith::MulIOp::create(builder, loop.getInductionVar(),
                                      constant(frame.extents.streamed));
            Value number = loop.getRegionIterArgs().front();
            copyStep(number);
            scf::YieldOp::create(
                builder,
                arith::AddIOp::create(builder, number, one).getResult());
            return {loop.getResult(0)};
          })
      .front();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void FactorPipeline::arriveAtEmpty(Value step) {
  tile::ArriveOp::create(builder, empty, getSlot(step),
                         /*cluster=*/blocks > 1);
}

FactorPipeline::Sums FactorPipeline::multiply(Value at) {
  Value one = constant(1);
  ArrayRef<tile::DotOp> dots = frame.space.getDots();
  SmallVector<Value> initial;
  for (tile::DotOp dot : dots) {
    RankedTensorType type = frame.emitter.getTileType(
        tile::DotOp(dot).getSumType(), /*isStreamed=*/false);
    Value zeros = arith::ConstantOp::create(builder, builder.getZeroAttr(type));
    initial.push_back(tile::BeginDotsOp::create(
        builder, tile::PendingType::get(builder.getContext(), type), zeros));
  }
  initial.push_back(at);
  SmallVector<Value> totals = frame.buildOverBatch(
      frame.getSummedBatch(), initial,
      [&](ValueRange before) -> SmallVector<Value> {
        Value steps =
            arith::CeilDivUIOp::create(builder, frame.emitter.getSize("k"),
                                       constant(frame.extents.streamed));
        auto loop =
            scf::ForOp::create(builder, constant(0), steps, one, before);
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPointToStart(loop.getBody());
        SmallVector<Value> after(loop.getRegionIterArgs());
        Value number = after.back();
        SmallVector<Value> buffers;
        SmallVector<Type> types;
        for (const Factor &factor : factors) {
          buffers.push_back(factor.slots);
          types.push_back(factor.tile);
        }
        auto tiles =
            tile::AwaitOp::create(builder, types, full, getSlot(number),
                                  getParity(number, /*ahead=*/0), buffers);
        for (auto [index, dot] : llvm::enumerate(dots))
          after[index] =
              tile::DotOp::create(builder, after[index].getType(),
                                  tiles.getTiles()[findFactor(dot, 0)],
                                  tiles.getTiles()[findFactor(dot, 1)],
                                  after[index], tile::DotOp(dot).getContract());
        // The products of the step before have ended, so its stage is free.
        tile::WaitDotsOp::create(builder, TypeRange(),
                                 builder.getI64IntegerAttr(dots.size()),
                                 ValueRange(), ValueRange());
        Value last = arith::SubIOp::create(builder, number, one);
        Value isFree = arith::CmpIOp::create(builder, arith::CmpIPredicate::ugt,
                                             number, at);
        auto branch = scf::IfOp::create(builder, isFree);
        builder.setInsertionPointToStart(branch.thenBlock());
        arriveAtEmpty(last);
        builder.setInsertionPointAfter(branch);
        after.back() = arith::AddIOp::create(builder, number, one);
        scf::YieldOp::create(builder, after);
        return SmallVector<Value>(loop.getResults());
      });
  SmallVector<Type> types;
  for (Value pending : ArrayRef(totals).drop_back())
    types.push_back(cast<tile::PendingType>(pending.getType()).getTile());
  auto wait = tile::WaitDotsOp::create(
      builder, types, builder.getI64IntegerAttr(0),
      ValueRange(ArrayRef(totals).drop_back()), ValueRange());
  Sums sums{SmallVector<Value>(wait.getResults()), totals.back()};
  auto branch = scf::IfOp::create(
      builder,
      arith::CmpIOp::create(builder, arith::CmpIPredicate::ugt, sums.next, at));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  arriveAtEmpty(arith::SubIOp::create(builder, sums.next, one));
  return sums;
}
