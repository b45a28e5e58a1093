//===- ExpandPowers.cpp - Powers and remainders as arithmetic -------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/math/ExpandMath.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"
#include <cmath>
#include <limits>
#include <optional>

using namespace mlir;
using namespace bastile;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLn2 = 0.69314718055994530942;

/// A number as an unevaluated sum of two, the second of them small.
struct Pair {
  Value high, low;
};

/// log(a) of a finite positive number: with q = (m - 1) / (m + 1), it is
/// 2 atanh(q) + exponent * log(2).
Pair expandLog(Formula &f, Value a) {
  Value isSmall = f.less(a, f.number(0x1p-126));
  a = f.select(isSmall, f.mul(a, f.number(0x1p24)), a);
  Value bits = f.toBits(a);
  Value shifted = f.andInt(f.subInt(bits, f.integer(0x3F3504F3)),
                           f.integer(static_cast<int32_t>(0xFF800000)));
  Value m = f.fromBits(f.subInt(bits, shifted));
  Value offset = f.select(isSmall, f.number(-24.0), f.number(0.0));
  Value exponent = f.fma(f.intToFloat(shifted), f.number(0x1p-23), offset);

  Value one = f.number(1.0), two = f.number(2.0);
  Value sum = f.add(m, one);
  m = f.sub(m, one);
  Value r = f.div(one, sum);
  Pair q;
  q.high = f.mul(r, m);
  q.low = f.mul(r, f.fma(q.high, f.neg(m), f.fma(q.high, f.number(-2.0), m)));
  // The square and the cube of q, the square of its high part lost in `t`.
  Value s = f.mul(q.high, q.high);
  r = f.polynomial(s, {0.1293334961, 0.1419928074, 0.2000148296, 0.3333332539});
  Value t = f.fma(q.high, f.add(q.low, q.low), f.fma(q.high, q.high, f.neg(s)));
  Value cube = f.mul(s, q.high);
  t = f.fma(s, q.low, f.fma(t, q.high, f.fma(s, q.high, f.neg(cube))));
  s = f.fma(r, cube, f.fma(r, t, q.low));
  r = f.add(q.high, q.high);

  constexpr float ln2High = static_cast<float>(kLn2);
  t = f.fma(f.number(ln2High), exponent, r);
  Value p = f.fma(f.number(-ln2High), exponent, t);
  s = f.fma(f.number(kLn2 - ln2High), exponent, f.fma(two, s, f.sub(r, p)));
  Value high = f.add(t, s);
  return {high, f.add(f.sub(t, high), s)};
}

/// |x|^y, where |x| is neither 0 nor infinite.
Value expandPositivePower(Formula &f, Value a, Value y) {
  if (isApproximate(f.flags)) {
    Value log = math::Log2Op::create(f.builder, a);
    return math::Exp2Op::create(f.builder, f.mul(log, y), kApproximate);
  }
  Pair log = expandLog(f, a);
  Value high = f.mul(log.high, y);
  Value low = f.fma(log.low, y, f.fma(log.high, y, f.neg(high)));
  // Beyond this bound the result is 0 or infinite, and the lost part may be
  // anything.
  Value isInside = f.less(f.abs(high), f.number(105.0));
  return createExp(f, high, f.select(isInside, low, f.number(0.0)));
}

/// All cases of IEEE 754's pow.
Value expandPower(Formula &f, Value x, Value y) {
  using Predicate = arith::CmpFPredicate;
  Value zero = f.number(0.0), one = f.number(1.0);
  Value infinity = f.number(kInfinity);
  Value a = f.abs(x);
  Value result = expandPositivePower(f, a, y);
  // A power of 0 or infinity is one or the other of these.
  auto both = [&](Value lhs, Value rhs) -> Value {
    return arith::XOrIOp::create(f.builder, lhs, rhs);
  };
  Value isZero = f.equal(a, zero), isInfinite = f.equal(a, infinity);
  Value isNegativePower = f.less(y, zero);
  Value limit = f.select(both(isZero, isNegativePower), zero, infinity);
  result = f.select(f.orInt(isZero, isInfinite), limit, result);

  // A number less than 0 has integral powers only; odd ones have its sign.
  Value whole = f.truncate(y);
  Value isFraction = f.compare(Predicate::ONE, whole, y);
  Value half = f.mul(y, f.number(0.5));
  Value isOdd = f.compare(Predicate::ONE, f.truncate(half), half);
  Value isNotOdd = f.orInt(isFraction, f.negate(isOdd));
  result = f.select(isNotOdd, result, f.copySign(result, x));
  Value isNegative =
      f.andInt(f.less(x, zero), f.compare(Predicate::ONE, a, infinity));
  result = f.select(f.andInt(isNegative, isFraction),
                    f.number(std::numeric_limits<double>::quiet_NaN()), result);
  result = f.select(f.compare(Predicate::UNO, x, y), f.add(x, y), result);
  // The result is 1 for 1 to any power, any number to the power 0, and -1 to
  // the power of infinity.
  Value isOne = f.orInt(f.equal(x, one), f.equal(y, zero));
  isOne =
      f.orInt(isOne, f.andInt(f.equal(a, one), f.equal(f.abs(y), infinity)));
  return f.select(isOne, one, result);
}

