//===- Expression.cpp - Formulas over row tensors -------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/Expression.h"

#include "dialect/Tile.h"
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
  RankedTensorType converted = type.clone(elementType);
  unsigned from = type.getElementTypeBitWidth();
  unsigned to = elementType.getIntOrFloatBitWidth();
  if (from < to)
    return arith::ExtFOp::create(builder, converted, value);
  if (from > to)
    return arith::TruncFOp::create(builder, converted, value);
  // f16 and bf16 hold different values in as many bits.
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

/// Repeats `expr` over the shape of `other` if that shape is larger.
static Value broadcastTo(const Expr &expr, const Expr &other) {
  RankedTensorType type = expr.getType(), target = other.getType();
  if (type.getShape() == target.getShape() ||
      target.getRank() < type.getRank() ||
      (target.getRank() == type.getRank() && target.getShape().back() == 1))
    return expr.getValue();
  return BroadcastOp::create(expr.getBuilder(),
                             target.clone(type.getElementType()),
                             expr.getValue(), other.getValue());
}

template <typename OpTy>
static Expr binary(const Expr &lhs, const Expr &rhs) {
  ImplicitLocOpBuilder &builder = lhs.getBuilder();
  return wrap(builder, OpTy::create(builder, broadcastTo(lhs, rhs),
                                    broadcastTo(rhs, lhs)));
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
Expr operator*(const Expr &lhs, double rhs) { return lhs * lhs.constant(rhs); }
Expr operator*(double lhs, const Expr &rhs) { return rhs.constant(lhs) * rhs; }
Expr operator/(const Expr &lhs, double rhs) { return lhs / lhs.constant(rhs); }
Expr operator/(double lhs, const Expr &rhs) { return rhs.constant(lhs) / rhs; }
Expr operator-(const Expr &operand) { return unary<arith::NegFOp>(operand); }

Expr min(const Expr &lhs, double rhs) {
  return binary<arith::MinimumFOp>(lhs, lhs.constant(rhs));
}
Expr max(const Expr &lhs, double rhs) {
  return binary<arith::MaximumFOp>(lhs, lhs.constant(rhs));
}

Expr exp(const Expr &operand) { return unary<math::ExpOp>(operand); }
Expr erfc(const Expr &operand) { return unary<math::ErfcOp>(operand); }
Expr rsqrt(const Expr &operand) { return unary<math::RsqrtOp>(operand); }
Expr abs(const Expr &operand) { return unary<math::AbsFOp>(operand); }

Expr sigmoid(const Expr &operand) {
  ImplicitLocOpBuilder &builder = operand.getBuilder();
  Expr small = exp(-abs(operand));
  Value isPositive = arith::CmpFOp::create(builder, arith::CmpFPredicate::OGE,
                                           operand.getValue(),
                                           operand.constant(0.0).getValue());
  Expr numerator =
      wrap(builder, arith::SelectOp::create(builder, isPositive,
                                            operand.constant(1.0).getValue(),
                                            small.getValue()));
  return numerator * (1.0 / (small + 1.0));
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

Expr rowMean(const Expr &operand) {
  ImplicitLocOpBuilder &builder = operand.getBuilder();
  RankedTensorType type = operand.getType();
  SmallVector<int64_t> shape(type.getShape());
  double length = shape.back();
  shape.back() = 1;
  Value sum = ReduceOp::create(builder, type.clone(shape), ReduceKind::Add,
                               operand.getValue());
  return wrap(builder, sum) / length;
}

} // namespace bastile::tile
