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

Value FactorPipeline::copy(Value at, Value /*turn*/) {
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
            stages.copy(number);
            scf::YieldOp::create(
                builder,
                arith::AddIOp::create(builder, number, one).getResult());
            return {loop.getResult(0)};
          })
      .front();
}

Value FactorPipeline::compute(Value at, Value /*turn*/) {
  Value one = constant(1);
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
        stages.await(number);
        for (auto [index, dot] : llvm::enumerate(dots))
          after[index] = tile::DotOp::create(
              builder, after[index].getType(),
              stages.getTile(frame.operands.findFactor(dot, 0)),
              stages.getTile(frame.operands.findFactor(dot, 1)), after[index],
              tile::DotOp(dot).getContract());
        // The products of the step before have ended, so its stage is free.
        tile::WaitDotsOp::create(builder, TypeRange(),
                                 builder.getI64IntegerAttr(dots.size()),
                                 ValueRange(), ValueRange());
        Value last = arith::SubIOp::create(builder, number, one);
        Value isFree = arith::CmpIOp::create(builder, arith::CmpIPredicate::ugt,
                                             number, at);
        auto branch = scf::IfOp::create(builder, isFree);
        builder.setInsertionPointToStart(branch.thenBlock());
        stages.release(last);
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
  for (auto [dot, sum] : llvm::zip_equal(dots, wait.getResults()))
    frame.emitter.map(tile::DotOp(dot).getResult(), sum);
  Value next = totals.back();
  auto branch = scf::IfOp::create(
      builder,
      arith::CmpIOp::create(builder, arith::CmpIPredicate::ugt, next, at));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  stages.release(arith::SubIOp::create(builder, next, one));
  return next;
}
