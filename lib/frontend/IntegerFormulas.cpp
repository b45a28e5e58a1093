//===- IntegerFormulas.cpp - What formulas make of integers ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Integers are signed, and wrap around. MLIR leaves undefined what a processor
// may trap on or compute in its own way: a division by 0, a shift by more bits
// than there are, a float beyond the integers. A formula gives these one
// meaning on every target.
//
//===----------------------------------------------------------------------===//

#include "dialect/Tile.h"
#include "lib/frontend/Formulas.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace bastile;
using tile::Expr;

using Operands = ArrayRef<Value>;

namespace {

/// Builds ops on integers of the shape and type of one of them.
class Integers {
public:
  Integers(ImplicitLocOpBuilder &builder, Value like)
      : builder(builder), type(cast<RankedTensorType>(like.getType())),
        like(like) {}

  unsigned getWidth() const { return type.getElementTypeBitWidth(); }

  Value constant(int64_t number) {
    Value scalar = arith::ConstantOp::create(
        builder, builder.getIntegerAttr(type.getElementType(), number));
    return tile::BroadcastOp::create(builder, type, scalar, like);
  }
  Value compare(arith::CmpIPredicate predicate, Value lhs, int64_t rhs) {
    return arith::CmpIOp::create(builder, predicate, lhs, constant(rhs));
  }
  Value select(Value condition, Value lhs, Value rhs) {
    return arith::SelectOp::create(builder, condition, lhs, rhs);
  }

private:
  ImplicitLocOpBuilder &builder;
  RankedTensorType type;
  Value like;
};

} // namespace

/// The number that `value` repeats, if it is a constant.
static std::optional<int64_t> getNumber(Value value) {
  auto broadcast = value.getDefiningOp<tile::BroadcastOp>();
  APInt number;
  if (!broadcast ||
      !matchPattern(broadcast.getSource(), m_ConstantInt(&number)))
    return std::nullopt;
  return number.getSExtValue();
}

Value bastile::negateIntegers(ImplicitLocOpBuilder &builder,
                              Operands operands) {
  Integers like(builder, operands[0]);
  return arith::SubIOp::create(builder, like.constant(0), operands[0]);
}

Value bastile::absIntegers(ImplicitLocOpBuilder &builder, Operands operands) {
  return arith::MaxSIOp::create(builder, operands[0],
                                negateIntegers(builder, operands));
}

Value bastile::invertIntegers(ImplicitLocOpBuilder &builder,
                              Operands operands) {
  Integers like(builder, operands[0]);
  return arith::XOrIOp::create(builder, operands[0], like.constant(-1));
}

/// `divisor`, and 1 in place of 0 and of -1, on which processors may trap.
static Value getSafeDivisor(ImplicitLocOpBuilder &builder, Value divisor) {
  std::optional<int64_t> number = getNumber(divisor);
  if (number && *number != 0 && *number != -1)
    return divisor;
  Integers like(builder, divisor);
  // 0 and -1 are the only numbers n for which n + 1 is 0 or 1.
  Value next = arith::AddIOp::create(builder, divisor, like.constant(1));
  Value isUnsafe = like.compare(arith::CmpIPredicate::ule, next, 1);
  return like.select(isUnsafe, like.constant(1), divisor);
}

/// Whether `remainder`, of a division that rounds towards zero, has another
/// sign than `divisor`.
static Value isOnOtherSide(ImplicitLocOpBuilder &builder, Value remainder,
                           Value divisor) {
  Integers like(builder, divisor);
  Value signs = arith::XOrIOp::create(builder, remainder, divisor);
  Value differ = like.compare(arith::CmpIPredicate::slt, signs, 0);
  Value isLeft = like.compare(arith::CmpIPredicate::ne, remainder, 0);
  return arith::AndIOp::create(builder, differ, isLeft);
}

/// The number of bits by which to shift in place of dividing by `divisor`: if
/// it is a constant power of two.
static std::optional<int64_t> getShift(Value divisor) {
  std::optional<int64_t> number = getNumber(divisor);
  if (!number || *number < 1 || !llvm::isPowerOf2_64(*number))
    return std::nullopt;
  return llvm::Log2_64(*number);
}

