//===- MaskBounds.cpp - Which steps of a loop a mask leaves ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/products/MaskBounds.h"

using namespace mlir;
using namespace bastile;

namespace {

/// Builds integers of the places of a program and of its loop.
class PlaceBuilder {
public:
  PlaceBuilder(ImplicitLocOpBuilder &builder, SpaceEmitter &emitter)
      : builder(builder), emitter(emitter) {}

  Value constant(int64_t value) { return emitter.constant(value); }
  Value add(Value lhs, Value rhs) {
    return arith::AddIOp::create(builder, lhs, rhs);
  }
  Value add(Value lhs, int64_t rhs) { return add(lhs, constant(rhs)); }
  Value negate(Value value) {
    return arith::SubIOp::create(builder, constant(0), value);
  }
  Value smallest(Value lhs, Value rhs) {
    return arith::MinSIOp::create(builder, lhs, rhs);
  }
  Value largest(Value lhs, Value rhs) {
    return arith::MaxSIOp::create(builder, lhs, rhs);
  }
  Value isNegative(Value value) {
    return arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, value,
                                 constant(0));
  }

  /// The smallest or the largest that `condition` has of its row in the tile,
  /// and its constant.
  Value getOfRow(const MaskCondition &condition, bool isSmallest) {
    const bool isFirst = isSmallest == (condition.row > 0);
    return addTerm(constant(condition.constant), condition.row,
                   isFirst ? emitter.row
                           : getLast(emitter.row, emitter.getExtents().rows,
                                     condition.row ? "m" : ""));
  }
  /// `value` with the smallest that `condition` has of an element of the step.
  Value addSmallestOfColumn(Value value, const MaskCondition &condition) {
    return addTerm(value, condition.column,
                   condition.column > 0
                       ? emitter.stream
                       : getLast(emitter.stream, emitter.getExtents().streamed,
                                 condition.column ? "k" : ""));
  }

private:
  /// The last place of a tile of `length` elements along dimension `name`, if
  /// there is one.
  Value getLast(Value first, int64_t length, StringRef name) {
    if (name.empty())
      return Value();
    return add(smallest(add(first, length), emitter.getSize(name)), -1);
  }
  Value addTerm(Value value, int64_t factor, Value place) {
    if (factor == 0)
      return value;
    return add(value, factor > 0 ? place : negate(place));
  }

  ImplicitLocOpBuilder &builder;
  SpaceEmitter &emitter;
};

} // namespace

StepRange bastile::emitStepRange(ImplicitLocOpBuilder &builder,
                                 SpaceEmitter &emitter,
                                 const MaskConditions &conditions) {
  PlaceBuilder places(builder, emitter);
  Value step = emitter.constant(emitter.getExtents().streamed);
  Value first = emitter.constant(0), end = emitter.getSize("k");
  if (conditions.empty())
    return {first, arith::CeilDivUIOp::create(builder, end, step)};
  for (const MaskCondition &condition : conditions) {
    Value most = places.getOfRow(condition, /*isSmallest=*/false);
    if (condition.column > 0)
      first = places.largest(first, places.negate(most));
    else if (condition.column < 0)
      end = places.smallest(end, places.add(most, 1));
    else
      end = arith::SelectOp::create(builder, places.isNegative(most),
                                    emitter.constant(0), end);
  }
  end = places.largest(end, emitter.constant(0));
  return {arith::DivUIOp::create(builder, first, step),
          arith::CeilDivUIOp::create(builder, end, step)};
}

Value bastile::emitIsShown(ImplicitLocOpBuilder &builder, SpaceEmitter &emitter,
                           const MaskConditions &conditions) {
  PlaceBuilder places(builder, emitter);
  Value least;
  for (const MaskCondition &condition : conditions) {
    Value own = places.addSmallestOfColumn(
        places.getOfRow(condition, /*isSmallest=*/true), condition);
    least = least ? places.smallest(least, own) : own;
  }
  return arith::CmpIOp::create(builder, arith::CmpIPredicate::sge, least,
                               emitter.constant(0));
}
