//===- StreamPipeline.cpp - Streamed values between products --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/roles/StreamPipeline.h"

#include "dialect/Rows.h"
#include "dialect/Warps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/products/Boxes.h"
#include "passes/roles/UnevenTiles.h"
#include "passes/schedule/MatmulRules.h"

using namespace mlir;
using namespace bastile;

/// The products whose results are streamed, in the order in which what is
/// summed over the stream needs them, operand by operand.
static SmallVector<tile::DotOp> getInnerDots(const ProgramFrame &frame) {
  SetVector<Operation *> dots;
  DenseSet<Operation *> seen;
  std::function<void(Value)> visit = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !seen.insert(op).second)
      return;
    for (Value operand : getValueOperands(op))
      visit(operand);
    if (auto dot = dyn_cast<tile::DotOp>(op); dot && frame.space.isInner(dot))
      dots.insert(dot);
  };
  for (Operation &op : frame.getBody().without_terminator())
    if (frame.space.reducesStream(&op))
      visit(op.getResult(0));
  return llvm::map_to_vector(
      dots, [](Operation *dot) { return cast<tile::DotOp>(dot); });
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
findShared(const ProgramFrame &frame, const MatmulShape &shape,
           ArrayRef<tile::DotOp> innerDots) {
  ArrayRef<Operand> operands = frame.operands.getAll();
  llvm::SmallDenseMap<unsigned, unsigned> shared;
  if (!MatmulFields(frame.schedule).sharesStages(shape))
    return shared;
  for (tile::DotOp dot : frame.space.getDots()) {
    if (!mayShareStages(dot, frame.space))
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

/// The operands that have numbers of streamed rows.
static SmallVector<unsigned> getNumbers(const ProgramFrame &frame) {
  return llvm::map_to_vector(getStreamedNumbers(frame.getBody(), frame.space),
                             [&](BlockArgument argument) {
                               return frame.operands.find(argument,
                                                          /*ofFactor=*/true);
                             });
}

/// The number of streamed rows that is read first, if there is one.
static BlockArgument findFirstNumber(const ProgramFrame &frame) {
  const SmallVector<BlockArgument> all =
      getStreamedNumbers(frame.getBody(), frame.space);
  for (Operation &op : frame.getBody())
    for (Value operand : op.getOperands())
      if (auto argument = dyn_cast<BlockArgument>(operand);
          argument && llvm::is_contained(all, argument))
        return argument;
  return {};
}

StreamPipeline::StreamPipeline(ProgramFrame &frame)
    : StreamPipeline(frame, MatmulShape(frame.kernel, frame.space)) {}

StreamPipeline::StreamPipeline(ProgramFrame &frame, const MatmulShape &shape)
    : frame(frame), builder(frame.builder), following(frame.getBody()),
      innerDots(getInnerDots(frame)),
      shared(findShared(frame, shape, innerDots)),
      numbers(frame, getNumbers(frame), frame.schedule.getStages()),
      whole(frame, getFactors(frame, innerDots, /*ofRows=*/true),
            getWholeStages(shape),
            /*rank=*/Value(), /*offset=*/0),
      inner(frame, getFactors(frame, innerDots, /*ofRows=*/false),
            frame.schedule.getStages(), /*rank=*/Value(), whole.getBytes(),
            &numbers),
      firstNumber(findFirstNumber(frame)) {
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
  isBand = shape.mostShown.has_value();
  isOneStep = isBand && endsSteps() && visited.masks.empty() &&
              llvm::all_of(visited.conditions,
                           [](const MaskCondition &condition) {
                             return condition.numbers.empty();
                           }) &&
              frame.extents.getMatrixRows() + *shape.mostShown - 1 <=
                  frame.extents.streamed;
  longest = findLongest();
  findNumbersOfRows();
}

void StreamPipeline::findNumbersOfRows() {
  MaskConditions all = visited.conditions;
  for (const MaskConditions &mask : visited.masks)
    llvm::append_range(all, mask);
  SmallVector<StringAttr> summed = frame.getSummedBatch();
  for (const MaskCondition &condition : all)
    for (auto [number, times] : condition.numbers)
      if (isOfRow(number) && llvm::none_of(frame.space.getProjection(number),
                                           [&](Attribute place) {
                                             return llvm::is_contained(summed,
                                                                       place);
                                           }))
        numbersOfRows.insert(number);
}

/// Where numbers of rows bound the steps or are copied, a warp reads them.
int64_t StreamPipeline::getCopyThreads() const {
  const bool readsRows = !numbersOfRows.empty() || !numbers.isEmpty() ||
                         llvm::any_of(visited.conditions, hasNumbersOfRows);
  return readsRows ? kWarp : 1;
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

/// Whether the cache holds the streamed factors of all matrices, beside what
/// programs read and store once.
Value StreamPipeline::fitsCache() {
  constexpr int64_t cacheBytes = 32 << 20;
  int64_t stepBytes = inner.getStepBytes();
  SmallVector<unsigned> streamed = inner.getOperands();
  if (outer) {
    stepBytes += outer->getStepBytes();
    llvm::append_range(streamed, outer->getOperands());
  }
  Value steps =
      arith::CeilDivUIOp::create(builder, frame.emitter.getSize("k"),
                                 frame.constant(frame.extents.streamed));
  Value bytes = arith::MulIOp::create(
      builder, arith::MulIOp::create(builder, steps, frame.constant(stepBytes)),
      frame.countMatrices(streamed));
  return arith::CmpIOp::create(builder, arith::CmpIPredicate::ule, bytes,
                               frame.constant(cacheBytes));
}

void StreamPipeline::findPlace(Value place, Value blockRow) {
  if (isBand)
    frame.findPlaceOfRows(place, /*lastFirst=*/false);
  else if (longest != Longest::None)
    findUnevenPlace(frame, place, longest == Longest::Last, fitsCache());
  else
    frame.findPlace(place, blockRow);
}

//===----------------------------------------------------------------------===//
// The roles
//===----------------------------------------------------------------------===//

/// The steps of a tile that its mask leaves. The first one may stand ahead of
/// the loop, and is computed in any case, unless its factor is added to sums of
/// the streamed rows.
StepRange StreamPipeline::emitRange() {
  StepRange range = emitStepRange(builder, frame.emitter, frame.space, visited,
                                  /*fromFirst=*/isBand);
  if (!added) {
    range.end = arith::MaxUIOp::create(
        builder, range.end,
        arith::AddIOp::create(builder, range.first, frame.constant(1)));
    return range;
  }
  // Steps that no tile has are the first tile's: its part of a sum is the one
  // that is stored.
  Value zero = frame.constant(0);
  Value isFirst = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                                        frame.emitter.row, zero);
  range.first = arith::SelectOp::create(builder, isFirst, zero, range.first);
  return range;
}

/// Builds `body`, which carries values, for the steps of `range`.
SmallVector<Value> StreamPipeline::buildOverSteps(const StepRange &range,
                                                  ValueRange initial,
                                                  ProgramFrame::Body body) {
  if (isOneStep)
    return frame.buildStep(
        range.first, [&]() { return body(initial); }, range.origin);
  return frame.buildOverSteps(range.first, range.end, initial, body,
                              range.origin);
}

Value StreamPipeline::copy(Value at, Value turn) {
  whole.copy(turn);
  auto copyStep = [&](ValueRange before) -> SmallVector<Value> {
    Value step = before.front();
    inner.copy(step);
    if (outer)
      outer->copy(step);
    inner.copyNumbers(step);
    return {arith::AddIOp::create(builder, step, frame.constant(1))};
  };
  return buildOverTile(at, copyStep).front();
}

SmallVector<Value> StreamPipeline::buildOverTile(ValueRange initial,
                                                 ProgramFrame::Body body) {
  return frame.buildOverBatch(frame.getSummedBatch(), initial,
                              [&](ValueRange before) {
                                const StepRange range = emitRange();
                                return buildOverSteps(range, before, body);
                              });
}

Value StreamPipeline::awaitWhole(unsigned operand) {
  whole.await(frame.constant(0));
  return whole.getTile(operand);
}

Value StreamPipeline::emitLastRow() {
  return emitLastVisitor(builder, frame.emitter, frame.space, visited);
}

/// Loads what transposed factors have of narrow numbers of their rows ahead of
/// the products of a step, whose time covers that of the loads. Others are in
/// shared memory. Integers are those of masks, which few steps need, and would
/// take registers in all of them.
void StreamPipeline::loadNumbersOfRows() {
  for (BlockArgument argument : frame.getBody().getArguments()) {
    Type element = getElementTypeOrSelf(argument.getType());
    if (isa<FloatType>(element) && !element.isF32() &&
        isNumberOfStream(argument, frame.space))
      frame.emitter.emit(argument, /*ofFactor=*/true);
  }
}

Value StreamPipeline::compute(Value at, Value turn) {
  StreamSums streamSums(builder, frame.emitter, following, isOneStep);
  for (Operation *op : sums)
    streamSums.add(op);
  whole.await(turn);
  SmallVector<Value> initial = streamSums.createInitial();
  initial.push_back(at);
  frame.emitter.emitInner = [&](tile::DotOp dot) { return emitInner(dot); };
  frame.emitter.emitStaged = [&](unsigned operand) {
    return inner.takeNumbers(operand);
  };
  SmallVector<Value> totals = frame.buildOverBatch(
      frame.getSummedBatch(), initial,
      [&](ValueRange before) { return computeSteps(streamSums, before); });
  frame.emitter.emitInner = nullptr;
  frame.emitter.emitStaged = nullptr;
  whole.release(turn);
  Value next = totals.pop_back_val();
  streamSums.finish(totals);
  return next;
}

/// Builds `body`, which makes other values of `initial`, for a `range` that has
/// steps.
SmallVector<Value> StreamPipeline::buildUnlessEmpty(
    const StepRange &range, ValueRange initial,
    llvm::function_ref<SmallVector<Value>()> body) {
  Value hasSteps = arith::CmpIOp::create(builder, arith::CmpIPredicate::ult,
                                         range.first, range.end);
  auto branch = scf::IfOp::create(builder, initial.getTypes(), hasSteps,
                                  /*withElseRegion=*/true);
  // What the branch computes is not there behind it.
  SpaceEmitter::Scope scope(frame.emitter);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, initial);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, body());
  return SmallVector<Value>(branch.getResults());
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Finds the tiles of the right factors of products that are no inner ones,
/// among those that have been waited for last.
void StreamPipeline::findRights() {
  for (tile::DotOp dot : frame.space.getDots()) {
    const unsigned right = frame.operands.findFactor(dot, 1);
    auto it = shared.find(right);
    rights[dot] =
        it == shared.end() ? outer->getTile(right) : inner.getTile(it->second);
  }
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

/// Makes `newNumber` the step that is computed, and waits for its numbers and
/// what its inner products read. A warpgroup waits ahead of its turn: even a
/// wait for what is there takes time, in which the tensor cores would have
/// nothing to do.
void StreamPipeline::awaitStep(Value newNumber) {
  number = newNumber;
  inner.await(number);
  if (firstNumber)
    frame.emitter.emit(firstNumber, /*ofFactor=*/true);
}

/// Begins the inner products of the step.
void StreamPipeline::beginStep() {
  innerLeft = innerDots.size();
  pending = std::numeric_limits<size_t>::max();
  begun.clear();
  for (tile::DotOp dot : innerDots)
    beginInner(dot);
}

/// Waits for an inner product of the step.
Value StreamPipeline::emitInner(tile::DotOp dot) {
  const auto *it = begun.find(dot);
  pending = std::min<size_t>(pending, begun.end() - it - 1 + running);
  Value tile = waitForSum(builder, it->second, pending);
  if (--innerLeft == 0 && !sharesInner() && numbers.isEmpty())
    inner.release(number);
  return tile;
}

/// Says that the warpgroup has read the numbers of the step. With them, it has
/// read all that their stages have, but for what products of both kinds read.
void StreamPipeline::releaseNumbers() {
  if (!numbers.isEmpty() && !sharesInner())
    inner.release(number);
}

/// Begins the product `dot` of `left`, which is added to `sum`.
Value StreamPipeline::beginProduct(tile::DotOp dot, Value left, Value sum) {
  auto pending = tile::PendingType::get(builder.getContext(),
                                        cast<RankedTensorType>(sum.getType()));
  Value begun = tile::BeginDotsOp::create(builder, pending, sum);
  return tile::DotOp::create(builder, pending, left, rights.lookup(dot), begun,
                             ArrayRef<int64_t>{1, dot.getContract()[1]});
}

/// Waits for what the products of step `last` read. What its inner products
/// read as well has been there since.
void StreamPipeline::awaitProducts(Value last) {
  if (outer)
    outer->await(last);
  if (sharesInner())
    inner.select(last);
  findRights();
}

/// Begins products whose right factors have been waited for, with what was
/// added up ahead of their step and its left factors, in the order of the sums.
SmallVector<Value> StreamPipeline::beginProducts(Value last, ValueRange before,
                                                 ValueRange factors) {
  SmallVector<Value> products;
  for (auto [index, op] : llvm::enumerate(sums))
    if (auto dot = dyn_cast<tile::DotOp>(op)) {
      Value factor = factors[products.size()];
      // Ahead of its own product, which reads the registers of the factor.
      if (added && added->takes(dot))
        added->give(factor, last);
      products.push_back(beginProduct(dot, factor, before[index]));
    }
  running = products.size();
  return products;
}

/// Makes what the products have added up the `totals` of their sums.
void StreamPipeline::waitForProducts(ArrayRef<Value> products,
                                     MutableArrayRef<Value> totals) {
  const Value *product = products.begin();
  for (auto [index, op] : llvm::enumerate(sums))
    if (isa<tile::DotOp>(op)) {
      --running;
      totals[index] = waitForSum(builder, *product++, running);
    }
}

/// Says that the products of step `last` have read their right factors.
void StreamPipeline::releaseProducts(Value last) {
  if (outer)
    outer->release(last);
  if (sharesInner())
    inner.release(last);
}
