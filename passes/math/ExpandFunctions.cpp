//===- ExpandFunctions.cpp - Functions as arithmetic ----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Functions as formulas without branches, for vectors on the host and threads
// on the GPU. Formulas of float32 are within about two units in the last place;
// their constants are minimax coefficients. test/numerics/test_functions.py
// measures them.
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
constexpr double kLn2 = 0.69314718055994530942;
constexpr double kLog10E = 0.43429448190325182765;
/// 1.5 * 2^23: adding it rounds to an integer and leaves that in the low bits.
constexpr double kRounder = 12582912.0;

/// The integer nearest to x * `scale`, as a float and in the bits of `shifted`.
struct Nearest {
  Nearest(Formula &f, Value x, double scale)
      : shifted(f.fma(x, f.number(scale), f.number(kRounder))),
        value(f.sub(shifted, f.number(kRounder))) {}
  Value toInteger(Formula &f) {
    return f.subInt(f.toBits(shifted), f.integer(0x4B400000));
  }
  Value shifted, value;
};

/// 2^n, for n from -126 to 127.
Value powerOfTwo(Formula &f, Value n) {
  return f.fromBits(f.shiftLeft(f.addInt(n, f.integer(127)), 23));
}

/// `value`, which a GPU may take for 0 where it is subnormal.
Value flush(Value value) {
  setFlushed(value.getDefiningOp());
  return value;
}

/// x * 2^n in two steps, for results that are subnormal or infinite.
Value scale(Formula &f, Value x, Value n) {
  Value half = f.shiftRightSigned(n, 1);
  x = f.mul(x, powerOfTwo(f, half));
  return f.mul(x, powerOfTwo(f, f.subInt(n, half)));
}

/// x - n ln 2, with ln 2 in two parts.
Value subtractLn2(Formula &f, Value n, Value x) {
  x = f.fma(n, f.number(-0x1.62e400p-1), x);
  return f.fma(n, f.number(-0x1.7f7d1cp-20), x);
}

Value expandExp(Formula &f, Value x) { return createExp(f, x, Value()); }

Value expandExp2(Formula &f, Value x) {
  x = f.clamp(x, -151.0, 129.0);
  Nearest n(f, x, 1.0);
  Value r = f.sub(x, n.value);
  Value result =
      f.polynomial(r, {1.53720379e-4, 1.33903872e-3, 9.61817801e-3,
                       5.55036440e-2, 2.40226522e-1, 6.93147182e-1, 1.0});
  return scale(f, result, n.toInteger(f));
}

Value expandExpM1(Formula &f, Value x) {
  // Below the lower bound the result is -1, above the upper one infinity.
  x = f.clamp(x, -30.0, 89.0);
  Nearest n(f, x, 1 / kLn2);
  Value r = subtractLn2(f, n.value, x);
  Value series = f.polynomial(r, {1.97350979e-4, 1.39309070e-3, 8.33343994e-3,
                                  4.16668020e-2, 1.66666716e-1, 4.99999970e-1});
  series = f.fma(f.mul(r, r), series, r);
  // 2^n (series + 1) - 1, computed in halves, since 2^128 is not a float32.
  Value half = powerOfTwo(f, f.subInt(n.toInteger(f), f.integer(1)));
  Value whole = f.sub(half, f.number(0.5));
  Value lost = f.sub(f.sub(half, whole), f.number(0.5));
  Value result = f.add(f.fma(series, half, lost), whole);
  result = f.add(result, result);
  // The difference above would lose the sign of zero.
  return f.select(f.equal(n.value, f.number(0.0)), series, result);
}

/// The bits by which a float exceeds that of 2/3 to 4/3 with its mantissa: its
/// exponent, in place.
Value exponentOf(Formula &f, Value bits) {
  return f.andInt(f.subInt(bits, f.integer(0x3F2AAAAB)),
                  f.integer(static_cast<int32_t>(0xFF800000)));
}

/// x = (m + 1) 2^exponent with m + 1 from 2/3 to 4/3.
struct Split {
  Split(Formula &f, Value x) {
    Value isSmall = f.less(x, f.number(0x1p-126));
    x = f.select(isSmall, f.mul(x, f.number(0x1p23)), x);
    Value bits = f.toBits(x);
    Value shifted = exponentOf(f, bits);
    m = f.sub(f.fromBits(f.subInt(bits, shifted)), f.number(1.0));
    Value offset = f.select(isSmall, f.number(-23.0), f.number(0.0));
    exponent = f.fma(f.intToFloat(shifted), f.number(0x1p-23), offset);
  }
  Value m, exponent;
};

