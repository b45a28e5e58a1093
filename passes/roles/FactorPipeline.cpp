//===- FactorPipeline.cpp - Factors that are copied by boxes --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/roles/FactorPipeline.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace bastile;

/// The factors of all products of the kernel.
static SmallVector<unsigned> getFactors(const ProgramFrame &frame) {
  SmallVector<unsigned> factors;
  for (tile::DotOp dot : frame.space.getDots())
    for (unsigned index : {0, 1})
      factors.push_back(frame.operands.findFactor(dot, index));
  return factors;
}

FactorPipeline::FactorPipeline(ProgramFrame &frame, Value rank)
    : frame(frame), builder(frame.builder),
      stages(frame, getFactors(frame), frame.schedule.getStages(), rank,
             /*offset=*/0) {}

/// Builds `body`, which carries values, for all steps of a tile.
SmallVector<Value> FactorPipeline::buildOverSteps(ValueRange initial,
                                                  ProgramFrame::Body body) {
  return frame.buildOverBatch(
      frame.getSummedBatch(), initial, [&](ValueRange before) {
        Value steps =
            arith::CeilDivUIOp::create(builder, frame.emitter.getSize("k"),
                                       frame.constant(frame.extents.streamed));
        return frame.buildOverSteps(frame.constant(0), steps, before, body);
      });
}

/// Gives back the stage of the step ahead of `number`, if there is one behind
/// `at`, the tile's first.
void FactorPipeline::releaseBefore(Value number, Value at) {
  auto branch = scf::IfOp::create(
      builder,
      arith::CmpIOp::create(builder, arith::CmpIPredicate::ugt, number, at));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  stages.release(arith::SubIOp::create(builder, number, frame.constant(1)));
}

Value FactorPipeline::copy(Value at, Value /*turn*/) {
  Value one = frame.constant(1);
  return buildOverSteps(
             at,
             [&](ValueRange before) -> SmallVector<Value> {
               stages.copy(before.front());
               return {arith::AddIOp::create(builder, before.front(), one)};
             })
      .front();
}

Value FactorPipeline::compute(Value at, Value /*turn*/) {
  Value one = frame.constant(1);
  ArrayRef<tile::DotOp> dots = frame.space.getDots();
  SmallVector<Value> initial;
  for (tile::DotOp dot : dots) {
    RankedTensorType type = frame.emitter.getTileType(
        tile::DotOp(dot).getSumType(), /*ofFactor=*/false);
    Value zeros = arith::ConstantOp::create(builder, builder.getZeroAttr(type));
    initial.push_back(tile::BeginDotsOp::create(
        builder, tile::PendingType::get(builder.getContext(), type), zeros));
  }
  initial.push_back(at);
  SmallVector<Value> totals = buildOverSteps(initial, [&](ValueRange before) {
    SmallVector<Value> after(before);
    Value number = after.back();
    stages.await(number);
    for (auto [index, dot] : llvm::enumerate(dots))
      after[index] =
          tile::DotOp::create(builder, after[index].getType(),
                              stages.getTile(frame.operands.findFactor(dot, 0)),
                              stages.getTile(frame.operands.findFactor(dot, 1)),
                              after[index], tile::DotOp(dot).getContract());
    // The products of the step before have ended, so its stage is free.
    tile::WaitDotsOp::create(builder, TypeRange(),
                             builder.getI64IntegerAttr(dots.size()),
                             ValueRange(), ValueRange());
    releaseBefore(number, at);
    after.back() = arith::AddIOp::create(builder, number, one);
    return after;
  });
  SmallVector<Type> types;
  for (Value pending : ArrayRef(totals).drop_back())
    types.push_back(cast<tile::PendingType>(pending.getType()).getTile());
  auto wait = tile::WaitDotsOp::create(
      builder, types, builder.getI64IntegerAttr(0),
      ValueRange(ArrayRef(totals).drop_back()), ValueRange());
  for (auto [dot, sum] : llvm::zip_equal(dots, wait.getResults()))
    frame.emitter.map(tile::DotOp(dot).getResult(), sum);
  Value next = totals.back();
  releaseBefore(next, at);
  return next;
}
