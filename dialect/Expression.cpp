//===- Expression.cpp - Formulas over row tensors -------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/Expression.h"

#include "dialect/Dimensions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace bastile::tile {

Expr wrap(ImplicitLocOpBuilder &builder, Value value) {
  Expr expr;
  expr.builder = &builder;
  expr.value = value;
  return expr;
}

/// Converts the elements of `value` to `elementType` by rounding or extending.
static Value convert(ImplicitLocOpBuilder &builder, Value value,
                     Type elementType) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == elementType)
    return value;
  // An extended value is still exact in the type that it was extended from.
  if (auto extension = value.getDefiningOp<arith::ExtFOp>())
    if (getElementTypeOrSelf(extension.getIn().getType()) == elementType)
      return extension.getIn();
  RankedTensorType converted = type.clone(elementType);
  unsigned from = type.getElementTypeBitWidth();
  unsigned to = elementType.getIntOrFloatBitWidth();
  if (from < to)
    return arith::ExtFOp::create(builder, converted, value);
  if (from > to)
    return arith::TruncFOp::create(builder, converted, value);
  // f16 and bf16 have as many bits but different values, so one becomes the
  // other by way of float32.
  return convert(builder, convert(builder, value, builder.getF32Type()),
                 elementType);
}

Expr::Expr(ImplicitLocOpBuilder &builder, Value value) : builder(&builder) {
  Type elementType = cast<RankedTensorType>(value.getType()).getElementType();
  Type computeType =
      elementType.isF64() ? elementType : Type(builder.getF32Type());
  this->value = convert(builder, value, computeType);
}

Value Expr::as(Type elementType) const {
  return convert(*builder, value, elementType);
}

Expr Expr::roundedTo(Type elementType) const {
  return wrap(*builder,
              convert(*builder, as(elementType), getType().getElementType()));
}

Expr Expr::constant(double number) const {
  Value scalar = arith::ConstantOp::create(
      *builder, builder->getFloatAttr(getType().getElementType(), number));
  return wrap(*builder,
              BroadcastOp::create(*builder, getType(), scalar, value));
}

Expr Expr::like(const Expr &other) const {
  RankedTensorType target = other.getType().clone(getType().getElementType());
  if (target == getType())
    return *this;
  return wrap(*builder,
              BroadcastOp::create(*builder, target, value, other.value));
}

/// Repeats `expr` over the shape of `other` if that shape is larger.
static Value broadcastTo(const Expr &expr, const Expr &other) {
  RankedTensorType type = expr.getType(), target = other.getType();
  bool isSmaller = type.getRank() < target.getRank() ||
                   (type.getRank() == target.getRank() &&
                    type.getShape().back() < target.getShape().back());
  return isSmaller ? expr.like(other).getValue() : expr.getValue();
}

/// `expr` over the shape of `other` if that is larger, and in its precision if
/// that is higher.
static Value matchTo(const Expr &expr, const Expr &other) {
  Type element = other.getType().getElementType();
  if (!element.isF64())
    return broadcastTo(expr, other);
  return broadcastTo(wrap(expr.getBuilder(), expr.as(element)), other);
}

template <typename OpTy>
static Expr binary(const Expr &lhs, const Expr &rhs) {
  ImplicitLocOpBuilder &builder = lhs.getBuilder();
  return wrap(builder,
              OpTy::create(builder, matchTo(lhs, rhs), matchTo(rhs, lhs)));
}

template <typename OpTy>
static Expr unary(const Expr &operand) {
  ImplicitLocOpBuilder &builder = operand.getBuilder();
  return wrap(builder, OpTy::create(builder, operand.getValue()));
}

Expr operator+(const Expr &lhs, const Expr &rhs) {
  return binary<arith::AddFOp>(lhs, rhs);
}
Expr operator-(const Expr &lhs, const Expr &rhs) {
  return binary<arith::SubFOp>(lhs, rhs);
}
Expr operator*(const Expr &lhs, const Expr &rhs) {
  return binary<arith::MulFOp>(lhs, rhs);
}
Expr operator/(const Expr &lhs, const Expr &rhs) {
  return binary<arith::DivFOp>(lhs, rhs);
}
Expr operator+(const Expr &lhs, double rhs) { return lhs + lhs.constant(rhs); }
Expr operator-(const Expr &lhs, double rhs) { return lhs - lhs.constant(rhs); }
Expr operator-(double lhs, const Expr &rhs) { return rhs.constant(lhs) - rhs; }
Expr operator*(const Expr &lhs, double rhs) { return lhs * lhs.constant(rhs); }
Expr operator*(double lhs, const Expr &rhs) { return rhs.constant(lhs) * rhs; }
Expr operator/(const Expr &lhs, double rhs) { return lhs / lhs.constant(rhs); }
Expr operator/(double lhs, const Expr &rhs) { return rhs.constant(lhs) / rhs; }
Expr operator-(const Expr &operand) { return unary<arith::NegFOp>(operand); }

