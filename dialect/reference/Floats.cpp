//===- Floats.cpp - Elementwise ops on floats -----------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/reference/Operations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bastile;
using namespace bastile::reference;

namespace {

/// The larger number; NaN if either operand is NaN, unless `ignoresNaN`.
double getLarger(double a, double b, bool ignoresNaN) {
  if (std::isnan(a) || std::isnan(b))
    return !ignoresNaN ? kNaN : std::isnan(a) ? b : a;
  return std::max(a, b);
}

Number getMaximum(const Number &a, const Number &b, bool ignoresNaN) {
  return apply([=](double x, double y) { return getLarger(x, y, ignoresNaN); },
               a, b,
               /*roundings=*/0);
}

Number getMinimum(const Number &a, const Number &b, bool ignoresNaN) {
  return -getMaximum(-a, -b, ignoresNaN);
}

Number getRemainder(const Number &a, const Number &b) {
  const Number whole = divideTowardsZero(a, b);
  const double value = std::fmod(a.value, b.value);
  const double error = whole.error == 0
                           ? a.error + std::fabs(whole.value) * b.error
                           : std::fabs(b.value) + b.error;
  return settle(value, error, getUnit(a, b), 1, error == 0);
}

Number copySign(const Number &magnitude, const Number &sign) {
  const double size = std::fabs(magnitude.value);
  return {std::copysign(magnitude.value, sign.value),
          hasSureSign(sign) ? magnitude.error : 2 * size + magnitude.error,
          magnitude.unit};
}

using Function = double (*)(double);

/// The function of one operand that `op` computes, and how many roundings a
/// kernel may be off by; nothing for other ops.
std::optional<std::pair<Function, double>> getFunction(Operation *op) {
  using Result = std::optional<std::pair<Function, double>>;
  auto is = [](Function function, double roundings = kFunction) {
    return [=](auto) { return Result({function, roundings}); };
  };
  // With a GPU's approximations as bad as they are documented to be, exp2, tanh
  // and erf are within 4.5 units in the last place, and erfc within 6.5.
  constexpr double composed = 14;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<math::SqrtOp>(is(std::sqrt))
      .Case<math::CbrtOp>(is(std::cbrt))
      .Case<math::Exp2Op>(is(std::exp2, composed))
      .Case<math::ExpM1Op>(is(std::expm1))
      .Case<math::Log1pOp>(is(std::log1p))
      .Case<math::Log10Op>(is(std::log10))
      .Case<math::TanhOp>(is(std::tanh, composed))
      .Case<math::AsinOp>(is(std::asin))
      .Case<math::AcosOp>(is(std::acos))
      .Case<math::AtanOp>(is(std::atan))
      .Case<math::AsinhOp>(is(std::asinh))
      .Case<math::AcoshOp>(is(std::acosh))
      .Case<math::AtanhOp>(is(std::atanh))
      .Case<math::ErfOp>(is(std::erf, composed))
      .Case<math::ErfcOp>(is(std::erfc, composed))
      .Case<math::FloorOp>(is(std::floor, 0))
      .Case<math::CeilOp>(is(std::ceil, 0))
      .Case<math::RoundOp>(is(std::round, 0))
      .Case<math::RoundEvenOp>(is(std::nearbyint, 0))
      .Case<math::TruncOp>(is(std::trunc, 0))
      .Default(Result());
}

Array choose(Operation *op, Operands operands) {
  const Array &condition = *operands[0];
  const Array &lhs = *operands[1], &rhs = *operands[2];
  Array result(getElementTypeOrSelf(op->getResult(0).getType()), lhs.sizes());
  // A scalar condition stands for a whole tensor.
  const bool isOne = condition.sizes().empty();
  for (int64_t i = 0, count = lhs.count(); i != count; ++i) {
    Integer which = condition.integer(isOne ? 0 : i);
    auto choose = [&](auto chosen, auto other, double difference) {
      if (which.error != 0) {
        chosen.error = std::max(chosen.error, other.error) + difference;
        if (std::isnan(chosen.error))
          chosen.error = kInfinity;
      }
      result.set(i, chosen);
    };
    if (lhs.isFloat()) {
      Number chosen = lhs.number(i), other = rhs.number(i);
      if (!which.value)
        std::swap(chosen, other);
      choose(chosen, other,
             isSame(chosen.value, other.value)
                 ? 0
                 : std::fabs(chosen.value - other.value));
    } else {
      Integer chosen = lhs.integer(i), other = rhs.integer(i);
      if (!which.value)
        std::swap(chosen, other);
      choose(chosen, other,
             std::fabs(static_cast<double>(chosen.value) -
                       static_cast<double>(other.value)));
    }
  }
  return result;
}

} // namespace

bool bastile::reference::isConstantNumber(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tile::BroadcastOp, arith::ExtFOp, arith::TruncFOp>(op))
      break;
    value = op->getOperand(0);
  }
  APFloat number(0.0);
  return matchPattern(value, m_ConstantFloat(&number));
}

