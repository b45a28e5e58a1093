//===- Derivatives.cpp - The derivatives of arith and math ops ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The derivatives are PyTorch's, at corners too. A gradient is computed from
// values as the forward has rounded them; casts do not round the gradient.
//
//===----------------------------------------------------------------------===//

#include "dialect/reference/Operations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace bastile;
using namespace bastile::reference;

namespace {

using N = const Number &;

/// `number` times `factor`, from 0 to 1, or zero; where it is unsure which, the
/// error is all of it.
Number multiplyUnsure(N number, double factor, bool isUnsure) {
  if (factor == 0 && !isUnsure)
    return {0, 0, number.unit};
  Number result(factor == 0 ? 0 : number.value * factor, number.error,
                number.unit);
  if (isUnsure)
    result.error += std::fabs(number.value);
  if (std::isnan(result.error))
    result.error = kInfinity;
  return result;
}

/// Whether two numbers may be equal, given their errors.
bool mayBeEqual(N a, N b) {
  return a.error + b.error != 0 &&
         std::fabs(a.value - b.value) <= a.error + b.error;
}

/// The gradient of the base in base^exponent.
Number propagateToBase(N g, N base, N exponent, bool hasConstantExponent) {
  if (exponent.value == 0 && exponent.error == 0)
    return {0, 0, g.unit};
  return g * (exponent * power(base, exponent - 1.0, hasConstantExponent));
}

/// The gradient of the exponent. A power of 0 does not change with its
/// exponent.
Number propagateToExponent(N g, N base, N exponent, N result) {
  if (base.value == 0 && base.error == 0 && exponent.value >= 0)
    return {0, 0, g.unit};
  return g * (result * log(base));
}

/// The gradient of each side of an angle, except for the other side as a
/// factor, given the sum of their squares. At the origin, PyTorch gives zero.
Number shareOfAngle(N g, N squares) {
  if (squares.value == 0 && squares.error == 0)
    return {0, 0, g.unit};
  return g / squares;
}

Number getErrorFunctionSlope(N x) {
  constexpr double twoOverSqrtPi = 1.12837916709551257390;
  return exp(-(x * x)) * twoOverSqrtPi;
}

} // namespace

/// The gradient of one of two operands of a minimum or maximum. Equal operands
/// share it, but a number that does not depend on arguments takes nothing.
Array ElementwiseGradient::choose(unsigned index, bool larger) const {
  const double atTie = constants[1 - index] ? 1 : 0.5;
  return mapGradient(
      [=](N g, N mine, N other) {
        const bool isTaken =
            larger ? !(mine.value < other.value) : !(mine.value > other.value);
        const double factor = mine.value == other.value ? atTie : isTaken;
        return multiplyUnsure(g, factor, mayBeEqual(mine, other));
      },
      *operands[index], *operands[1 - index]);
}

/// The gradient of the operand that is selected where the condition is
/// `isTrue`.
Array ElementwiseGradient::select(bool isTrue) const {
  const Array &condition = *operands[0];
  Array selected(gradient.elementType(), gradient.sizes());
  const bool isOne = condition.sizes().empty();
  for (int64_t i = 0, count = gradient.count(); i != count; ++i) {
    Integer which = condition.integer(isOne ? 0 : i);
    const bool isSelected = (which.value != 0) == isTrue;
    selected.set(
        i, multiplyUnsure(gradient.number(i), isSelected, which.error != 0));
  }
  return selected;
}