Expr min(const Expr &lhs, const Expr &rhs) {
  return binary<arith::MinimumFOp>(lhs, rhs);
}
Expr max(const Expr &lhs, const Expr &rhs) {
  return binary<arith::MaximumFOp>(lhs, rhs);
}
Expr min(const Expr &lhs, double rhs) { return min(lhs, lhs.constant(rhs)); }
Expr max(const Expr &lhs, double rhs) { return max(lhs, lhs.constant(rhs)); }

Value compare(arith::CmpFPredicate predicate, const Expr &lhs,
              const Expr &rhs) {
  return arith::CmpFOp::create(lhs.getBuilder(), predicate, matchTo(lhs, rhs),
                               matchTo(rhs, lhs));
}
Value compare(arith::CmpFPredicate predicate, const Expr &lhs, double rhs) {
  return compare(predicate, lhs, lhs.constant(rhs));
}

Expr select(Value condition, const Expr &lhs, const Expr &rhs) {
  ImplicitLocOpBuilder &builder = lhs.getBuilder();
  return wrap(builder,
              arith::SelectOp::create(builder, condition, matchTo(lhs, rhs),
                                      matchTo(rhs, lhs)));
}

Expr stopGradient(const Expr &operand) {
  return unary<StopGradientOp>(operand);
}

Expr exp(const Expr &operand) { return unary<math::ExpOp>(operand); }
Expr exp2(const Expr &operand) { return unary<math::Exp2Op>(operand); }
Expr expm1(const Expr &operand) { return unary<math::ExpM1Op>(operand); }
Expr log(const Expr &operand) { return unary<math::LogOp>(operand); }
Expr log2(const Expr &operand) { return unary<math::Log2Op>(operand); }
Expr log1p(const Expr &operand) { return unary<math::Log1pOp>(operand); }
Expr tanh(const Expr &operand) { return unary<math::TanhOp>(operand); }
Expr sinh(const Expr &operand) { return unary<math::SinhOp>(operand); }
Expr cosh(const Expr &operand) { return unary<math::CoshOp>(operand); }
Expr sin(const Expr &operand) { return unary<math::SinOp>(operand); }
Expr cos(const Expr &operand) { return unary<math::CosOp>(operand); }
Expr power(const Expr &base, const Expr &exponent) {
  return binary<math::PowFOp>(base, exponent);
}
Expr erf(const Expr &operand) { return unary<math::ErfOp>(operand); }
Expr erfc(const Expr &operand) { return unary<math::ErfcOp>(operand); }
Expr sqrt(const Expr &operand) { return unary<math::SqrtOp>(operand); }
Expr rsqrt(const Expr &operand) { return unary<math::RsqrtOp>(operand); }
Expr abs(const Expr &operand) { return unary<math::AbsFOp>(operand); }
Expr floor(const Expr &operand) { return unary<math::FloorOp>(operand); }
Expr ceil(const Expr &operand) { return unary<math::CeilOp>(operand); }
Expr round(const Expr &operand) { return unary<math::RoundEvenOp>(operand); }

/// What a division that rounds towards zero leaves, and whether it has another
/// sign than the divisor.
static std::pair<Expr, Value> divideTowardsZero(const Expr &lhs,
                                                const Expr &rhs) {
  Expr rest = binary<arith::RemFOp>(lhs, rhs);
  constexpr auto less = arith::CmpFPredicate::OLT;
  Value differ =
      arith::XOrIOp::create(rest.getBuilder(), compare(less, rest, 0.0),
                            compare(less, rhs.like(rest), 0.0));
  Value isLeft = compare(arith::CmpFPredicate::ONE, rest, 0.0);
  return {rest, arith::AndIOp::create(rest.getBuilder(), differ, isLeft)};
}

