//===- MathFormula.cpp - Building elementwise arithmetic ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/math/ExpandMath.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace bastile;

/// The constant that all elements of `value` are. Numbers narrower than a word
/// are repeated as integers.
static std::optional<APInt> getConstantBits(Value value) {
  if (APInt bits; matchPattern(value, m_ConstantInt(&bits)))
    return bits;
  if (APFloat number(0.0f); matchPattern(value, m_ConstantFloat(&number)))
    return number.bitcastToAPInt();
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<vector::BroadcastOp, arith::BitcastOp>(op))
    return std::nullopt;
  return getConstantBits(op->getOperand(0));
}

std::optional<double> bastile::getConstant(Value value) {
  if (auto extension = value.getDefiningOp<arith::ExtFOp>())
    return getConstant(extension.getIn());
  auto type = dyn_cast<FloatType>(getElementTypeOrSelf(value.getType()));
  std::optional<APInt> bits = getConstantBits(value);
  if (!type || !bits || bits->getBitWidth() != type.getWidth())
    return std::nullopt;
  return APFloat(type.getFloatSemantics(), *bits).convertToDouble();
}

static Value createConstant(ImplicitLocOpBuilder &builder, Type type,
                            TypedAttr scalar) {
  if (auto vector = dyn_cast<VectorType>(type))
    scalar = DenseElementsAttr::get(vector, Attribute(scalar));
  return arith::ConstantOp::create(builder, scalar);
}

Value Formula::number(double value) {
  return createConstant(
      builder, type, builder.getFloatAttr(getElementTypeOrSelf(type), value));
}

Value Formula::integer(int32_t value) {
  return createConstant(builder, integerType(32),
                        builder.getI32IntegerAttr(value));
}

Value Formula::add(Value lhs, Value rhs) {
  return arith::AddFOp::create(builder, lhs, rhs);
}

Value Formula::sub(Value lhs, Value rhs) {
  return arith::SubFOp::create(builder, lhs, rhs);
}

Value Formula::mul(Value lhs, Value rhs) {
  return arith::MulFOp::create(builder, lhs, rhs);
}

Value Formula::div(Value lhs, Value rhs) {
  return arith::DivFOp::create(builder, lhs, rhs, flags);
}

Value Formula::fma(Value a, Value b, Value c) {
  return math::FmaOp::create(builder, a, b, c);
}

Value Formula::neg(Value value) {
  return arith::NegFOp::create(builder, value);
}

Value Formula::abs(Value value) { return math::AbsFOp::create(builder, value); }

Value Formula::copySign(Value magnitude, Value sign) {
  return math::CopySignOp::create(builder, magnitude, sign);
}

Value Formula::truncate(Value value) {
  return math::TruncOp::create(builder, value);
}

Value Formula::exp(Value x) { return math::ExpOp::create(builder, x, flags); }

Value Formula::polynomial(Value x, ArrayRef<double> coefficients) {
  Value result = number(coefficients.front());
  for (double coefficient : coefficients.drop_front())
    result = fma(result, x, number(coefficient));
  return result;
}

Value Formula::oddPolynomial(Value x, ArrayRef<double> coefficients) {
  Value square = mul(x, x);
  return fma(mul(polynomial(square, coefficients), square), x, x);
}

Value Formula::select(Value condition, Value ifTrue, Value ifFalse) {
  return arith::SelectOp::create(builder, condition, ifTrue, ifFalse);
}

Value Formula::compare(arith::CmpFPredicate predicate, Value lhs, Value rhs) {
  return arith::CmpFOp::create(builder, predicate, lhs, rhs);
}

Value Formula::clamp(Value value, double low, double high) {
  value = select(less(value, number(low)), number(low), value);
  return select(less(number(high), value), number(high), value);
}

Type Formula::integerType(unsigned bits) {
  Type element = builder.getIntegerType(bits);
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector.clone(element) : element;
}

Value Formula::toBits(Value value) {
  unsigned bits = getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
  return arith::BitcastOp::create(builder, integerType(bits), value);
}

Value Formula::fromBits(Value bits) {
  return arith::BitcastOp::create(builder, type, bits);
}

Value Formula::intToFloat(Value value) {
  return arith::SIToFPOp::create(builder, type, value);
}

Value Formula::floatToInt(Value value) {
  return arith::FPToSIOp::create(builder, integerType(32), value);
}

Value Formula::addInt(Value lhs, Value rhs) {
  return arith::AddIOp::create(builder, lhs, rhs);
}

Value Formula::subInt(Value lhs, Value rhs) {
  return arith::SubIOp::create(builder, lhs, rhs);
}

Value Formula::andInt(Value lhs, Value rhs) {
  return arith::AndIOp::create(builder, lhs, rhs);
}

Value Formula::orInt(Value lhs, Value rhs) {
  return arith::OrIOp::create(builder, lhs, rhs);
}

Value Formula::shiftLeft(Value value, int32_t count) {
  return arith::ShLIOp::create(builder, value, integer(count));
}

Value Formula::shiftRight(Value value, int32_t count) {
  return arith::ShRUIOp::create(builder, value, integer(count));
}

Value Formula::shiftRightSigned(Value value, int32_t count) {
  return arith::ShRSIOp::create(builder, value, integer(count));
}

Value Formula::isZero(Value bits) {
  return arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, bits,
                               integer(0));
}

Value Formula::negate(Value condition) {
  Value yes =
      createConstant(builder, integerType(1), builder.getBoolAttr(true));
  return arith::XOrIOp::create(builder, condition, yes);
}
