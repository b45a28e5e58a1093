//===- StreamSums.cpp - What a loop over k adds up ------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/products/StreamSums.h"

#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/analysis/LeastValues.h"
#include "passes/building/SumTiles.h"
#include <cmath>

using namespace mlir;
using namespace bastile;

/// How `op` combines: products are added up.
static tile::ReduceKind getKind(Operation *op) {
  auto reduce = dyn_cast<tile::ReduceOp>(op);
  return reduce ? reduce.getKind() : tile::ReduceKind::Add;
}

Value StreamSums::splat(Type type, double number) {
  return createSplat(builder, builder.getLoc(), type, number);
}

Value StreamSums::isEqual(Value tile, double number) {
  return createIsEqual(builder, builder.getLoc(), tile, number);
}

/// `tile` with each row multiplied by the number that `row` has for it.
Value StreamSums::scale(Value tile, Value row) {
  if (row.getType() != tile.getType())
    row = tile::BroadcastOp::create(builder, tile.getType(), row,
                                    /*like=*/Value());
  return arith::MulFOp::create(builder, tile, row);
}

/// The tile of the result of `op`.
RankedTensorType StreamSums::getResultType(Operation *op) const {
  return emitter.getTileType(cast<RankedTensorType>(op->getResult(0).getType()),
                             /*ofFactor=*/false);
}

/// The tile of the accumulator of `op` in the loop. No step needs the sum of a
/// row, so that threads in the layout of products leave apart what each of them
/// adds up of it, and meet behind the loop. A maximum is needed in each step.
RankedTensorType StreamSums::getAccumulatorType(Operation *op) const {
  RankedTensorType type = getResultType(op);
  auto layout = dyn_cast_or_null<tile::MmaAttr>(type.getEncoding());
  if (!layout || !isa<tile::ReduceOp>(op) ||
      getKind(op) != tile::ReduceKind::Add || type.getDimSize(0) == 1)
    return type;
  return type.clone({type.getDimSize(0), layout.getChunkColumns()});
}

