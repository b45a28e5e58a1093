//===- ExpandInverse.cpp - Angles of sines and tangents as arithmetic -----===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Inverse trigonometric functions, by odd polynomials near 0 and by identities
// that lead there: the angle of tangent 1 / t is a quarter turn less that of t,
// and the angle of a large sine s is a quarter turn less twice the angle whose
// sine is sqrt((1 - s) / 2). The constants are minimax coefficients of the
// relative error. test/numerics/test_functions.py measures the functions.
//
//===----------------------------------------------------------------------===//

#include "passes/math/ExpandMath.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"
#include <limits>

using namespace mlir;
using namespace bastile;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kPi = 3.14159265358979323846;
/// The largest sine for which the series is used. Beyond it, the identity is,
/// which then subtracts less than 1/2 from pi / 4.
constexpr double kLargestSine = 0.57;

/// The angle of a tangent from 0 to 1.
Value createArcTangent(Formula &f, Value t) {
  return f.oddPolynomial(t, {-0.00178255944, 0.0108680371, -0.0310964715,
                             0.0578812845, -0.0839930922, 0.109508812,
                             -0.142640159, 0.199985296, -0.333332986});
}

/// The angle of a sine up to `kLargestSine`.
Value createArcSine(Formula &f, Value x) {
  return f.oddPolynomial(x, {0.0499676876, 0.00455837976, 0.0347205438,
                             0.0441283025, 0.0750275552, 0.16666618});
}

/// `angle` - x, for an `angle` with more digits than float32 has.
Value subtractFrom(Formula &f, double angle, Value x) {
  const auto high = static_cast<float>(angle);
  return f.add(f.sub(f.number(high), x), f.number(angle - high));
}

/// The angle whose cosine is `c`, at least `kLargestSine`: twice that whose
/// sine is the root of (1 - c) / 2.
Value createSmallArcCosine(Formula &f, Value c) {
  Value half = f.fma(c, f.number(-0.5), f.number(0.5));
  Value root = math::SqrtOp::create(f.builder, half);
  Value angle = createArcSine(f, root);
  return f.add(angle, angle);
}

Value expandAtan(Formula &f, Value x) {
  Value a = f.abs(x), one = f.number(1.0);
  Value isSteep = f.less(one, a);
  Value angle = createArcTangent(f, f.select(isSteep, f.div(one, a), a));
  angle = f.select(isSteep, subtractFrom(f, kPi / 2, angle), angle);
  return f.copySign(angle, x);
}

Value expandAtan2(Formula &f, Value y, Value x) {
  Value a = f.abs(x), b = f.abs(y);
  Value zero = f.number(0.0), one = f.number(1.0);
  Value isSteep = f.less(a, b);
  Value larger = f.select(isSteep, b, a), smaller = f.select(isSteep, a, b);
  // For two zeros the angle is that of 0 / 1, for two infinities that of 1 / 1.
  Value infinity = f.number(kInfinity);
  Value areInfinite = f.andInt(f.equal(a, infinity), f.equal(b, infinity));
  Value divisor = f.select(f.equal(larger, zero), one, larger);
  Value quotient = f.select(areInfinite, one, f.div(smaller, divisor));
  Value angle = createArcTangent(f, quotient);
  angle = f.select(isSteep, subtractFrom(f, kPi / 2, angle), angle);
  // This also holds for -0, which is not less than 0.
  Value isBehind = f.less(f.copySign(one, x), zero);
  angle = f.select(isBehind, subtractFrom(f, kPi, angle), angle);
  return f.copySign(angle, y);
}

Value expandAsin(Formula &f, Value x) {
  Value a = f.abs(x);
  Value far = subtractFrom(f, kPi / 2, createSmallArcCosine(f, a));
  Value isFar = f.less(f.number(kLargestSine), a);
  return f.select(isFar, f.copySign(far, x), createArcSine(f, x));
}

Value expandAcos(Formula &f, Value x) {
  Value a = f.abs(x);
  Value far = createSmallArcCosine(f, a);
  Value isNegative = f.less(x, f.number(0.0));
  far = f.select(isNegative, subtractFrom(f, kPi, far), far);
  Value near = subtractFrom(f, kPi / 2, createArcSine(f, x));
  return f.select(f.less(f.number(kLargestSine), a), far, near);
}

struct ExpandAtan2 : public OpRewritePattern<math::Atan2Op> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::Atan2Op op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()))
      return failure();
    // The division may not be approximate: the reciprocal of a subnormal number
    // is infinite.
    Formula f(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, expandAtan2(f, op.getLhs(), op.getRhs()));
    return success();
  }
};

} // namespace

void bastile::populateInversePatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandFunction<math::AtanOp, expandAtan>,
               ExpandFunction<math::AsinOp, expandAsin>,
               ExpandFunction<math::AcosOp, expandAcos>, ExpandAtan2>(
      patterns.getContext());
}