/// `result` where x is finite and above the number whose logarithm is
/// -infinity, otherwise the special cases.
Value withLogLimits(Formula &f, Value x, Value result, double pole = 0.0) {
  Value isOrdinary = f.less(x, f.number(kInfinity));
  // The logarithms of infinity and NaN are infinity and NaN.
  result = f.select(isOrdinary, result, f.add(x, x));
  Value isAbove = f.compare(arith::CmpFPredicate::UGT, x, f.number(pole));
  Value limit = f.select(f.equal(x, f.number(pole)), f.number(-kInfinity),
                         f.number(std::numeric_limits<double>::quiet_NaN()));
  return f.select(isAbove, result, limit);
}

/// log(m + 1) for m + 1 from 2/3 to 4/3.
Value logNearOne(Formula &f, Value m) {
  Value s = f.mul(m, m);
  Value odd = f.polynomial(s, {0.140869141, 0.139814854, 0.200120345});
  Value even =
      f.polynomial(s, {-0.130310059, -0.121483512, -0.166846126, -0.249996200});
  Value r = f.fma(odd, m, even);
  r = f.fma(r, m, f.number(0.333331972));
  r = f.fma(r, m, f.number(-0.5));
  return f.fma(r, s, m);
}

Value expandLog(Formula &f, Value x) {
  Split split(f, x);
  Value result = logNearOne(f, split.m);
  result = f.fma(split.exponent, f.number(kLn2), result);
  return withLogLimits(f, x, result);
}

Value expandLog2(Formula &f, Value x) {
  Split split(f, x);
  Value result = logNearOne(f, split.m);
  constexpr float log2eHigh = static_cast<float>(1 / kLn2);
  Value low = f.mul(result, f.number(1 / kLn2 - log2eHigh));
  Value high = f.fma(result, f.number(log2eHigh), low);
  return withLogLimits(f, x, f.add(split.exponent, high));
}

Value expandLog10(Formula &f, Value x) {
  Split split(f, x);
  Value result = logNearOne(f, split.m);
  constexpr float log10eHigh = static_cast<float>(kLog10E);
  constexpr float log10of2High = static_cast<float>(kLn2 * kLog10E);
  Value low = f.mul(result, f.number(kLog10E - log10eHigh));
  low = f.fma(split.exponent, f.number(kLn2 * kLog10E - log10of2High), low);
  result = f.fma(result, f.number(log10eHigh), low);
  result = f.fma(split.exponent, f.number(log10of2High), result);
  return withLogLimits(f, x, result);
}

Value expandLog1p(Formula &f, Value x) {
  // 1 + x = (m + 1) 2^exponent, with m = x 2^-exponent + (2^-exponent - 1).
  Value shifted = exponentOf(f, f.toBits(f.add(x, f.number(1.0))));
  Value m = f.fromBits(f.subInt(f.toBits(x), shifted));
  // Four times the power, which is never subnormal.
  Value four = f.fromBits(f.subInt(f.integer(0x40800000), shifted));
  m = f.add(m, f.fma(f.number(0.25), four, f.number(-1.0)));
  Value exponent = f.mul(f.intToFloat(shifted), f.number(0x1p-23));
  Value r = f.fma(exponent, f.number(kLn2), logNearOne(f, m));
  // The formula's sum of zeros would lose the sign of zero.
  r = f.select(f.equal(x, f.number(0.0)), x, r);
  return withLogLimits(f, x, r, /*pole=*/-1.0);
}

