//===- ExpandHidden.cpp - Functions whose error a rounding hides ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Functions of which every result is rounded to 16 bits or fewer. They take the
// GPU's approximations and polynomials of a few terms, and are within 3e-6 of
// the result; ExpandFunctions.cpp has what float32 takes, in twice as many
// instructions. The constants are minimax coefficients of the relative error,
// by Lawson's algorithm. test/numerics/test_functions.py measures the
// functions.
//
//===----------------------------------------------------------------------===//

#include "passes/math/ExpandMath.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace bastile;

namespace {

constexpr double kLog2E = 1.4426950408889634074;
constexpr double kLn2 = 0.69314718055994530942;

/// 2^x, and 1 / x for x from 2^-126 to 2^126: here no number is subnormal, or
/// none that is one can be told from 0.
Value createPower(Formula &f, Value x) {
  return createIntrinsic(f, "llvm.nvvm.ex2.approx.ftz.f32", x);
}
Value createReciprocal(Formula &f, Value x) {
  return createIntrinsic(f, "llvm.nvvm.rcp.approx.ftz.f", x);
}

/// 1 - 2 / (exp(2x) + 1), save near 0. Where the power is beyond 2^126, the
/// quotient is lost beside 1 by far, and where it is below 2^-126, the power
/// is.
Value hideTanh(Formula &f, Value x) {
  Value power = createPower(f, f.mul(x, f.number(2 * kLog2E)));
  Value r = createReciprocal(f, f.add(power, f.number(1.0)));
  Value far = f.fma(r, f.number(-2.0), f.number(1.0));
  Value near = f.oddPolynomial(x, {-0.332232633});
  return f.select(f.less(f.abs(x), f.number(0.1)), near, far);
}

/// The logarithm of 1 + x, which is never subnormal, save near 0.
Value hideLog1p(Formula &f, Value x) {
  Value log2 =
      createIntrinsic(f, "llvm.nvvm.lg2.approx.ftz.f", f.add(x, f.number(1.0)));
  Value far = f.mul(log2, f.number(kLn2));
  Value near = f.polynomial(
      x, {0.202040013, -0.252092748, 0.333326796, -0.499994797, 1.0});
  return f.select(f.less(f.abs(x), f.number(0.1)), f.mul(near, x), far);
}

/// 1 - 2^p(|x|), save near 0. From 4 on, the power is lost beside 1.
Value hideErf(Formula &f, Value x) {
  Value near = f.mul(f.polynomial(f.mul(x, x), {-0.0233806706, 0.112069462,
                                                -0.376071206, 1.12837854}),
                     x);
  Value a = f.abs(x);
  Value t = arith::MinimumFOp::create(f.builder, a, f.number(4.0));
  Value exponent =
      f.polynomial(t, {-0.00230641484, 0.0260094107, -0.14109986, -0.926043476,
                       -1.62433474, -0.000641128543});
  Value far = f.copySign(f.sub(f.number(1.0), createPower(f, exponent)), x);
  return f.select(f.less(a, f.number(0.6)), near, far);
}

/// For a = |x|: t 2^(p(t) - a^2 log2(e)) with t = 1 / (1 + a / 2), as W. Press
/// et al., Numerical Recipes, have it. The power is the square of one that is
/// not subnormal where the result is a number of bfloat16; past 11 it is 0.
Value hideErfc(Formula &f, Value x) {
  Value a = f.abs(x);
  // NaN stays NaN, and the square finite.
  Value bounded = arith::MinimumFOp::create(f.builder, a, f.number(16.0));
  Value t = createReciprocal(f, f.fma(bounded, f.number(0.5), f.number(1.0)));
  SmallVector<double> halves;
  for (double coefficient :
       {-0.264966113, 1.05892257, -1.39958735, 0.462979189, -0.0348900515,
        0.561580107, 1.44172521, -1.82576449})
    halves.push_back(coefficient / 2);
  Value exponent = f.polynomial(t, halves);
  Value root = f.mul(bounded, f.number(kLog2E / 2));
  exponent = f.fma(f.neg(root), bounded, exponent);
  Value power = createPower(f, exponent);
  Value result = f.mul(f.mul(t, power), power);
  return f.select(f.less(x, f.number(0.0)), f.sub(f.number(2.0), result),
                  result);
}

/// Ahead of the function for float32.
template <typename OpTy, Value (*expand)(Formula &, Value)>
struct HideError : public OpRewritePattern<OpTy> {
  explicit HideError(MLIRContext *context)
      : OpRewritePattern<OpTy>(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()) || !isApproximate(op.getFastmath()))
      return failure();
    Formula f(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, expand(f, op.getOperand()));
    return success();
  }
};

} // namespace

void bastile::populateHiddenPatterns(RewritePatternSet &patterns) {
  patterns
      .add<HideError<math::TanhOp, hideTanh>,
           HideError<math::Log1pOp, hideLog1p>, HideError<math::ErfOp, hideErf>,
           HideError<math::ErfcOp, hideErfc>>(patterns.getContext());
}
