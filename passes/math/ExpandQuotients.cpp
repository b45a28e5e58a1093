//===- ExpandQuotients.cpp - Quotients of float32 on GPUs -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Quotients that float32 results need. A GPU has them correctly rounded, as it
// has roots, only as a dozen instructions around a branch, behind which waits a
// subroutine for numbers near the ends of the range. What lies behind such a
// branch cannot start ahead of it, so that a thread computes its elements one
// after another. Here are formulas without a branch for operands that are known
// to lie away from 0, as 1 + x^2 does, and for divisors that a whole vector has
// in common. All others are left to code generation.
//
//===----------------------------------------------------------------------===//

#include "passes/math/ExpandMath.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include <limits>

using namespace mlir;
using namespace bastile;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// By what divisors are multiplied. A divisor is below 2^128, so that the
/// reciprocal of an eighth of it is not subnormal, nor is one that is a little
/// too small.
constexpr double kScale = 0.125;

/// The reciprocal of an eighth of a divisor, by the GPU's instruction, whose
/// error is a unit in the last place.
struct ScaledReciprocal {
  ScaledReciprocal(Formula &f, Value divisor)
      : divisor(f.mul(divisor, f.number(kScale))),
        value(createIntrinsic(f, "llvm.nvvm.rcp.approx.ftz.f", this->divisor)) {
  }
  Value divisor, value;
};

/// 1 / y, with one step of Newton's method. The step of an infinite divisor is
/// NaN, which the minimum leaves out.
Value createReciprocal(Formula &f, Value y) {
  ScaledReciprocal r(f, y);
  Value step = f.fma(f.neg(r.value), r.divisor, f.number(1.0));
  step = arith::MinNumFOp::create(f.builder, step, f.number(1.0));
  Value result = f.mul(r.value, f.number(kScale));
  return f.fma(result, step, result);
}

/// The same of y from 1 to 2^100.
Value createFiniteReciprocal(Formula &f, Value y) {
  Value r = createIntrinsic(f, "llvm.nvvm.rcp.approx.ftz.f", y);
  return f.fma(r, f.fma(f.neg(r), y, f.number(1.0)), r);
}

/// x / y of y from 1 to 2^100 and x up to as large: nothing is infinite.
Value createFiniteQuotient(Formula &f, Value x, Value y) {
  Value r = createIntrinsic(f, "llvm.nvvm.rcp.approx.ftz.f", y);
  Value product = f.mul(x, r);
  Value excess = f.fma(product, y, f.neg(x));
  return f.fma(f.neg(excess), r, product);
}

/// x / y: the product with a reciprocal, corrected by what it lost. Where that
/// is no number, the product is infinite, 0 or NaN, as the quotient is. The
/// signs are such that a quotient of 0 keeps its own.
Value createQuotient(Formula &f, Value x, Value y) {
  ScaledReciprocal r(f, y);
  Value reciprocal = f.mul(r.value, f.number(kScale));
  Value product = f.mul(x, reciprocal);
  Value excess = f.fma(product, y, f.neg(x));
  excess = f.select(f.less(f.abs(excess), f.number(kInfinity)), excess,
                    f.number(0.0));
  return f.fma(f.neg(excess), reciprocal, product);
}

/// The number that all elements of a vector are copies of; null for others.
Value getRepeated(Value value) {
  auto repeated = value.getDefiningOp<vector::BroadcastOp>();
  return repeated && isa<FloatType>(repeated.getSource().getType())
             ? repeated.getSource()
             : Value();
}

/// The quotients of a vector by one number: products with its reciprocal, which
/// are within a unit in the last place. Divisors whose reciprocals would be
/// infinite or subnormal are scaled together with the elements.
Value divideByOne(Formula &f, Value x, Value y, bool isAwayFromZero) {
  Formula one(f.builder, f.builder.getLoc(), y.getType());
  auto repeat = [&](Value number) -> Value {
    return vector::BroadcastOp::create(f.builder, x.getType(), number);
  };
  if (!isAwayFromZero) {
    constexpr double least = 0x1p-64, most = 0x1p64;
    Value size = one.abs(y);
    Value scale = one.select(one.less(size, one.number(least)),
                             one.number(most), one.number(1.0));
    scale =
        one.select(one.less(one.number(most), size), one.number(least), scale);
    y = one.mul(y, scale);
    x = f.mul(x, repeat(scale));
  }
  Value reciprocal =
      isAwayFromZero ? createReciprocal(one, y) : one.div(one.number(1.0), y);
  return f.mul(x, repeat(reciprocal));
}

struct ExpandWideDivision : public OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()) || isApproximate(op.getFastmath()))
      return failure();
    Formula f(rewriter, op.getLoc(), op.getType());
    Value x = op.getLhs(), y = op.getRhs();
    if (Value repeated = getRepeated(y); repeated && !getRepeated(x)) {
      rewriter.replaceOp(op, divideByOne(f, x, repeated, isFlushed(op)));
      return success();
    }
    if (!isFlushed(op))
      return failure();
    const bool isFinite = bastile::isFinite(op.getFastmath());
    const bool isReciprocal = matchPattern(x, m_OneFloat());
    auto *createOfOne = isFinite ? createFiniteReciprocal : createReciprocal;
    auto *create = isFinite ? createFiniteQuotient : createQuotient;
    rewriter.replaceOp(op, isReciprocal ? createOfOne(f, y) : create(f, x, y));
    return success();
  }
};

} // namespace

void bastile::populateQuotientPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandWideDivision>(patterns.getContext());
}
