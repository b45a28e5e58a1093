//===- ExpandHyperbolic.cpp - Hyperbolic functions as arithmetic ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Hyperbolic functions and their inverses, from exponentials and logarithms
// where these do not cancel, and from odd polynomials near 0, whose constants
// are minimax coefficients of the relative error. tanh, which models use, is in
// ExpandFunctions.cpp. test/numerics/test_functions.py measures the functions.
//
//===----------------------------------------------------------------------===//

#include "passes/math/ExpandMath.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"
#include <limits>

using namespace mlir;
using namespace bastile;

namespace {

constexpr double kLn2 = 0.69314718055994530942;
/// From this number on, 1 is lost beside its square.
constexpr double kLarge = 0x1p13;

/// e^a / 2, which is finite where e^a is already infinite.
Value createHalfExp(Formula &f, Value a) {
  // ln 2 has so few digits here that its difference from any a above 1 is
  // exact.
  constexpr double high = 0x1.62e4p-1;
  return createExp(f, f.sub(a, f.number(high)), f.number(high - kLn2));
}

/// e^-a / 2, given e^a / 2.
Value createOtherHalf(Formula &f, Value half) {
  return f.div(f.number(0.25), half);
}

Value expandSinh(Formula &f, Value x) {
  Value near = f.oddPolynomial(
      x, {2.78221319e-6, 1.98428956e-4, 8.33331048e-3, 0.166666672});
  Value a = f.abs(x);
  Value half = createHalfExp(f, a);
  Value far = f.copySign(f.sub(half, createOtherHalf(f, half)), x);
  return f.select(f.less(a, f.number(1.0)), near, far);
}

Value expandCosh(Formula &f, Value x) {
  Value half = createHalfExp(f, f.abs(x));
  return f.add(half, createOtherHalf(f, half));
}

Value createLog1p(Formula &f, Value x) {
  return math::Log1pOp::create(f.builder, x);
}

/// log(2a), also where twice a is infinite.
Value createLogOfTwice(Formula &f, Value a) {
  return f.add(math::LogOp::create(f.builder, a), f.number(kLn2));
}

/// log(a + sqrt(a^2 + 1)), computed as log(1 + ...): the root exceeds 1 by a^2
/// / (1 + root).
Value expandAsinh(Formula &f, Value x) {
  Value a = f.abs(x);
  Value near = f.oddPolynomial(a, {-0.0132236369, 0.0281610917, -0.0443829596,
                                   0.0749864057, -0.166666433});
  Value one = f.number(1.0), large = f.number(kLarge);
  Value isLarge = f.less(large, a);
  Value bounded = f.select(isLarge, large, a);
  Value root = math::SqrtOp::create(f.builder, f.fma(bounded, bounded, one));
  Value excess = f.div(f.mul(bounded, bounded), f.add(root, one));
  Value far = f.select(isLarge, createLogOfTwice(f, a),
                       createLog1p(f, f.add(bounded, excess)));
  return f.copySign(f.select(f.less(a, f.number(0.5)), near, far), x);
}

/// log(x + sqrt(x^2 - 1)), computed as log(1 + ...) from t = x - 1.
Value expandAcosh(Formula &f, Value x) {
  Value t = f.sub(x, f.number(1.0));
  Value root = math::SqrtOp::create(f.builder, f.fma(t, t, f.add(t, t)));
  Value near = createLog1p(f, f.add(t, root));
  Value result =
      f.select(f.less(f.number(kLarge), x), createLogOfTwice(f, x), near);
  // Below -1, the root would be that of a positive number and give no NaN.
  return f.select(f.less(x, f.number(1.0)),
                  f.number(std::numeric_limits<double>::quiet_NaN()), result);
}

/// log((1 + a) / (1 - a)) / 2.
Value expandAtanh(Formula &f, Value x) {
  Value near = f.oddPolynomial(x, {0.176406607, 0.0515858494, 0.118168227,
                                   0.142237425, 0.200024545, 0.333333015});
  Value a = f.abs(x), half = f.number(0.5);
  Value quotient = f.div(f.add(a, a), f.sub(f.number(1.0), a));
  Value far = f.mul(half, createLog1p(f, quotient));
  return f.select(f.less(a, half), near, f.copySign(far, x));
}

} // namespace

void bastile::populateHyperbolicPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandFunction<math::SinhOp, expandSinh>,
               ExpandFunction<math::CoshOp, expandCosh>,
               ExpandFunction<math::AsinhOp, expandAsinh>,
               ExpandFunction<math::AcoshOp, expandAcosh>,
               ExpandFunction<math::AtanhOp, expandAtanh>>(
      patterns.getContext());
}
