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
    return addTerm(getConstant(condition, isSmallest), condition.row,
                   isFirst ? emitter.row
                           : getLast(emitter.row,
                                     emitter.getExtents().getMatrixRows(),
                                     condition.row ? "m" : ""));
  }
  /// The smallest or the largest that `condition` has of no position, in any
  /// row of the tile.
  Value getConstant(const MaskCondition &condition, bool isSmallest = true) {
    Value sum = constant(condition.constant);
    for (auto [number, times] : condition.numbers) {
      auto [least, most] = getNumbers(number);
      Value own = isSmallest == (times > 0) ? least : most;
      sum = add(sum, arith::MulIOp::create(builder, own, constant(times)));
    }
    return sum;
  }
  /// Narrows the places along k from `first` on, ahead of `end`, to those for
  /// which `conditions` hold in some row of the tile, or in all of its rows.
  void narrow(Value &first, Value &end, const MaskConditions &conditions,
              bool inAllRows);
  /// Whether integers of 32 bits hold all that the numbers of `conditions` are
  /// added to; null if there are none.
  Value areSmall(const MaskConditions &conditions);

private:
  /// The least and the greatest of `number` in the tile.
  std::pair<Value, Value> getNumbers(BlockArgument number) {
    if (isOfRow(number))
      return emitter.emitNumbersOfRows(number);
    Value only = emitter.emitNumber(number);
    return {only, only};
  }
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

void PlaceBuilder::narrow(Value &first, Value &end,
                          const MaskConditions &conditions, bool inAllRows) {
  for (const MaskCondition &condition : conditions) {
    Value bound = getOfRow(condition, /*isSmallest=*/inAllRows);
    if (condition.column > 0)
      first = largest(first, negate(bound));
    else if (condition.column < 0)
      end = smallest(end, add(bound, 1));
    else
      end =
          arith::SelectOp::create(builder, isNegative(bound), constant(0), end);
  }
}

/// The formula's integers wrap around, those of places do not.
Value PlaceBuilder::areSmall(const MaskConditions &conditions) {
  constexpr int64_t most = int64_t{1} << 28;
  llvm::SmallSetVector<Value, 2> numbers;
  for (const MaskCondition &condition : conditions)
    for (auto [number, times] : condition.numbers)
      numbers.insert(number);
  Value all;
  auto require = [&](Value number) {
    Value own = arith::CmpIOp::create(builder, arith::CmpIPredicate::ult,
                                      add(number, most), constant(2 * most));
    all = all ? arith::AndIOp::create(builder, all, own).getResult() : own;
  };
  for (Value number : numbers) {
    auto [least, greatest] = getNumbers(cast<BlockArgument>(number));
    require(least);
    if (greatest != least)
      require(greatest);
  }
  return all;
}

/// Emits whether `mask` hides some row of the left factor as a whole; null if
/// it surely does not. Its bounds are linear in the number of the row, so that
/// the first and the last row tell.
static Value emitHidesRow(ImplicitLocOpBuilder &builder, SpaceEmitter &emitter,
                          const KernelSpace &space,
                          const MaskConditions &mask) {
  PlaceBuilder places(builder, emitter);
  Value rows = emitter.getSize(space.isTransposed() ? "k" : "m");
  Value columns = emitter.getSize(space.isTransposed() ? "m" : "k");
  Value least;
  // Adds that what `condition` and `offset` have in any row is not negative.
  auto require = [&](const MaskCondition &condition, Value offset = Value()) {
    const int64_t row = condition.row;
    if (row >= 0 && condition.constant >= 0 && condition.numbers.empty() &&
        !offset)
      return;
    Value own = places.getConstant(condition);
    if (row < 0)
      own = places.add(
          places.add(own, -row),
          arith::MulIOp::create(builder, rows, emitter.constant(row)));
    if (offset)
      own = places.add(own, offset);
    least = least ? places.smallest(least, own) : own;
  };
  for (const MaskCondition &lower : mask) {
    if (lower.column <= 0) {
      require(lower);
      continue;
    }
    MaskCondition last = lower;
    last.constant -= 1;
    require(last, columns);
    for (const MaskCondition &upper : mask)
      if (upper.column < 0) {
        MaskCondition both = lower;
        both.add(upper, 1);
        require(both);
      }
  }
  return least ? places.isNegative(least) : Value();
}