struct ExpandPow : public OpRewritePattern<math::PowFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::PowFOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()))
      return failure();
    Formula f(rewriter, op.getLoc(), op.getType(), op.getFastmath());
    rewriter.replaceOp(op, expandPower(f, op.getLhs(), op.getRhs()));
    return success();
  }
};

/// x^n for a positive n, by about as many products as n has bits.
Value createProduct(Formula &f, Value x, int64_t n) {
  if (n == 1)
    return x;
  Value half = createProduct(f, x, n / 2);
  Value square = f.mul(half, half);
  return n % 2 ? f.mul(square, x) : square;
}

/// Expands small integral powers into products, also of float64. Where products
/// may become infinite though their reciprocal is not zero, float32 takes the
/// general power.
struct ExpandIntegralPow : public OpRewritePattern<math::PowFOp> {
  explicit ExpandIntegralPow(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(math::PowFOp op,
                                PatternRewriter &rewriter) const override {
    constexpr double largest = 8;
    Type element = getElementTypeOrSelf(op.getType());
    std::optional<double> exponent = getConstant(op.getRhs());
    if (!(element.isF32() || element.isF64()) || !exponent)
      return failure();
    const double n = *exponent, least = element.isF32() ? -1 : -largest;
    if (!(n >= least && n <= largest) || n != std::trunc(n))
      return failure();
    Formula f(rewriter, op.getLoc(), op.getType(), op.getFastmath());
    Value one = f.number(1.0);
    if (n == 0) {
      rewriter.replaceOp(op, one);
      return success();
    }
    Value product = createProduct(f, op.getLhs(), std::abs(n));
    rewriter.replaceOp(op, n < 0 ? f.div(one, product) : product);
    return success();
  }
};

/// Expands powers that PyTorch computes as roots, which differ from C's pow for
/// -0 and -infinity.
struct ExpandRootPow : public OpRewritePattern<math::PowFOp> {
  explicit ExpandRootPow(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(math::PowFOp op,
                                PatternRewriter &rewriter) const override {
    Type element = getElementTypeOrSelf(op.getType());
    std::optional<double> exponent = getConstant(op.getRhs());
    if (!(element.isF32() || element.isF64()) || !exponent)
      return failure();
    const double n = *exponent;
    if (n == 0.5)
      rewriter.replaceOpWithNewOp<math::SqrtOp>(op, op.getLhs(),
                                                op.getFastmath());
    else if (n == -0.5)
      rewriter.replaceOpWithNewOp<math::RsqrtOp>(op, op.getLhs(),
                                                 op.getFastmath());
    else
      return failure();
    return success();
  }
};

/// The cube root by 1 / cbrt, which needs no division: with r near to that and
/// d = 1 - a r^3, it is r (1 - d)^(-1/3).
Value expandCbrt(Formula &f, Value x) {
  Value a = f.abs(x);
  Value isSmall = f.less(a, f.number(0x1p-126));
  a = f.select(isSmall, f.mul(a, f.number(0x1p24)), a);
  // A third of the exponent's bits gives the root within 3.5%.
  Value guess = f.fma(f.intToFloat(f.toBits(a)), f.number(-1.0 / 3),
                      f.number(0x1.5288cp+30));
  Value r = f.fromBits(f.floatToInt(guess));
  for (int step = 0; step < 2; ++step) {
    Value d = f.fma(f.mul(f.neg(a), r), f.mul(r, r), f.number(1.0));
    Value change = f.fma(f.number(2.0 / 9), d, f.number(1.0 / 3));
    r = f.fma(f.mul(r, d), change, r);
  }
  // The part of a that the cube of the root lacks.
  Value square = f.mul(r, r);
  Value root = f.mul(a, square);
  Value s = f.mul(root, root);
  Value lost = f.fma(root, root, f.neg(s));
  Value rest = f.fma(f.neg(lost), root, f.fma(f.neg(s), root, a));
  root = f.fma(f.mul(rest, square), f.number(1.0 / 3), root);
  root = f.select(isSmall, f.mul(root, f.number(0x1p-8)), root);
  root = f.copySign(root, x);
  // 0, infinity and NaN have no 1 / cbrt, and are their own roots.
  Value isInside =
      f.andInt(f.less(f.number(0.0), a), f.less(a, f.number(kInfinity)));
  return f.select(isInside, root, x);
}

/// x - y trunc(x / y), without rounding, while the quotient is below 2^24. The
/// host has a library for all of them.
struct ExpandRemainder : public OpRewritePattern<arith::RemFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::RemFOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()))
      return failure();
    Formula f(rewriter, op.getLoc(), op.getType());
    Value x = op.getLhs(), y = op.getRhs();
    Value a = f.abs(x), b = f.abs(y);
    Value quotient = f.truncate(f.div(a, b));
    Value r = f.fma(f.neg(quotient), b, a);
    // The division has rounded up to an integer.
    r = f.select(f.less(r, f.number(0.0)), f.add(r, b), r);
    Value isSmaller = f.less(a, b);
    rewriter.replaceOp(op, f.copySign(f.select(isSmaller, a, r), x));
    return success();
  }
};

} // namespace

void bastile::populatePowerPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandPow, ExpandIntegralPow, ExpandRootPow,
               ExpandFunction<math::CbrtOp, expandCbrt>>(patterns.getContext());
}

void bastile::populateRemainderPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandRemainder>(patterns.getContext());
}
