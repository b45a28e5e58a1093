//===- Ranges.cpp - What numbers lie between ------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/math/Ranges.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/math/ExpandMath.h"
#include "llvm/ADT/TypeSwitch.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace bastile;

/// How many ops a range looks through.
static constexpr unsigned kMostDepth = 16;
/// By how much a bound of a function is moved for the error of the function.
static constexpr double kSlack = 1e-5;

/// The range that `bounds` span; everything where one of them is no number.
static NumberRange span(std::initializer_list<double> bounds) {
  if (llvm::any_of(bounds, [](double bound) { return std::isnan(bound); }))
    return NumberRange();
  return {std::min(bounds), std::max(bounds)};
}

static NumberRange add(NumberRange a, NumberRange b) {
  return span({a.least + b.least, a.most + b.most});
}

static NumberRange negate(NumberRange a) { return {-a.most, -a.least}; }

/// The product of two bounds. That of 0 and infinity is NaN in a value, of
/// which ranges say nothing, so that the products beside it are near 0.
static double multiply(double a, double b) {
  return a == 0 || b == 0 ? 0 : a * b;
}

static NumberRange multiply(NumberRange a, NumberRange b) {
  return span({multiply(a.least, b.least), multiply(a.least, b.most),
               multiply(a.most, b.least), multiply(a.most, b.most)});
}

static NumberRange absolute(NumberRange a) {
  const double most = std::max(std::abs(a.least), std::abs(a.most));
  const bool hasZero = a.least <= 0 && a.most >= 0;
  return {hasZero ? 0 : std::min(std::abs(a.least), std::abs(a.most)), most};
}

static NumberRange product(Value lhs, Value rhs, NumberRanges &ranges) {
  if (lhs == rhs) {
    NumberRange a = absolute(ranges.find(lhs));
    return {a.least * a.least, a.most * a.most};
  }
  return multiply(ranges.find(lhs), ranges.find(rhs));
}

/// The range of a function that grows with its operand.
static NumberRange grow(NumberRange x, double (*function)(double)) {
  const double least = function(x.least), most = function(x.most);
  return span(
      {least - kSlack * std::abs(least), most + kSlack * std::abs(most)});
}

NumberRange NumberRanges::compute(Value value) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (std::optional<double> number = getConstant(value))
    return span({*number, *number});
  Operation *op = value.getDefiningOp();
  if (!op)
    return NumberRange();
  auto of = [&](unsigned index) { return find(op->getOperand(index)); };
  return llvm::TypeSwitch<Operation *, NumberRange>(op)
      .Case([&](vector::BroadcastOp) { return of(0); })
      .Case([&](arith::AddFOp) { return add(of(0), of(1)); })
      .Case([&](arith::SubFOp) { return add(of(0), negate(of(1))); })
      .Case([&](arith::NegFOp) { return negate(of(0)); })
      .Case([&](arith::MulFOp product) {
        return ::product(product.getLhs(), product.getRhs(), *this);
      })
      .Case([&](math::FmaOp fma) {
        return add(::product(fma.getA(), fma.getB(), *this), of(2));
      })
      .Case([&](arith::DivFOp) {
        NumberRange divisor = of(1);
        if (divisor.least <= 0)
          return NumberRange();
        return multiply(of(0), {1 / divisor.most, 1 / divisor.least});
      })
      .Case([&](arith::SelectOp choice) {
        if (Value number = getOfNegatedSize(choice.getResult()))
          return negate(absolute(find(number)));
        NumberRange a = of(1), b = of(2);
        return span({a.least, a.most, b.least, b.most});
      })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](auto) {
        NumberRange a = of(0), b = of(1);
        return NumberRange{std::max(a.least, b.least),
                           std::max(a.most, b.most)};
      })
      .Case<arith::MinimumFOp, arith::MinNumFOp>([&](auto) {
        NumberRange a = of(0), b = of(1);
        return NumberRange{std::min(a.least, b.least),
                           std::min(a.most, b.most)};
      })
      .Case([&](math::AbsFOp) { return absolute(of(0)); })
      .Case([&](math::ExpOp) { return grow(of(0), std::exp); })
      .Case([&](math::Exp2Op) { return grow(of(0), std::exp2); })
      .Case([&](math::SqrtOp) {
        NumberRange x = of(0);
        return grow({std::max(0.0, x.least), std::max(0.0, x.most)}, std::sqrt);
      })
      .Case([&](math::RsqrtOp) {
        NumberRange x = of(0);
        return x.least > 0 ? NumberRange{0, (1 + kSlack) / std::sqrt(x.least)}
                           : NumberRange{0, infinity};
      })
      .Case([&](math::Log1pOp) {
        return NumberRange{of(0).least >= 0 ? 0.0 : -infinity, infinity};
      })
      .Case<math::TanhOp, math::ErfOp, math::SinOp, math::CosOp>(
          [&](auto) { return NumberRange{-1 - kSlack, 1 + kSlack}; })
      .Case([&](math::ErfcOp) { return NumberRange{0, 2 + kSlack}; })
      .Default([](Operation *) { return NumberRange(); });
}

NumberRange NumberRanges::find(Value value) {
  if (auto known = found.find(value); known != found.end())
    return known->second;
  if (depth == kMostDepth)
    return NumberRange();
  ++depth;
  NumberRange range = compute(value);
  --depth;
  found[value] = range;
  return range;
}

Value bastile::getOfNegatedSize(Value value) {
  auto choice = value.getDefiningOp<arith::SelectOp>();
  if (!choice)
    return nullptr;
  auto compare = choice.getCondition().getDefiningOp<arith::CmpFOp>();
  if (!compare || getConstant(compare.getRhs()) != 0.0)
    return nullptr;
  Value negated, plain;
  switch (compare.getPredicate()) {
  case arith::CmpFPredicate::OGE:
  case arith::CmpFPredicate::OGT:
    negated = choice.getTrueValue();
    plain = choice.getFalseValue();
    break;
  case arith::CmpFPredicate::OLE:
  case arith::CmpFPredicate::OLT:
    negated = choice.getFalseValue();
    plain = choice.getTrueValue();
    break;
  default:
    return nullptr;
  }
  auto negation = negated.getDefiningOp<arith::NegFOp>();
  return negation && negation.getOperand() == plain && compare.getLhs() == plain
             ? plain
             : Value();
}
