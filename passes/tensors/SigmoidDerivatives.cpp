//===- SigmoidDerivatives.cpp - Of the sigmoid and the softplus -----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The sigmoid and the softplus of x are formulas of e = exp(-|x|), which choose
// by the sign of x so that nothing overflows (`dialect/Expression.cpp`):
//
//   sigmoid(x)  = (x >= 0 ? 1 : e) / (1 + e)
//   softplus(x) = max(x, 0) + log(1 + e)
//
// Step by step, each choice has a derivative of its own, and the sum of them
// all is a dozen ops. As a whole:
//
//   sigmoid'(x)  = e / (1 + e)^2
//   softplus'(x) = sigmoid(x)
//
//===----------------------------------------------------------------------===//

#include "passes/tensors/Derivatives.h"

#include "dialect/Expression.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/analysis/Constants.h"

using namespace mlir;
using namespace bastile;
using tile::Expr;

/// The x of which `condition` asks whether it is above 0, or at least 0; null
/// if it asks anything else.
static Value getPositive(Value condition) {
  auto compare = condition.getDefiningOp<arith::CmpFOp>();
  const bool isKnown =
      compare && (compare.getPredicate() == arith::CmpFPredicate::OGE ||
                  compare.getPredicate() == arith::CmpFPredicate::OGT);
  return isKnown && getConstantFloat(compare.getRhs()) == 0.0 ? compare.getLhs()
                                                              : Value();
}

namespace {
/// exp(-|x|), with the condition that x is positive.
struct Power {
  Value x, power, isPositive;
};
} // namespace

static std::optional<Power> matchPower(Value value) {
  auto exp = value.getDefiningOp<math::ExpOp>();
  auto choice =
      exp ? exp.getOperand().getDefiningOp<arith::SelectOp>() : nullptr;
  if (!choice)
    return std::nullopt;
  Value x = choice.getFalseValue();
  auto negation = choice.getTrueValue().getDefiningOp<arith::NegFOp>();
  if (!negation || negation.getOperand() != x ||
      getPositive(choice.getCondition()) != x)
    return std::nullopt;
  return Power{x, value, choice.getCondition()};
}

/// Whether `value` is 1 where x is positive and the power elsewhere.
static bool isNumerator(Value value, const Power &power) {
  auto choice = value.getDefiningOp<arith::SelectOp>();
  return choice && choice.getCondition() == power.isPositive &&
         getConstantFloat(choice.getTrueValue()) == 1.0 &&
         choice.getFalseValue() == power.power;
}

static bool propagateThroughQuotient(arith::DivFOp division,
                                     Gradients &gradients) {
  auto sum = division.getRhs().getDefiningOp<arith::AddFOp>();
  if (!sum || getConstantFloat(sum.getRhs()) != 1.0)
    return false;
  std::optional<Power> power = matchPower(sum.getLhs());
  if (!power)
    return false;
  Value numerator = division.getLhs(), factor;
  if (auto product = numerator.getDefiningOp<arith::MulFOp>()) {
    factor = product.getLhs();
    numerator = product.getRhs();
  }
  if (!isNumerator(numerator, *power))
    return false;
  ImplicitLocOpBuilder &builder = gradients.getBuilder();
  Expr g(builder, gradients.lookup(division.getResult()));
  Expr inverse = g.constant(1.0) / Expr(builder, division.getRhs());
  Expr share = g * inverse;
  if (gradients.isActive(power->x)) {
    Expr slope = share * (Expr(builder, power->power) * inverse);
    gradients.add(power->x, factor ? slope * Expr(builder, factor) : slope);
  }
  if (factor && gradients.isActive(factor))
    gradients.add(factor, share * Expr(builder, numerator));
  return true;
}

static bool propagateThroughSoftplus(arith::AddFOp sum, Gradients &gradients) {
  auto log = sum.getRhs().getDefiningOp<math::Log1pOp>();
  std::optional<Power> power =
      log ? matchPower(log.getOperand()) : std::nullopt;
  auto largest = sum.getLhs().getDefiningOp<arith::SelectOp>();
  if (!power || !largest || largest.getFalseValue() != power->x ||
      getConstantFloat(largest.getTrueValue()) != 0.0)
    return false;
  auto compare = largest.getCondition().getDefiningOp<arith::CmpFOp>();
  if (!compare || compare.getPredicate() != arith::CmpFPredicate::OLE ||
      compare.getLhs() != power->x || getConstantFloat(compare.getRhs()) != 0.0)
    return false;
  ImplicitLocOpBuilder &builder = gradients.getBuilder();
  Expr g(builder, gradients.lookup(sum.getResult()));
  Expr small(builder, power->power);
  Expr numerator = select(power->isPositive, small.constant(1.0), small);
  gradients.add(power->x, g * (numerator / (small + 1.0)));
  return true;
}

bool bastile::propagateThroughSigmoid(Operation *op, Gradients &gradients) {
  if (auto division = dyn_cast<arith::DivFOp>(op))
    return propagateThroughQuotient(division, gradients);
  if (auto sum = dyn_cast<arith::AddFOp>(op))
    return propagateThroughSoftplus(sum, gradients);
  return false;
}