SmallVector<Value> StreamSums::createInitial() {
  SmallVector<Value> initial;
  for (Operation *op : getOps())
    initial.push_back(createNeutralTile(builder, builder.getLoc(),
                                        getAccumulatorType(op), getKind(op)));
  for (Operation *op : accumulators.getCounted()) {
    auto type = cast<RankedTensorType>(following.lookup(op)->maximum.getType());
    initial.push_back(splat(emitter.getTileType(type, false), 0));
  }
  lagging.clear();
  for (Operation *op : getOps())
    if (const FollowingSum *sum = following.lookup(op); sum && lags(*sum))
      lagging.insert(sum->subtracted);
  for (Value subtracted : lagging)
    initial.push_back(
        splat(emitter.getTileType(cast<RankedTensorType>(subtracted.getType()),
                                  /*ofFactor=*/false),
              -std::numeric_limits<float>::max()));
  return initial;
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

/// Whether the scale of sums that follow `subtracted` may stand as it is where
/// the maximum stays the same: the scale is 1 there, or the maximum is infinite
/// and each sum 0 or NaN, as every element counts. Where m may decrease, sums
/// are 0 up to then, and the scale is infinite.
bool StreamSums::takesAnyScale(Value subtracted) const {
  return llvm::all_of(getOps(), [&](Operation *op) {
    const FollowingSum *sum = following.lookup(op);
    return !sum || sum->subtracted != subtracted ||
           (!sum->mayDecrease &&
            llvm::all_of(sum->powers, [](const Power &power) {
              return power.branches.empty();
            }));
  });
}

/// Whether what `sum` adds up is better relative to an earlier maximum: a warp
/// has whole rows, and powers are those of 2, whose base is finite. Their
/// product with a coefficient of 16 bits could be beyond the largest float of
/// that size. To ask all threads of a warp takes as long as to multiply
/// products of about 96 columns: on an H200, attention with heads of 64
/// takes 1.02 of the time this way, with heads of 96 the same, of 128 0.985 and
/// of 256 0.92.
bool StreamSums::lags(const FollowingSum &sum) const {
  constexpr int64_t mostColumns = 96;
  int64_t columns = 0;
  for (Operation *op : getOps()) {
    const FollowingSum *other = following.lookup(op);
    if (!other || other->subtracted != sum.subtracted)
      continue;
    if (other->hasCoefficients ||
        !emitter.getPowersOf2().lookup(other->powers.front().result))
      return false;
    RankedTensorType type = getResultType(op);
    if (!isa_and_nonnull<tile::MmaAttr>(type.getEncoding()))
      return false;
    columns += isa<tile::DotOp>(op) ? type.getDimSize(1) : 0;
  }
  return columns > mostColumns && takesAnyScale(sum.subtracted);
}

/// The number of the reference of `subtracted` among what the loop carries.
std::optional<size_t> StreamSums::findReference(Value subtracted) const {
  const auto *it = llvm::find(lagging, subtracted);
  if (it == lagging.end())
    return std::nullopt;
  return getOps().size() + accumulators.getCounted().size() +
         (it - lagging.begin());
}

/// A step whose base stays `reference` for all rows of a warp until one of them
/// has grown by more than 8 in units of log 2.
StreamSums::Step StreamSums::createLaggingStep(const FollowingSum &sum,
                                               Value reference, Value maximum) {
  constexpr double mostGrowth = 8;
  Value newest =
      createExponentOf2(builder, builder.getLoc(),
                        emitter.emitFrom(sum.subtracted, sum.maximum, maximum));
  Value growth = arith::SubFOp::create(builder, newest, reference);
  Value isLarge =
      arith::CmpFOp::create(builder, arith::CmpFPredicate::OGT, growth,
                            splat(growth.getType(), mostGrowth));
  Value isAny = tile::AnyOp::create(builder, isLarge);
  Value base = arith::SelectOp::create(
      builder,
      tile::BroadcastOp::create(builder, isLarge.getType(), isAny,
                                /*like=*/Value()),
      newest, reference);
  Value scale = math::Exp2Op::create(
      builder, arith::SubFOp::create(builder, reference, base));
  return {sum.subtracted, Value(), scale, base, isAny, {}};
}

/// Where the maximum stays the same, infinite or not, sums stay as they are. So
/// do they where m decreases, as they are 0 up to then.
StreamSums::Step StreamSums::createStep(const FollowingSum &sum,
                                        ValueRange before, ValueRange after) {
  const size_t number = accumulators.getNumber(sum.maximum);
  if (std::optional<size_t> reference = findReference(sum.subtracted))
    return createLaggingStep(sum, before[*reference], after[number]);
  Value from = emitter.emitFrom(sum.subtracted, sum.maximum, before[number]);
  Value to = emitter.emitFrom(sum.subtracted, sum.maximum, after[number]);
  Value base = findLeast(sum.subtracted)
                   ? to
                   : createBase(builder, builder.getLoc(), to);
  Step step{sum.subtracted, base, Value(), Value(), Value(), {}};
  if (emitter.getPowersOf2().lookup(sum.powers.front().result)) {
    step.exponent = createExponentOf2(builder, builder.getLoc(), base);
    step.scale = math::Exp2Op::create(
        builder,
        arith::SubFOp::create(
            builder, createExponentOf2(builder, builder.getLoc(), from),
            step.exponent));
  } else {
    step.scale = createScale(builder, builder.getLoc(), from, to);
  }
  if (!step.exponent || !takesAnyScale(sum.subtracted))
    step.scale = selectScale(builder, builder.getLoc(), from, to, step.scale,
                             sum.mayDecrease);
  return step;
}

StreamSums::Step &StreamSums::getStep(const FollowingSum &sum,
                                      ValueRange before, ValueRange after) {
  for (Step &step : steps)
    if (step.subtracted == sum.subtracted)
      return step;
  steps.push_back(createStep(sum, before, after));
  return steps.back();
}

Value StreamSums::rescale(const StepProduct &product, Value sum) {
  if (!product.factor)
    return sum;
  if (!product.isScaled)
    return scale(sum, product.factor);
  auto branch = scf::IfOp::create(builder, sum.getType(), product.isScaled,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, scale(sum, product.factor));
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, sum);
  return branch.getResult(0);
}

/// Whether only the maximum and the powers of `sum` read x, so that elements
/// beyond the end of k are left out of the powers once x has minus infinity
/// there.
static bool isReadByPowers(const FollowingSum &sum) {
  return !sum.hasCoefficients &&
         llvm::all_of(sum.powers,
                      [&](const Power &power) {
                        return power.exponent == sum.exponent;
                      }) &&
         llvm::all_of(sum.exponent.getUses(), [&](OpOperand &use) {
           Operation *user = use.getOwner();
           if (user == sum.maximum.getDefiningOp() ||
               getSizeOperand(user) == &use)
             return true;
           auto difference = dyn_cast<arith::SubFOp>(user);
           return difference &&
                  llvm::any_of(sum.powers, [&](const Power &power) {
                    return power.exponent == sum.exponent &&
                           power.subtracted == difference.getRhs();
                  });
         });
}