/// Emits conditions in each of which all steps are made, whatever `visited`
/// says of them.
static SmallVector<Value> emitVisitsAll(ImplicitLocOpBuilder &builder,
                                        SpaceEmitter &emitter,
                                        const KernelSpace &space,
                                        const Visited &visited) {
  SmallVector<Value> conditions;
  MaskConditions all = visited.conditions;
  for (const MaskConditions &mask : visited.masks) {
    llvm::append_range(all, mask);
    if (Value hidesRow = emitHidesRow(builder, emitter, space, mask))
      conditions.push_back(hidesRow);
  }
  if (Value areSmall = PlaceBuilder(builder, emitter).areSmall(all))
    conditions.push_back(arith::XOrIOp::create(
        builder, areSmall,
        arith::ConstantOp::create(builder, builder.getBoolAttr(true))));
  return conditions;
}

StepRange bastile::emitStepRange(ImplicitLocOpBuilder &builder,
                                 SpaceEmitter &emitter,
                                 const KernelSpace &space,
                                 const Visited &visited, bool fromFirst) {
  PlaceBuilder places(builder, emitter);
  Value step = emitter.constant(emitter.getExtents().streamed);
  Value zero = emitter.constant(0), size = emitter.getSize("k");
  Value first = zero, end = size;
  if (visited.conditions.empty())
    return {first, arith::CeilDivUIOp::create(builder, end, step),
            /*origin=*/Value()};
  places.narrow(first, end, visited.conditions, /*inAllRows=*/false);
  end = places.largest(end, zero);
  for (Value condition : emitVisitsAll(builder, emitter, space, visited)) {
    first = arith::SelectOp::create(builder, condition, zero, first);
    end = arith::SelectOp::create(builder, condition, size, end);
  }
  if (fromFirst) {
    Value length =
        arith::SubIOp::create(builder, places.largest(first, end), first);
    return {zero, arith::CeilDivUIOp::create(builder, length, step), first};
  }
  return {arith::DivUIOp::create(builder, first, step),
          arith::CeilDivUIOp::create(builder, end, step), /*origin=*/Value()};
}

Value bastile::emitLastVisitor(ImplicitLocOpBuilder &builder,
                               SpaceEmitter &emitter, const KernelSpace &space,
                               const Visited &visited) {
  PlaceBuilder places(builder, emitter);
  Value all = places.add(emitter.getSize("m"), -1), last = all;
  Value end = places.add(emitter.stream, emitter.getExtents().streamed - 1);
  for (const MaskCondition &condition : visited.conditions) {
    assert(condition.row == -1 && condition.column == 1);
    last = places.smallest(
        last, places.add(end, places.getConstant(condition,
                                                 /*isSmallest=*/false)));
  }
  if (visited.conditions.empty())
    return last;
  for (Value condition : emitVisitsAll(builder, emitter, space, visited))
    last = arith::SelectOp::create(builder, condition, all, last);
  return last;
}

Value bastile::emitIsShown(ImplicitLocOpBuilder &builder, SpaceEmitter &emitter,
                           const MaskConditions &conditions) {
  PlaceBuilder places(builder, emitter);
  // Ahead of the loop, from which and up to which place steps may begin.
  Value first, last;
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(emitter.getLoop());
    Value size = emitter.getSize("k");
    first = emitter.constant(0);
    Value end = size;
    places.narrow(first, end, conditions, /*inAllRows=*/true);
    if (Value areSmall = places.areSmall(conditions))
      first = arith::SelectOp::create(builder, areSmall, first, size);
    // The last step may reach beyond the end of k, where nothing is.
    Value isWhole =
        arith::CmpIOp::create(builder, arith::CmpIPredicate::sge, end, size);
    last = arith::SelectOp::create(
        builder, isWhole, size,
        places.add(end, -emitter.getExtents().streamed));
  }
  auto compare = [&](arith::CmpIPredicate predicate, Value place) -> Value {
    return arith::CmpIOp::create(builder, predicate, emitter.stream, place);
  };
  return arith::AndIOp::create(builder,
                               compare(arith::CmpIPredicate::sge, first),
                               compare(arith::CmpIPredicate::sle, last));
}