Value expandErf(Formula &f, Value x) {
  Value s = f.mul(x, x);
  Value small = f.polynomial(s, {-5.96761703e-4, 4.99119423e-3, -2.67681349e-2,
                                 1.12819925e-1, -3.76125336e-1, 1.28379166e-1});
  small = f.fma(small, x, x);
  // 1 - exp(p(t)), where p is a polynomial to well past the point from which on
  // the result is 1.
  Value t = f.abs(x);
  t = f.select(f.less(f.number(4.0), t), f.number(4.0), t);
  Value square = f.mul(t, t);
  Value r = f.fma(f.polynomial(t, {-1.72853470e-5, 3.83197126e-4}), square,
                  f.polynomial(t, {-3.88396438e-3, 2.42546219e-2}));
  for (double coefficient : {-1.06777877e-1, -6.34846687e-1, -1.28717512e-1})
    r = f.fma(r, t, f.number(coefficient));
  r = f.fma(r, t, f.neg(t));
  // The power is at most a fifth, beside 1, which hides the error of an
  // approximation.
  Formula near(f.builder, f.builder.getLoc(), f.type, kApproximate);
  Value power = flush(near.exp(r));
  Value large = f.copySign(f.sub(f.number(1.0), power), x);
  return f.select(f.less(t, f.number(0.927734375)), small, large);
}

/// With a = |x|: (1 + 2a) exp(a^2) erfc(a) is 1 and a polynomial in
/// (a - 2) / (a + 2). Both quotients are corrected by what they lost.
Value expandErfc(Formula &f, Value x) {
  constexpr double vanishing = 10.0546875;
  Value sign = f.less(x, f.number(0.0));
  Value a = f.abs(x);
  Value isLarge = f.less(f.number(vanishing), a);
  a = f.select(isLarge, f.number(vanishing), a);
  Value one = f.number(1.0), two = f.number(2.0);
  // Both divisors are between 1 and 22.
  Formula near(f.builder, f.builder.getLoc(), f.type, kApproximate);
  Value r = flush(near.div(one, f.add(a, two)));
  Value q = f.mul(f.sub(a, two), r);
  Value lost = f.fma(f.add(q, one), f.number(-2.0), a);
  q = f.fma(r, f.fma(q, f.neg(a), lost), q);
  Value p = f.polynomial(q, {-0x1.a4a000p-12, -0x1.42a260p-10, 0x1.585714p-10,
                             0x1.1adcc4p-07, -0x1.081b82p-07, -0x1.bc0b6ap-05,
                             0x1.4ffc46p-03, -0x1.540840p-03, -0x1.7bf616p-04,
                             0x1.1ba03ap-02});
  r = flush(near.div(one, f.fma(a, two, one)));
  q = f.fma(p, r, r);
  lost = f.fma(f.fma(q, f.neg(a), f.number(0.5)), two, f.sub(p, q));
  r = f.fma(lost, r, q);
  // exp(-a^2), with the lost part of the square.
  Value square = f.mul(a, a);
  Value e = f.exp(f.neg(square));
  lost = f.fma(a, f.neg(a), square);
  r = f.fma(r, e, f.mul(f.mul(r, e), lost));
  r = f.select(isLarge, f.number(0.0), r);
  return f.select(sign, f.sub(two, r), r);
}

/// 1 - 2 / (exp(2|x|) + 1), which hides the error of an approximation, save
/// near 0.
Value expandTanh(Formula &f, Value x) {
  Value small = f.oddPolynomial(
      x, {1.57394409e-2, -5.23025580e-2, 1.33152470e-1, -3.33327681e-1});
  Value a = f.abs(x);
  Formula near(f.builder, f.builder.getLoc(), f.type, kApproximate);
  // The power is at least 1. Where the quotient is subnormal, it is lost beside
  // 1 by far.
  Value e = flush(near.exp(f.add(a, a)));
  Value r = flush(near.div(f.number(1.0), f.add(e, f.number(1.0))));
  Value large = f.copySign(f.fma(r, f.number(-2.0), f.number(1.0)), x);
  return f.select(f.less(a, f.number(0.55)), small, large);
}

/// Expands functions that the conversion to LLVM does not know, or for which it
/// calls a library.
struct ExpandIsInf : public OpRewritePattern<math::IsInfOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::IsInfOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getOperand();
    Formula f(rewriter, op.getLoc(), x.getType());
    rewriter.replaceOp(op, f.equal(f.abs(x), f.number(kInfinity)));
    return success();
  }
};

struct ExpandIsNormal : public OpRewritePattern<math::IsNormalOp> {
  /// The benefit puts this pattern ahead of those that widen: a number that is
  /// subnormal in float16 is not in float32.
  explicit ExpandIsNormal(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/3) {}