Value bastile::floorDivide(ImplicitLocOpBuilder &builder, Operands operands) {
  Value dividend = operands[0], divisor = operands[1];
  Integers like(builder, dividend);
  if (std::optional<int64_t> shift = getShift(divisor))
    return arith::ShRSIOp::create(builder, dividend, like.constant(*shift));
  Value safe = getSafeDivisor(builder, divisor);
  Value quotient = arith::DivSIOp::create(builder, dividend, safe);
  Value remainder = arith::RemSIOp::create(builder, dividend, safe);
  Value less = arith::SubIOp::create(builder, quotient, like.constant(1));
  quotient =
      like.select(isOnOtherSide(builder, remainder, safe), less, quotient);
  if (safe == divisor)
    return quotient;
  Value isZero = like.compare(arith::CmpIPredicate::eq, divisor, 0);
  Value isMinusOne = like.compare(arith::CmpIPredicate::eq, divisor, -1);
  quotient =
      like.select(isMinusOne, negateIntegers(builder, dividend), quotient);
  return like.select(isZero, like.constant(0), quotient);
}

Value bastile::floorRemainder(ImplicitLocOpBuilder &builder,
                              Operands operands) {
  Value dividend = operands[0], divisor = operands[1];
  Integers like(builder, dividend);
  if (getShift(divisor))
    return arith::AndIOp::create(builder, dividend,
                                 like.constant(*getNumber(divisor) - 1));
  // Divisions by 1 leave nothing, as those by -1 do.
  Value safe = getSafeDivisor(builder, divisor);
  Value remainder = arith::RemSIOp::create(builder, dividend, safe);
  Value other = arith::AddIOp::create(builder, remainder, safe);
  return like.select(isOnOtherSide(builder, remainder, safe), other, remainder);
}

Value bastile::shiftLeft(ImplicitLocOpBuilder &builder, Operands operands) {
  Value value = operands[0], count = operands[1];
  Integers like(builder, value);
  std::optional<int64_t> number = getNumber(count);
  if (number && *number >= 0 && *number < like.getWidth())
    return arith::ShLIOp::create(builder, value, count);
  Value isInside =
      like.compare(arith::CmpIPredicate::ult, count, like.getWidth());
  Value zero = like.constant(0);
  Value shifted =
      arith::ShLIOp::create(builder, value, like.select(isInside, count, zero));
  return like.select(isInside, shifted, zero);
}

Value bastile::shiftRight(ImplicitLocOpBuilder &builder, Operands operands) {
  Value count = operands[1];
  Integers like(builder, count);
  std::optional<int64_t> number = getNumber(count);
  // As an unsigned number, a negative one is larger.
  if (!number || *number < 0 || *number >= like.getWidth())
    count = arith::MinUIOp::create(builder, count,
                                   like.constant(like.getWidth() - 1));
  return arith::ShRSIOp::create(builder, operands[0], count);
}

Value bastile::toNearestInteger(const Expr &floats, IntegerType type) {
  ImplicitLocOpBuilder &builder = floats.getBuilder();
  const unsigned width = type.getWidth();
  const double high = std::ldexp(1.0, static_cast<int>(width) - 1);
  Value isBelow = compare(arith::CmpFPredicate::OLT, floats, -high);
  Value isAbove = compare(arith::CmpFPredicate::OGE, floats, high);
  Value isInside = arith::AndIOp::create(
      builder, compare(arith::CmpFPredicate::OGE, floats, -high),
      compare(arith::CmpFPredicate::OLT, floats, high));
  Value integers =
      tile::toInteger(select(isInside, floats, floats.constant(0)), type);
  Integers like(builder, integers);
  integers = like.select(
      isBelow, like.constant(APInt::getSignedMinValue(width).getSExtValue()),
      integers);
  return like.select(
      isAbove, like.constant(APInt::getSignedMaxValue(width).getSExtValue()),
      integers);
}