Expr floorDivide(const Expr &lhs, const Expr &rhs) {
  Expr dividend = stopGradient(lhs), divisor = stopGradient(rhs);
  auto [rest, isOnOtherSide] = divideTowardsZero(dividend, divisor);
  // Without what is left, the quotient is an integer but for its rounding. A
  // division by 0 leaves NaN, and its quotient is infinite.
  Value isZero = compare(arith::CmpFPredicate::OEQ, divisor, 0.0);
  Expr whole = select(isZero, dividend, dividend - rest) / divisor;
  Expr quotient = round(whole);
  return select(isOnOtherSide, quotient - 1.0, quotient);
}

Expr remainder(const Expr &lhs, const Expr &rhs) {
  auto [rest, isOnOtherSide] = divideTowardsZero(lhs, rhs);
  return select(isOnOtherSide, rest + rhs, rest);
}

/// The numerator and the denominator of the sigmoid.
static std::pair<Expr, Expr> sigmoidQuotient(const Expr &operand) {
  // This is not exp(-abs(x)), as the absolute value has no derivative at zero.
  Value isPositive = compare(arith::CmpFPredicate::OGE, operand, 0.0);
  Expr small = exp(select(isPositive, -operand, operand));
  return {select(isPositive, operand.constant(1.0), small), small + 1.0};
}

Expr sigmoid(const Expr &operand) {
  auto [numerator, denominator] = sigmoidQuotient(operand);
  return numerator / denominator;
}

Expr geluErf(const Expr &operand) {
  constexpr double sqrtHalf = 0.70710678118654752440;
  return operand * 0.5 * erfc(operand * -sqrtHalf);
}

Expr geluTanh(const Expr &operand) {
  constexpr double twiceSqrtTwoOverPi = 2.0 * 0.79788456080286535588;
  Expr cubic = operand * (operand * operand * 0.044715 + 1.0);
  return operand * sigmoid(cubic * twiceSqrtTwoOverPi);
}

Expr fma(const Expr &a, const Expr &b, const Expr &c) {
  ImplicitLocOpBuilder &builder = a.getBuilder();
  return wrap(builder, math::FmaOp::create(builder, a.getValue(), b.getValue(),
                                           c.getValue()));
}

Expr roundUpToPowerOfTwo(const Expr &operand) {
  ImplicitLocOpBuilder &builder = operand.getBuilder();
  RankedTensorType type = operand.getType();
  auto element = cast<FloatType>(type.getElementType());
  unsigned width = element.getWidth();
  RankedTensorType bitsType = type.clone(builder.getIntegerType(width));
  auto constant = [&](const APInt &bits) -> Value {
    Value scalar = arith::ConstantOp::create(
        builder, builder.getIntegerAttr(bitsType.getElementType(), bits));
    return BroadcastOp::create(builder, bitsType, scalar, operand.getValue());
  };
  // Any bit of the fraction carries into the exponent.
  APInt fraction =
      APInt::getLowBitsSet(width, element.getFPMantissaWidth() - 1);
  Value bits = arith::BitcastOp::create(builder, bitsType, operand.getValue());
  bits = arith::AddIOp::create(builder, bits, constant(fraction));
  bits = arith::AndIOp::create(builder, bits, constant(~fraction));
  Expr rounded = wrap(builder, arith::BitcastOp::create(builder, type, bits));
  // For a NaN, the carry may give a number.
  Value isNumber = compare(arith::CmpFPredicate::ORD, operand, operand);
  return select(isNumber, rounded, operand);
}

static Expr reduce(const Expr &operand, ReduceKind kind, int64_t groups) {
  ImplicitLocOpBuilder &builder = operand.getBuilder();
  RankedTensorType type = operand.getType();
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = groups;
  return wrap(builder, ReduceOp::create(builder, type.clone(shape), kind,
                                        operand.getValue()));
}

Expr rowSum(const Expr &operand, int64_t groups) {
  return reduce(operand, ReduceKind::Add, groups);
}
Expr rowMax(const Expr &operand, int64_t groups) {
  return reduce(operand, ReduceKind::Max, groups);
}
Expr rowMin(const Expr &operand, int64_t groups) {
  return reduce(operand, ReduceKind::Min, groups);
}
Expr rowMean(const Expr &operand, int64_t groups) {
  const int64_t length = operand.getType().getShape().back();
  if (!ShapedType::isDynamic(length))
    return rowSum(operand, groups) / static_cast<double>(length / groups);
  // How long rows are is the number of their elements.
  return rowSum(operand, groups) / rowSum(operand.constant(1), groups);
}

/// Combines the rows of `operand` to those of `shape`.
static Expr reduceRows(const Expr &operand, ReduceKind kind,
                       ArrayRef<int64_t> shape) {
  ImplicitLocOpBuilder &builder = operand.getBuilder();
  return wrap(builder,
              ReduceRowsOp::create(builder, operand.getType().clone(shape),
                                   kind, operand.getValue(),
                                   /*partial=*/false));
}