  LogicalResult matchAndRewrite(math::IsNormalOp op,
                                PatternRewriter &rewriter) const override {
    Value x = op.getOperand();
    Formula f(rewriter, op.getLoc(), x.getType());
    const llvm::fltSemantics &semantics =
        cast<FloatType>(getElementTypeOrSelf(x.getType())).getFloatSemantics();
    Value a = f.abs(x);
    Value least =
        f.number(APFloat::getSmallestNormalized(semantics).convertToDouble());
    Value most = f.number(APFloat::getLargest(semantics).convertToDouble());
    rewriter.replaceOp(op,
                       f.andInt(f.compare(arith::CmpFPredicate::OGE, a, least),
                                f.compare(arith::CmpFPredicate::OLE, a, most)));
    return success();
  }
};

/// NaN if any operand is.
struct ExpandClamp : public OpRewritePattern<math::ClampFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ClampFOp op,
                                PatternRewriter &rewriter) const override {
    Value raised = arith::MaximumFOp::create(rewriter, op.getLoc(),
                                             op.getValue(), op.getMin());
    rewriter.replaceOpWithNewOp<arith::MinimumFOp>(op, raised, op.getMax());
    return success();
  }
};

/// Functions of float64 for which the conversion to LLVM has only formulas that
/// cancel near 0. Kahan's have the error of the library's exp and log.
struct ExpandDoubleExpM1 : public OpRewritePattern<math::ExpM1Op> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpM1Op op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF64())
      return failure();
    Formula f(rewriter, op.getLoc(), op.getType());
    Value x = op.getOperand(), one = f.number(1.0);
    Value e = f.exp(x);
    Value minusOne = f.sub(e, one);
    Value log = math::LogOp::create(f.builder, e);
    Value result = f.mul(minusOne, f.div(x, log));
    // Here, of exp(x) and 1 / exp(x), one is lost beside the other.
    result = f.select(f.less(f.abs(x), f.number(30.0)), result, minusOne);
    rewriter.replaceOp(op, f.select(f.equal(e, one), x, result));
    return success();
  }
};

struct ExpandDoubleLog1p : public OpRewritePattern<math::Log1pOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::Log1pOp op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF64())
      return failure();
    Formula f(rewriter, op.getLoc(), op.getType());
    Value x = op.getOperand(), one = f.number(1.0);
    Value u = f.add(x, one);
    Value log = math::LogOp::create(f.builder, u);
    Value result = f.mul(log, f.div(x, f.sub(u, one)));
    // Here 1 is lost beside x. At -1 the quotient is infinite.
    Value isNear = f.less(f.abs(x), f.number(0x1p53));
    result = f.select(isNear, result, log);
    rewriter.replaceOp(op, f.select(f.equal(u, one), x, result));
    return success();
  }
};

} // namespace

Value bastile::createExp(Formula &f, Value x, Value rest) {
  x = f.clamp(x, -105.0, 89.0);
  Nearest n(f, x, 1 / kLn2);
  Value r = subtractLn2(f, n.value, x);
  if (rest)
    r = f.add(r, rest);
  Value result = f.polynomial(r, {1.37805939e-3, 8.37312452e-3, 4.16695364e-2,
                                  1.66664720e-1, 4.99999851e-1, 1.0, 1.0});
  return scale(f, result, n.toInteger(f));
}

void bastile::populateExponentialPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandFunction<math::ExpOp, expandExp>,
               ExpandFunction<math::Exp2Op, expandExp2>>(patterns.getContext());
}

void bastile::populateFunctionPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandFunction<math::ExpM1Op, expandExpM1>,
               ExpandFunction<math::LogOp, expandLog>,
               ExpandFunction<math::Log2Op, expandLog2>,
               ExpandFunction<math::Log10Op, expandLog10>,
               ExpandFunction<math::Log1pOp, expandLog1p>,
               ExpandFunction<math::ErfOp, expandErf>,
               ExpandFunction<math::ErfcOp, expandErfc>,
               ExpandFunction<math::TanhOp, expandTanh>, ExpandDoubleExpM1,
               ExpandDoubleLog1p, ExpandIsInf, ExpandIsNormal, ExpandClamp>(
      patterns.getContext());
}
