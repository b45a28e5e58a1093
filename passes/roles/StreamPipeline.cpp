//===- StreamPipeline.cpp - Streamed values between products --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/roles/StreamPipeline.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/products/StreamSums.h"
#include "passes/schedule/MatmulRules.h"

using namespace mlir;
using namespace bastile;

/// The products whose results are streamed.
static SmallVector<tile::DotOp> getInnerDots(const ProgramFrame &frame) {
  SmallVector<tile::DotOp> dots;
  for (auto dot : frame.getBody().getOps<tile::DotOp>())
    if (frame.space.isInner(dot))
      dots.push_back(dot);
  return dots;
}

static SmallVector<unsigned> getFactors(const ProgramFrame &frame,
                                        ArrayRef<tile::DotOp> dots,
                                        unsigned index) {
  SmallVector<unsigned> factors;
  for (tile::DotOp dot : dots)
    factors.push_back(frame.operands.findFactor(dot, index));
  return factors;
}

StreamPipeline::StreamPipeline(ProgramFrame &frame)
    : frame(frame), builder(frame.builder), following(frame.getBody()),
      innerDots(getInnerDots(frame)),
      whole(frame, getFactors(frame, innerDots, 0),
            getWholeStages(MatmulShape::get(frame.kernel)),
            /*rank=*/Value(), /*offset=*/0),
      inner(frame, getFactors(frame, innerDots, 1), frame.schedule.getStages(),
            /*rank=*/Value(), whole.getBytes()),
      outer(frame, getFactors(frame, frame.space.getDots(), 1),
            frame.schedule.getStages(), /*rank=*/Value(),
            whole.getBytes() + inner.getBytes()) {
  for (Operation &op : frame.getBody().without_terminator())
    if (frame.space.reducesStream(&op))
      sums.push_back(&op);
  visited = findVisited(sums, following, frame.space);
}

bool StreamPipeline::isUneven() const {
  return llvm::any_of(visited.conditions, [](const MaskCondition &condition) {
    return condition.column < 0 && condition.row > 0;
  });
}

void StreamPipeline::findPlace(Value tile, Value blockRow) {
  if (isUneven())
    frame.findPlaceOfRows(tile);
  else
    frame.findPlace(tile, blockRow);
}

//===----------------------------------------------------------------------===//
// The roles
//===----------------------------------------------------------------------===//

/// Builds `body`, which carries values, for the steps of a tile that its mask
/// leaves.
SmallVector<Value> StreamPipeline::buildOverSteps(ValueRange initial,
                                                  ProgramFrame::Body body) {
  const StepRange range =
      emitStepRange(builder, frame.emitter, frame.space, visited);
  return frame.buildOverSteps(range.first, range.end, initial, body);
}

Value StreamPipeline::copy(Value at, Value turn) {
  whole.copy(turn);
  return buildOverSteps(
             at,
             [&](ValueRange before) -> SmallVector<Value> {
               Value step = before.front();
               inner.copy(step);
               outer.copy(step);
               return {arith::AddIOp::create(builder, step, frame.constant(1))};
             })
      .front();
}

Value StreamPipeline::compute(Value at, Value turn) {
  StreamSums streamSums(builder, frame.emitter, following);
  for (Operation *op : sums)
    streamSums.add(op);
  whole.await(turn);
  SmallVector<Value> initial = streamSums.createInitial();
  initial.push_back(at);
  frame.emitter.emitInner = [&](tile::DotOp dot) { return emitInner(dot); };
  SmallVector<Value> totals = buildOverSteps(initial, [&](ValueRange before) {
    number = before.back();
    innerLeft = innerDots.size();
    outerLeft = frame.space.getDots().size();
    SmallVector<Value> after = streamSums.combine(
        before.drop_back(), [&](tile::DotOp dot, Value left, Value sum) {
          return addProducts(dot, left, sum);
        });
    after.push_back(arith::AddIOp::create(builder, number, frame.constant(1)));
    return after;
  });
  frame.emitter.emitInner = nullptr;
  whole.release(turn);
  Value next = totals.pop_back_val();
  streamSums.finish(totals);
  return next;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value StreamPipeline::emitInner(tile::DotOp dot) {
  if (innerLeft == innerDots.size())
    inner.await(number);
  RankedTensorType type =
      frame.emitter.getTileType(dot.getSumType(), /*ofFactor=*/true);
  Value sum = tile::DotOp::create(
      builder, tile::PendingType::get(builder.getContext(), type),
      whole.getTile(frame.operands.findFactor(dot, 0)),
      inner.getTile(frame.operands.findFactor(dot, 1)), /*accumulator=*/Value(),
      dot.getContract());
  Value tile = waitForSum(builder, sum);
  if (--innerLeft == 0)
    inner.release(number);
  return tile;
}

Value StreamPipeline::addProducts(tile::DotOp dot, Value left, Value sum) {
  left = frame.emitter.roundLeft(dot, left);
  if (outerLeft == frame.space.getDots().size())
    outer.await(number);
  auto pending = tile::PendingType::get(builder.getContext(),
                                        cast<RankedTensorType>(sum.getType()));
  Value begun = tile::BeginDotsOp::create(builder, pending, sum);
  Value more = tile::DotOp::create(
      builder, pending, left, outer.getTile(frame.operands.findFactor(dot, 1)),
      begun, ArrayRef<int64_t>{1, dot.getContract()[1]});
  Value total = waitForSum(builder, more);
  if (--outerLeft == 0)
    outer.release(number);
  return total;
}