static Expr reduceRows(const Expr &operand, ReduceKind kind) {
  return reduceRows(operand, kind, operand.getType().getShape().take_back());
}

Expr sumOfRows(const Expr &operand) {
  return reduceRows(operand, ReduceKind::Add);
}
Expr sumOfRows(const Expr &operand, ArrayRef<int64_t> shape) {
  return reduceRows(operand, ReduceKind::Add, shape);
}
Expr maxOfRows(const Expr &operand) {
  return reduceRows(operand, ReduceKind::Max);
}

static Expr reduceBands(const Expr &operand, ReduceKind kind, int64_t band) {
  ImplicitLocOpBuilder &builder = operand.getBuilder();
  return wrap(builder, ReduceBandsOp::create(builder, operand.getType(), kind,
                                             operand.getValue(), band));
}

Expr sumOfBands(const Expr &operand, int64_t band) {
  return reduceBands(operand, ReduceKind::Add, band);
}
Expr maxOfBands(const Expr &operand, int64_t band) {
  return reduceBands(operand, ReduceKind::Max, band);
}

Expr packBands(const Expr &operand, int64_t band) {
  ImplicitLocOpBuilder &builder = operand.getBuilder();
  RankedTensorType type = operand.getType();
  SmallVector<int64_t> shape(type.getShape());
  shape.front() = getNumBands(shape.front(), band);
  return wrap(builder, PackBandsOp::create(builder, type.clone(shape),
                                           operand.getValue(), band));
}

Expr repeatBands(const Expr &operand, int64_t band, Value like) {
  ImplicitLocOpBuilder &builder = operand.getBuilder();
  RankedTensorType type = operand.getType();
  SmallVector<int64_t> shape(type.getShape());
  shape.front() = cast<RankedTensorType>(like.getType()).getDimSize(0);
  return wrap(builder, RepeatBandsOp::create(builder, type.clone(shape),
                                             operand.getValue(), band, like));
}

Expr silu(const Expr &operand) {
  // One division at the end rounds once less than a product with the sigmoid.
  auto [numerator, denominator] = sigmoidQuotient(operand);
  return operand * numerator / denominator;
}

Expr relu(const Expr &operand) {
  Expr zero = operand.constant(0);
  return select(compare(arith::CmpFPredicate::OLE, operand, zero), zero,
                operand);
}

Expr softplus(const Expr &operand) {
  // At zero, both parts take the branch of negative operands, so that their
  // derivatives there add up.
  Value isPositive = compare(arith::CmpFPredicate::OGT, operand, 0.0);
  Expr small = exp(select(isPositive, -operand, operand));
  return relu(operand) + log1p(small);
}

Expr dot(ImplicitLocOpBuilder &builder, Value a, Value b,
         ArrayRef<int64_t> contract) {
  auto typeA = cast<RankedTensorType>(a.getType());
  auto typeB = cast<RankedTensorType>(b.getType());
  SmallVector<int64_t> shape;
  for (int64_t ahead = std::max(typeA.getRank(), typeB.getRank()) - 2;
       ahead-- != 0;)
    shape.push_back(getBatchSize(typeA, typeB, ahead));
  shape.push_back(typeA.getDimSize(typeA.getRank() - 1 - contract[0]));
  shape.push_back(typeB.getDimSize(typeB.getRank() - 1 - contract[1]));
  Type element = typeA.getElementType();
  if (!element.isF64())
    element = builder.getF32Type();
  return wrap(builder,
              DotOp::create(builder, RankedTensorType::get(shape, element), a,
                            b, /*accumulator=*/Value(), contract));
}