/// Makes the streamed values between the maximum and `power` relative to the
/// step's base.
void StreamSums::mapPower(const Power &power, Step &step) {
  if (step.exponent) {
    if (step.powers.insert(power.result).second)
      emitter.mapStreamed(power.result,
                          emitter.emitPower(power.exponent, step.exponent));
    return;
  }
  auto type = cast<RankedTensorType>(power.subtracted.getType());
  emitter.mapStreamed(power.subtracted,
                      tile::BroadcastOp::create(builder,
                                                emitter.getTileType(type, true),
                                                step.base, /*like=*/Value()));
  if (power.logarithm)
    emitter.mapStreamed(
        power.logarithm,
        splat(emitter.getTileType(
                  cast<RankedTensorType>(power.logarithm.getType()), true),
              0));
}

/// Makes the streamed values between the maximum and the terms relative to the
/// step's base, and takes out of the terms what divides all of them.
void StreamSums::mapTerms(const FollowingSum &sum, Step &step) {
  for (const Power &power : sum.powers)
    mapPower(power, step);
  for (Value broadcast : sum.divisors)
    for (Operation *user : broadcast.getUsers())
      if (auto quotient = dyn_cast<arith::DivFOp>(user);
          quotient && quotient.getRhs() == broadcast)
        emitter.mapStreamed(quotient, emitter.emit(quotient.getLhs(), true));
  for (Value broadcast : sum.reciprocals)
    for (Operation *user : broadcast.getUsers())
      if (auto product = dyn_cast<arith::MulFOp>(user))
        emitter.mapStreamed(product, emitter.emit(product.getLhs() == broadcast
                                                      ? product.getRhs()
                                                      : product.getLhs(),
                                                  true));
}

/// What is rounded to `value`, if that is nothing but the left factor of
/// products: a program rounds it once it needs the registers. Otherwise
/// `value`.
static Value getUnrounded(Value value) {
  auto rounding = value.getDefiningOp<arith::TruncFOp>();
  const bool isFactor = llvm::all_of(value.getUses(), [](OpOperand &use) {
    return isa<tile::DotOp>(use.getOwner()) && use.getOperandNumber() == 0;
  });
  return rounding && isFactor ? rounding.getIn() : value;
}

/// The tile of what `op` sums in this step, and of elements beyond its end.
Value StreamSums::emitTerms(Operation *op) {
  return emitter.emit(getUnrounded(op->getOperand(0)), true);
}

/// For each row, 1 if some term of `sum` counts in this step, and 0 if none.
Value StreamSums::emitCount(const FollowingSum &sum) {
  auto tensor = cast<RankedTensorType>(sum.exponent.getType());
  RankedTensorType type = emitter.getTileType(tensor, true);
  Value some = splat(type, 0);
  for (const Power &power : sum.powers)
    some = arith::MaximumFOp::create(
        builder, some,
        createCounts(builder, builder.getLoc(), type, power,
                     [&](Value value) { return emitter.emit(value, true); }));
  auto statistic = cast<RankedTensorType>(sum.maximum.getType());
  return tile::ReduceOp::create(builder, emitter.getTileType(statistic, false),
                                tile::ReduceKind::Max,
                                emitter.maskEnd(some, tile::ReduceKind::Add));
}