Number bastile::reference::power(const Number &base, const Number &exponent,
                                 bool hasConstantExponent) {
  if (hasConstantExponent && exponent.value == 0.5)
    return sqrt(base);
  if (hasConstantExponent && exponent.value == -0.5)
    return rsqrt(base);
  return pow(base, exponent);
}

std::optional<Array> bastile::reference::evaluateFloats(Operation *op,
                                                        Operands operands) {
  if (op->getNumResults() != 1)
    return std::nullopt;
  Type type = getElementTypeOrSelf(op->getResult(0).getType());
  if (isa<arith::SelectOp>(op))
    return choose(op, operands);
  if (!isa<FloatType>(type) || operands.empty() ||
      !llvm::all_of(operands, [](const Array *a) { return a->isFloat(); }))
    return std::nullopt;
  auto unary = [&](auto function) {
    return [=](auto) { return map(type, function, *operands[0]); };
  };
  auto binary = [&](auto function) {
    return
        [=](auto) { return map(type, function, *operands[0], *operands[1]); };
  };
  if (auto function = getFunction(op))
    return map(
        type,
        [function](const Number &x) {
          return apply(function->first, x, function->second);
        },
        *operands[0]);
  return llvm::TypeSwitch<Operation *, std::optional<Array>>(op)
      .Case<arith::AddFOp>(
          binary([](const Number &a, const Number &b) { return a + b; }))
      .Case<arith::SubFOp>(
          binary([](const Number &a, const Number &b) { return a - b; }))
      .Case<arith::MulFOp>(
          binary([](const Number &a, const Number &b) { return a * b; }))
      .Case<arith::DivFOp>(
          binary([](const Number &a, const Number &b) { return a / b; }))
      .Case<arith::RemFOp>(binary(getRemainder))
      .Case<arith::NegFOp>(unary([](const Number &x) { return -x; }))
      .Case<arith::MaximumFOp>(binary([](const Number &a, const Number &b) {
        return getMaximum(a, b, /*ignoresNaN=*/false);
      }))
      .Case<arith::MaxNumFOp>(binary([](const Number &a, const Number &b) {
        return getMaximum(a, b, /*ignoresNaN=*/true);
      }))
      .Case<arith::MinimumFOp>(binary([](const Number &a, const Number &b) {
        return getMinimum(a, b, /*ignoresNaN=*/false);
      }))
      .Case<arith::MinNumFOp>(binary([](const Number &a, const Number &b) {
        return getMinimum(a, b, /*ignoresNaN=*/true);
      }))
      .Case<arith::ExtFOp>(unary([](const Number &x) { return x; }))
      .Case<arith::TruncFOp>(
          unary([format = Format(cast<FloatType>(type))](const Number &x) {
            return format.round(x);
          }))
      .Case<math::AbsFOp>(unary([](const Number &x) {
        return Number(std::fabs(x.value), x.error, x.unit);
      }))
      .Case<math::CopySignOp>(binary(copySign))
      .Case<math::ExpOp>(unary([](const Number &x) { return exp(x); }))
      .Case<math::LogOp>(unary([](const Number &x) { return log(x); }))
      .Case<math::Log2Op>(unary([](const Number &x) {
        constexpr double log2e = 1.4426950408889634074;
        Number natural = log(x);
        if (!std::isfinite(natural.value))
          return natural;
        return Number(std::log2(x.value), natural.error * log2e, x.unit);
      }))
      .Case<math::RsqrtOp>(unary([](const Number &x) { return rsqrt(x); }))
      .Case<math::SinOp>(unary([](const Number &x) { return sin(x); }))
      .Case<math::CosOp>(unary([](const Number &x) { return cos(x); }))
      .Case([&](math::PowFOp op) {
        return map(
            type,
            [isConstant = isConstantNumber(op.getRhs())](const Number &a,
                                                         const Number &b) {
              return power(a, b, isConstant);
            },
            *operands[0], *operands[1]);
      })
      .Case<math::SinhOp>(unary([](const Number &x) { return sinh(x); }))
      .Case<math::CoshOp>(unary([](const Number &x) { return cosh(x); }))
      .Case<math::TanOp>(unary([](const Number &x) { return tan(x); }))
      .Case<math::Atan2Op>(binary([](const Number &a, const Number &b) {
        return apply([](double y, double x) { return std::atan2(y, x); }, a, b,
                     kFunction);
      }))
      .Case<math::FmaOp>([&](auto) {
        return map(
            type,
            [](const Number &a, const Number &b, const Number &c) {
              return fma(a, b, c);
            },
            *operands[0], *operands[1], *operands[2]);
      })
      .Case<math::ClampFOp>([&](auto) {
        return map(
            type,
            [](const Number &x, const Number &low, const Number &high) {
              return getMinimum(getMaximum(x, low, false), high, false);
            },
            *operands[0], *operands[1], *operands[2]);
      })
      .Default(std::optional<Array>());
}