SmallVector<Value> splitRows(ImplicitLocOpBuilder &builder, Value rows,
                             int64_t count, int64_t strands) {
  if (count == 1)
    return {rows};
  auto type = cast<RankedTensorType>(rows.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.back() /= count;
  SmallVector<Type> types(count, type.clone(shape));
  return SmallVector<Value>(
      SplitOp::create(builder, types, strands, rows).getPieces());
}

Value joinRows(ImplicitLocOpBuilder &builder, ValueRange pieces,
               int64_t strands) {
  auto type = cast<RankedTensorType>(pieces.front().getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.back() *= pieces.size();
  return JoinOp::create(builder, type.clone(shape), strands, pieces);
}

TargetRows::TargetRows(ImplicitLocOpBuilder &builder, Value targets,
                       int64_t ignored, int64_t length)
    : builder(builder) {
  auto type = cast<RankedTensorType>(targets.getType());
  auto compareTo = [&](arith::CmpIPredicate predicate, int64_t number) {
    Value scalar = arith::ConstantOp::create(
        builder, builder.getIntegerAttr(type.getElementType(), number));
    Value repeated = BroadcastOp::create(builder, type, scalar, targets);
    return arith::CmpIOp::create(builder, predicate, targets, repeated);
  };
  this->ignored = compareTo(arith::CmpIPredicate::eq, ignored);
  // The comparison is unsigned, so that negative targets are out of range as
  // well.
  inRange = compareTo(arith::CmpIPredicate::ult, length);
  column = targets;
  RankedTensorType columnType = type.clone(builder.getI32Type());
  if (type.getElementType().isInteger(64))
    column = arith::TruncIOp::create(builder, columnType, targets);
  // The low half of a target out of range may look like a target in range.
  Value nowhere =
      arith::ConstantOp::create(builder, builder.getI32IntegerAttr(-1));
  nowhere = BroadcastOp::create(builder, columnType, nowhere, targets);
  column = arith::SelectOp::create(builder, inRange, column, nowhere);
}

Value TargetRows::isTarget(const Expr &rows) const {
  RankedTensorType type = rows.getType().clone(builder.getI32Type());
  Value columns = IotaOp::create(builder, type, rows.getValue());
  Value repeated = BroadcastOp::create(builder, type, column, rows.getValue());
  return arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, columns,
                               repeated);
}

Expr columnNumbers(const Expr &like) {
  ImplicitLocOpBuilder &builder = like.getBuilder();
  RankedTensorType type = like.getType();
  Value columns = IotaOp::create(builder, type.clone(builder.getI32Type()),
                                 like.getValue());
  return wrap(builder, arith::SIToFPOp::create(builder, type, columns));
}

Value toInteger(const Expr &operand, IntegerType type) {
  return arith::FPToSIOp::create(
      operand.getBuilder(), operand.getType().clone(type), operand.getValue());
}

LogicalResult verifyRowLength(Operation *op, Value vector, StringRef vectorName,
                              Value rows, StringRef rowsName) {
  auto vectorType = cast<RankedTensorType>(vector.getType());
  auto rowsType = cast<RankedTensorType>(rows.getType());
  if (vectorType.getShape().back() == rowsType.getShape().back())
    return success();
  return op->emitOpError() << vectorName << " of type " << vectorType
                           << " does not have the row length of the "
                           << rowsName << " of type " << rowsType;
}

LogicalResult verifyGroups(Operation *op, int64_t groups, Value rows,
                           StringRef rowsName) {
  auto type = cast<RankedTensorType>(rows.getType());
  int64_t length = type.getShape().back();
  if (groups == 1 || (groups > 1 && groups < length && length % groups == 0))
    return success();
  return op->emitOpError() << "rows of the " << rowsName << " of type " << type
                           << " are not " << groups
                           << " groups of several columns of one size";
}

LogicalResult verifyScale(Operation *op, Value scale, Value rows,
                          std::optional<int64_t> band) {
  auto scaleType = cast<RankedTensorType>(scale.getType());
  auto rowsType = cast<RankedTensorType>(rows.getType());
  ArrayRef<int64_t> shape = scaleType.getShape();
  SmallVector<int64_t> sizes(rowsType.getShape());
  if (band) {
    if (*band < 1)
      return op->emitOpError("has bands of ")
             << *band << " rows; one is the least";
    if (sizes.size() != 2)
      return op->emitOpError("counts bands of rows with one leading dimension, "
                             "which ")
             << rowsType << " does not have";
    sizes.front() = getNumBands(sizes.front(), *band);
  }
  int64_t groups = shape.back(), length = sizes.back();
  bool fits =
      scaleType.getRank() == 1
          ? groups == 1 && !band
          : shape.drop_back() == ArrayRef(sizes).drop_back() &&
                (groups == 1 || (groups < length && length % groups == 0));
  if (fits)
    return success();
  InFlightDiagnostic error = op->emitOpError("scale of type ");
  error << scaleType << " must be one number ";
  if (band)
    return error << "for each band of " << *band << " rows of type " << rowsType
                 << ", or for groups of its columns of one size";
  return error << "for all rows of type " << rowsType
               << ", or for each row, or for groups of its columns of one size";
}

} // namespace bastile::tile