std::optional<Array> ElementwiseGradient::of(unsigned index) const {
  using Result = std::optional<Array>;
  const bool isFirst = index == 0;
  const Array &x = *operands[0];
  const Array &other = *operands[operands.size() > 1 ? 1 - index % 2 : 0];
  constexpr double ln2 = 0.69314718055994530942;
  constexpr double ln10 = 2.30258509299404568402;
  // The square that a kernel computes may be infinite.
  auto square = [format = gradient.format()](N x) {
    return format.hold(x * x);
  };
  auto with = [&](auto function, const auto &...arrays) {
    return [=, &arrays...](auto) -> Result {
      return mapGradient(function, arrays...);
    };
  };
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<arith::AddFOp, arith::ExtFOp, arith::TruncFOp>(
          [&](auto) { return gradient; })
      .Case([&](arith::SubFOp) -> Result {
        return isFirst ? gradient : mapGradient([](N g) { return -g; });
      })
      .Case<arith::MulFOp>(with([](N g, N y) { return g * y; }, other))
      .Case([&](arith::DivFOp) -> Result {
        const Array &divisor = *operands[1];
        if (isFirst)
          return mapGradient([](N g, N y) { return g / y; }, divisor);
        return mapGradient([](N g, N y, N result) { return -g * (result / y); },
                           divisor, result);
      })
      .Case([&](arith::RemFOp) -> Result {
        if (isFirst)
          return gradient;
        return mapGradient(
            [](N g, N x, N y) { return -(g * divideTowardsZero(x, y)); }, x,
            *operands[1]);
      })
      .Case<arith::NegFOp>(with([](N g) { return -g; }))
      .Case<arith::MaximumFOp, arith::MaxNumFOp>(
          [&](auto) { return choose(index, /*larger=*/true); })
      .Case<arith::MinimumFOp, arith::MinNumFOp>(
          [&](auto) { return choose(index, /*larger=*/false); })
      .Case<arith::SelectOp>([&](auto) { return select(index == 1); })
      .Case<math::ExpOp>(with([](N g, N y) { return g * y; }, result))
      .Case<math::Exp2Op>(with([](N g, N y) { return g * y * ln2; }, result))
      .Case<math::ExpM1Op>(with([](N g, N y) { return g * (y + 1.0); }, result))
      .Case<math::LogOp>(with([](N g, N x) { return g / x; }, x))
      .Case<math::Log2Op>(with([](N g, N x) { return g / (x * ln2); }, x))
      .Case<math::Log10Op>(with([](N g, N x) { return g / (x * ln10); }, x))
      .Case<math::Log1pOp>(with([](N g, N x) { return g / (x + 1.0); }, x))
      .Case<math::SqrtOp>(with([](N g, N y) { return g / (y * 2.0); }, result))
      .Case<math::RsqrtOp>(
          with([](N g, N y) { return g * (y * y * y * -0.5); }, result))
      .Case<math::TanhOp>(
          with([](N g, N y) { return g * (1.0 - y * y); }, result))
      .Case<math::ErfOp>(
          with([](N g, N x) { return g * getErrorFunctionSlope(x); }, x))
      .Case<math::ErfcOp>(
          with([](N g, N x) { return -g * getErrorFunctionSlope(x); }, x))
      .Case<math::SinOp>(with([](N g, N x) { return g * cos(x); }, x))
      .Case<math::CosOp>(with([](N g, N x) { return -g * sin(x); }, x))
      .Case<math::TanOp>(
          with([](N g, N y) { return g * (y * y + 1.0); }, result))
      .Case<math::SinhOp>(with([](N g, N x) { return g * cosh(x); }, x))
      .Case<math::CoshOp>(with([](N g, N x) { return g * sinh(x); }, x))
      .Case<math::AsinOp>(
          with([](N g, N x) { return g * rsqrt(1.0 - x * x); }, x))
      .Case<math::AcosOp>(
          with([](N g, N x) { return -g * rsqrt(1.0 - x * x); }, x))
      .Case<math::AtanOp>(
          with([=](N g, N x) { return g / (square(x) + 1.0); }, x))
      .Case<math::AsinhOp>(
          with([=](N g, N x) { return g * rsqrt(square(x) + 1.0); }, x))
      .Case<math::AcoshOp>(
          with([=](N g, N x) { return g * rsqrt(square(x) - 1.0); }, x))
      .Case<math::AtanhOp>(
          with([=](N g, N x) { return g / (1.0 - square(x)); }, x))
      .Case([&](math::Atan2Op) -> Result {
        return mapGradient(
            [=](N g, N y, N x) {
              Number share = shareOfAngle(g, square(x) + square(y));
              return isFirst ? share * x : -(share * y);
            },
            x, *operands[1]);
      })
      .Case<math::CbrtOp>(
          with([](N g, N y) { return g / (y * y) * (1.0 / 3); }, result))
      .Case<math::AbsFOp>(with(
          [](N g, N x) {
            if (!hasSureSign(x))
              return Number(0, std::fabs(g.value) + g.error, g.unit);
            return x.value == 0 ? Number(0, 0, g.unit) : x.value < 0 ? -g : g;
          },
          x))
      .Case([&](math::PowFOp power) -> Result {
        if (isFirst)
          return mapGradient(
              [isConstant = isConstantNumber(power.getRhs())](N g, N base,
                                                              N exponent) {
                return propagateToBase(g, base, exponent, isConstant);
              },
              x, *operands[1]);
        return mapGradient(propagateToExponent, x, *operands[1], result);
      })
      .Case([&](math::FmaOp) -> Result {
        if (index == 2)
          return gradient;
        return mapGradient([](N g, N y) { return g * y; }, other);
      })
      // Step functions are flat, so they have no gradient.
      .Case<math::FloorOp, math::CeilOp, math::RoundOp, math::RoundEvenOp,
            math::TruncOp>([](auto) { return Array(); })
      .Default(Result());
}
