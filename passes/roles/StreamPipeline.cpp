//===- StreamPipeline.cpp - Streamed values between products --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/roles/StreamPipeline.h"

#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/products/Boxes.h"
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

/// The factors of inner products `dots` that have the rows of their tiles, or
/// the other ones.
static SmallVector<unsigned>
getFactors(const ProgramFrame &frame, ArrayRef<tile::DotOp> dots, bool ofRows) {
  SmallVector<unsigned> factors;
  for (tile::DotOp dot : dots) {
    const unsigned rowFactor = frame.space.getRowFactor(dot);
    factors.push_back(
        frame.operands.findFactor(dot, ofRows ? rowFactor : 1 - rowFactor));
  }
  return factors;
}

/// Finds which right factors have the boxes of streamed factors of
/// `innerDots`, and these. A pinned schedule may have more columns.
static llvm::SmallDenseMap<unsigned, unsigned>
findShared(const ProgramFrame &frame, ArrayRef<tile::DotOp> innerDots) {
  ArrayRef<Operand> operands = frame.operands.getAll();
  llvm::SmallDenseMap<unsigned, unsigned> shared;
  for (tile::DotOp dot : frame.space.getDots()) {
    if (!sharesStages(dot, frame.space))
      continue;
    const unsigned right = frame.operands.findFactor(dot, 1);
    for (unsigned other : getFactors(frame, innerDots, /*ofRows=*/false))
      if (operands[right].index == operands[other].index &&
          getFactorTile(operands[right], frame.extents).columns ==
              getFactorTile(operands[other], frame.extents).columns)
        shared.insert({right, other});
  }
  return shared;
}

StreamPipeline::StreamPipeline(ProgramFrame &frame)
    : frame(frame), builder(frame.builder), following(frame.getBody()),
      innerDots(getInnerDots(frame)), shared(findShared(frame, innerDots)),
      whole(frame, getFactors(frame, innerDots, /*ofRows=*/true),
            getWholeStages(MatmulShape::get(frame.kernel)),
            /*rank=*/Value(), /*offset=*/0),
      inner(frame, getFactors(frame, innerDots, /*ofRows=*/false),
            frame.schedule.getStages(), /*rank=*/Value(), whole.getBytes()) {
  SmallVector<unsigned> others;
  for (tile::DotOp dot : frame.space.getDots())
    if (unsigned right = frame.operands.findFactor(dot, 1);
        !shared.contains(right))
      others.push_back(right);
  if (!others.empty())
    outer.emplace(frame, others, frame.schedule.getStages(), /*rank=*/Value(),
                  whole.getBytes() + inner.getBytes());
  for (Operation &op : frame.getBody().without_terminator())
    if (frame.space.reducesStream(&op))
      sums.push_back(&op);
  visited = findVisited(sums, following, frame.space);
  longest = findLongest();
}

/// Where numbers of rows bound the steps, a warp reads them.
int64_t StreamPipeline::getCopyThreads() const {
  constexpr int64_t warp = 32;
  const bool readsRows =
      llvm::any_of(visited.conditions, [](const MaskCondition &condition) {
        return llvm::any_of(condition.numbers, [](const auto &entry) {
          return isOfRow(entry.first);
        });
      });
  return readsRows ? warp : 1;
}

StreamPipeline::Longest StreamPipeline::findLongest() const {
  auto isBound = [&](int64_t sign) {
    return llvm::any_of(
        visited.conditions, [&](const MaskCondition &condition) {
          return condition.column * sign > 0 && condition.row * sign < 0;
        });
  };
  if (isBound(-1))
    return Longest::Last;
  return isBound(1) ? Longest::First : Longest::None;
}

void StreamPipeline::findPlace(Value tile, Value blockRow) {
  if (isUneven())
    frame.findPlaceOfRows(tile, longest == Longest::Last);
  else
    frame.findPlace(tile, blockRow);
}

//===----------------------------------------------------------------------===//
// The roles
//===----------------------------------------------------------------------===//