SmallVector<Value> StreamSums::combine(ValueRange before,
                                       AddProducts addProducts) {
  steps.clear();
  SmallVector<Value> after;
  for (auto [index, op] : llvm::enumerate(getOps())) {
    const FollowingSum *sum = following.lookup(op);
    Value old = before[index], factor, isScaled;
    if (sum) {
      Step &step = getStep(*sum, before, after);
      mapTerms(*sum, step);
      // Nothing has been added up ahead of the only step.
      if (!isOneStep) {
        factor = step.scale;
        isScaled = step.isScaled;
      }
    }
    const bool hasEnd = !sum || !isReadByPowers(*sum);
    if (auto dot = dyn_cast<tile::DotOp>(op)) {
      const bool isComputed = KernelSpace::isLeftComputed(dot);
      Value left = isComputed ? emitTerms(op) : Value();
      after.push_back(addProducts(
          {dot, left, isComputed && hasEnd, old, factor, isScaled, after}));
      continue;
    }
    if (factor)
      old = scale(old, factor);
    Value terms = emitTerms(op);
    if (hasEnd)
      terms = emitter.maskEnd(terms, getKind(op));
    // Powers of what lies beyond the end of k are 0 once x is minus infinity.
    for (Operation *other : getOps())
      if (const FollowingSum *powers = following.lookup(other);
          powers && powers->maximum == op->getResult(0) &&
          isReadByPowers(*powers))
        emitter.mapStreamed(powers->exponent, terms);
    auto type = cast<RankedTensorType>(old.getType());
    Value part = type.getDimSize(1) == 1
                     ? tile::ReduceOp::create(builder, type, getKind(op), terms)
                           .getResult()
                     : tile::FoldOp::create(builder, type, getKind(op), terms);
    if (const double c = emitter.getPowersOf2().getScale(op->getOperand(0));
        c != 1)
      part = arith::MulFOp::create(builder, part, splat(part.getType(), c));
    after.push_back(
        tile::ReduceOp::combine(builder, op->getLoc(), getKind(op), old, part));
  }
  for (Operation *op : accumulators.getCounted())
    after.push_back(
        arith::MaximumFOp::create(builder, accumulators.getCount(op, before),
                                  emitCount(*following.lookup(op))));
  for (Value subtracted : lagging) {
    const auto *step = llvm::find_if(
        steps, [&](const Step &step) { return step.subtracted == subtracted; });
    after.push_back(step->exponent);
  }
  return after;
}

//===----------------------------------------------------------------------===//
// Behind the loop
//===----------------------------------------------------------------------===//

/// The sum whose terms add up to `total` relative to m, or to an earlier one
/// that is the `reference`. With a `count`, it is 0 where a row has no terms.
Value StreamSums::finishFollowing(const FollowingSum &sum, Value total,
                                  Value count, Value reference) {
  Value subtracted = emitter.emit(sum.subtracted);
  // Powers of minus infinity less minus infinity have been added up as 0. A
  // maximum of nothing at all is minus infinity as well.
  Value isNone = isEqual(subtracted, -INFINITY);
  if (count)
    isNone = arith::AndIOp::create(
        builder, isNone,
        arith::XOrIOp::create(
            builder, isEqual(count, 0),
            arith::ConstantOp::create(
                builder, DenseElementsAttr::get(
                             cast<ShapedType>(isNone.getType()), true))));
  auto type = cast<RankedTensorType>(subtracted.getType());
  Value isEmpty =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                            emitter.getSize("k"), emitter.constant(0));
  auto number = [&](double value) -> Value {
    return arith::ConstantOp::create(
        builder, builder.getFloatAttr(type.getElementType(), value));
  };
  Value none =
      arith::SelectOp::create(builder, isEmpty, number(1), number(NAN));
  Value factor = arith::SelectOp::create(
      builder, isNone,
      tile::BroadcastOp::create(builder, type, none, /*like=*/Value()),
      splat(type, 1));
  if (reference)
    factor = arith::MulFOp::create(
        builder, factor,
        math::Exp2Op::create(
            builder,
            arith::SubFOp::create(
                builder, reference,
                createExponentOf2(builder, builder.getLoc(), subtracted))));
  // No term is divided where there are no columns: the sum stays 0.
  if (sum.divisor)
    factor = arith::DivFOp::create(
        builder, factor,
        arith::SelectOp::create(builder, isEmpty, splat(type, 1),
                                emitter.emit(sum.divisor)));
  if (!sum.divisor || !count || sum.dividesZeros)
    return scale(total, factor);
  // A row without terms has no quotient either.
  return scale(total, arith::SelectOp::create(builder, isEqual(count, 0),
                                              splat(type, 1), factor));
}

void StreamSums::finish(ValueRange totals) {
  for (auto [index, op] : llvm::enumerate(getOps())) {
    Value total = totals[index];
    RankedTensorType type = getResultType(op);
    if (total.getType() != type)
      total = tile::ReduceOp::create(builder, type, getKind(op), total);
    if (const FollowingSum *sum = following.lookup(op)) {
      std::optional<size_t> reference = findReference(sum->subtracted);
      total = finishFollowing(*sum, total, accumulators.getCount(op, totals),
                              reference ? totals[*reference] : Value());
    }
    emitter.map(op->getResult(0), total);
  }
}