/// Builds `body`, which carries values, for the steps of a tile that its mask
/// leaves, of all matrices whose products it adds up.
SmallVector<Value> StreamPipeline::buildOverSteps(ValueRange initial,
                                                  ProgramFrame::Body body) {
  return frame.buildOverBatch(
      frame.getSummedBatch(), initial, [&](ValueRange before) {
        const StepRange range =
            emitStepRange(builder, frame.emitter, frame.space, visited);
        return frame.buildOverSteps(range.first, range.end, before, body);
      });
}

Value StreamPipeline::copy(Value at, Value turn) {
  whole.copy(turn);
  return buildOverSteps(
             at,
             [&](ValueRange before) -> SmallVector<Value> {
               Value step = before.front();
               inner.copy(step);
               if (outer)
                 outer->copy(step);
               return {arith::AddIOp::create(builder, step, frame.constant(1))};
             })
      .front();
}

/// Loads what transposed factors have of numbers of their rows ahead of the
/// products of a step, whose time covers that of the loads. Integers are those
/// of masks, which few steps need, and would take registers in all of them.
void StreamPipeline::emitNumbersOfRows() {
  for (BlockArgument argument : frame.getBody().getArguments())
    if (!KernelSpace::hasColumns(argument) &&
        isa<FloatType>(getElementTypeOrSelf(argument.getType())) &&
        llvm::any_of(argument.getUses(), [&](OpOperand &use) {
          return frame.space.readsStream(use) &&
                 getSizeOperand(use.getOwner()) != &use;
        }))
      frame.emitter.emit(argument, /*ofFactor=*/true);
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
    emitNumbersOfRows();
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

/// The tile of the right factor of `dot`, no inner product.
Value StreamPipeline::getRight(tile::DotOp dot) const {
  const unsigned right = frame.operands.findFactor(dot, 1);
  auto it = shared.find(right);
  return it == shared.end() ? outer->getTile(right) : inner.getTile(it->second);
}

/// Begins the inner product `dot` of the step.
void StreamPipeline::beginInner(tile::DotOp dot) {
  RankedTensorType type =
      frame.emitter.getTileType(dot.getSumType(), /*ofFactor=*/true);
  const unsigned rows = frame.space.getRowFactor(dot), others = 1 - rows;
  begun[dot] = tile::DotOp::create(
      builder, tile::PendingType::get(builder.getContext(), type),
      whole.getTile(frame.operands.findFactor(dot, rows)),
      inner.getTile(frame.operands.findFactor(dot, others)),
      /*accumulator=*/Value(),
      ArrayRef<int64_t>{dot.getContract()[rows], dot.getContract()[others]});
}

/// The first inner product of a transposed factor that is read begins the other
/// ones behind it: tensor cores multiply for these while threads compute of it.
Value StreamPipeline::emitInner(tile::DotOp dot) {
  if (innerLeft == innerDots.size()) {
    inner.await(number);
    begun.clear();
  }
  const bool isFirst = begun.empty();
  if (!begun.contains(dot))
    beginInner(dot);
  if (isFirst && frame.space.isTransposed())
    for (tile::DotOp other : innerDots)
      if (!begun.contains(other))
        beginInner(other);
  const auto *it = begun.find(dot);
  Value tile = waitForSum(builder, it->second, begun.end() - it - 1);
  if (--innerLeft == 0 && (!sharesInner() || outerLeft == 0))
    inner.release(number);
  return tile;
}

Value StreamPipeline::addProducts(tile::DotOp dot, Value left, Value sum) {
  left = frame.emitter.roundLeft(dot, left);
  if (outer && outerLeft == frame.space.getDots().size())
    outer->await(number);
  auto pending = tile::PendingType::get(builder.getContext(),
                                        cast<RankedTensorType>(sum.getType()));
  Value begun = tile::BeginDotsOp::create(builder, pending, sum);
  Value more = tile::DotOp::create(builder, pending, left, getRight(dot), begun,
                                   ArrayRef<int64_t>{1, dot.getContract()[1]});
  Value total = waitForSum(builder, more);
  if (--outerLeft == 0) {
    if (outer)
      outer->release(number);
    if (sharesInner() && innerLeft == 0)
      inner.release(number);
  }
  return total;
}
