//===- ExpandApproximations.cpp - Functions by the GPU's instructions -----===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Ops that `markApproximate` has marked become the GPU's approximations, an
// instruction or two each; other ops become something near to correctly
// rounded.
//
//===----------------------------------------------------------------------===//

#include "passes/math/ExpandMath.h"

#include "dialect/Tile.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "passes/math/Ranges.h"

using namespace mlir;
using namespace bastile;

Value bastile::createIntrinsic(Formula &f, StringRef name, Value x) {
  auto one = [&](Value element) -> Value {
    return LLVM::CallIntrinsicOp::create(f.builder, f.builder.getF32Type(),
                                         f.builder.getStringAttr(name),
                                         ValueRange{element})
        ->getResult(0);
  };
  auto vector = dyn_cast<VectorType>(x.getType());
  if (!vector)
    return one(x);
  Value result = f.number(0.0);
  for (int64_t index = 0; index < vector.getNumElements(); ++index) {
    Value element = vector::ExtractOp::create(f.builder, x, index);
    result = vector::InsertOp::create(f.builder, one(element), result, index);
  }
  return result;
}

namespace {

constexpr double kLog2E = 1.4426950408889634074;
constexpr double kLn2 = 0.69314718055994530942;

/// 2^(x scale), approximately. What is below 2^-126 may be `flushed` to 0, or
/// it is the square of a number that is not: the instruction that has such
/// results takes three more than this square.
Value createPower(Formula &f, Value x, double scale, bool flushed) {
  if (!flushed)
    scale /= 2;
  if (scale != 1)
    x = f.mul(x, f.number(scale));
  Value power = createIntrinsic(f, "llvm.nvvm.ex2.approx.ftz.f32", x);
  return flushed ? power : f.mul(power, power);
}

/// exp(x) = 2^(x log2 e) by the GPU's ex2, whose error is about two units in
/// the last place of float32.
///
/// The rounding of x log2 e alone costs up to |x| half-units. Where that can be
/// seen it is made up for: with t the rounded product and e = x - t ln 2 what
/// it lost, exp(x) = 2^t exp(e), which is 2^t + 2^t e up to 2^t e^2.
struct ExpandExp : public OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()))
      return failure();
    Location loc = op.getLoc();
    Formula f(rewriter, loc, op.getType());
    Value x = op.getOperand();
    // An instruction has its operand's size for nothing.
    if (Value signedX = getOfNegatedSize(x))
      x = f.neg(f.abs(signedX));
    if (isApproximate(op.getFastmath())) {
      rewriter.replaceOp(op, createPower(f, x, kLog2E, isFlushed(op)));
      return success();
    }
    // Beyond these bounds the result is 0 or infinity, and what an infinite
    // product lost would be NaN. The upper bound is the first number whose
    // result is infinity: what its product lost is positive, as a number added
    // to infinity must be.
    x = arith::MaximumFOp::create(rewriter, loc, x, f.number(-105.0));
    if (!isFinite(op.getFastmath()))
      x = arith::MinimumFOp::create(rewriter, loc, x, f.number(0x1.62e43p+6));
    constexpr float ln2High = static_cast<float>(kLn2);
    Value product = f.mul(x, f.number(kLog2E));
    Value lost = f.fma(product, f.number(-ln2High), x);
    lost = f.fma(product, f.number(ln2High - kLn2), lost);
    Value power = createIntrinsic(f,
                                  isFlushed(op) ? "llvm.nvvm.ex2.approx.ftz.f32"
                                                : "llvm.nvvm.ex2.approx.f32",
                                  product);
    rewriter.replaceOp(op, f.fma(power, lost, power));
    return success();
  }
};

/// x / y = x (1 / y) by the GPU's reciprocal. IEEE division is a subroutine.
/// The reciprocal alone takes six instructions more unless subnormal numbers
/// may be flushed.
struct ExpandDivision : public OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &rewriter) const override {
    const bool isReciprocal = matchPattern(op.getLhs(), m_OneFloat());
    if (!isFloat32(op.getType()) || !isApproximate(op.getFastmath()) ||
        (isReciprocal && !isFlushed(op)))
      return failure();
    Formula f(rewriter, op.getLoc(), op.getType(), kApproximate);
    Value reciprocal =
        isFlushed(op)
            ? createIntrinsic(f, "llvm.nvvm.rcp.approx.ftz.f", op.getRhs())
            : f.div(f.number(1.0), op.getRhs());
    rewriter.replaceOp(op, isReciprocal ? reciprocal
                                        : f.mul(op.getLhs(), reciprocal));
    return success();
  }
};

/// 1 / sqrt(x), which the GPU has as one instruction where the root is not
/// subnormal, within two units in the last place.
struct ExpandRsqrt : public OpRewritePattern<math::RsqrtOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::RsqrtOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()))
      return failure();
    Formula f(rewriter, op.getLoc(), op.getType(), op.getFastmath());
    if (isFlushed(op)) {
      rewriter.replaceOp(op, createIntrinsic(f, "llvm.nvvm.rsqrt.approx.ftz.f",
                                             op.getOperand()));
      return success();
    }
    Value root = math::SqrtOp::create(rewriter, op.getLoc(), op.getOperand(),
                                      op.getFastmath());
    rewriter.replaceOp(op, f.div(f.number(1.0), root));
    return success();
  }
};

/// Roots that are not of subnormal numbers are one instruction, within a unit
/// in the last place, which serves those whose every bit counts as well: a
/// correctly rounded root has a branch (ExpandQuotients.cpp). All other roots
/// are left to code generation.
struct ExpandSqrt : public OpRewritePattern<math::SqrtOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::SqrtOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()) || !isFlushed(op))
      return failure();
    Formula f(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(
        op, createIntrinsic(f, "llvm.nvvm.sqrt.approx.ftz.f", op.getOperand()));
    return success();
  }
};

struct ExpandExp2 : public OpRewritePattern<math::Exp2Op> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::Exp2Op op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()))
      return failure();
    Formula f(rewriter, op.getLoc(), op.getType());
    Value x = op.getOperand();
    rewriter.replaceOp(op,
                       isApproximate(op.getFastmath())
                           ? createPower(f, x, /*scale=*/1, isFlushed(op))
                           : createIntrinsic(f, "llvm.nvvm.ex2.approx.f32", x));
    return success();
  }
};

/// The GPU's lg2 is near in absolute terms only where the result is near 0;
/// there, a series takes its place.
template <typename OpTy>
struct ExpandLog : public OpRewritePattern<OpTy> {
  ExpandLog(MLIRContext *context, double logOf2)
      : OpRewritePattern<OpTy>(context, /*benefit=*/2), logOf2(logOf2) {}

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()) || !isApproximate(op.getFastmath()))
      return failure();
    Formula f(rewriter, op.getLoc(), op.getType());
    Value x = op.getOperand();
    Value log2 = createIntrinsic(f,
                                 isFlushed(op) ? "llvm.nvvm.lg2.approx.ftz.f"
                                               : "llvm.nvvm.lg2.approx.f",
                                 x);
    Value far = f.mul(log2, f.number(logOf2));
    Value m = f.sub(x, f.number(1.0));
    double scale = logOf2 / kLn2;
    Value near =
        f.polynomial(m, {scale / 5, -scale / 4, scale / 3, -scale / 2, scale});
    Value isNear = f.less(f.abs(m), f.number(0.125));
    rewriter.replaceOp(op, f.select(isNear, f.mul(near, m), far));
    return success();
  }

  /// The logarithm of 2 in the base of this logarithm.
  double logOf2;
};

/// A minimum or maximum that drops NaN is one instruction of the GPU, for which
/// the conversion to NVVM would call a library.
template <typename OpTy, typename IntrinsicOp>
struct ExpandExtremum : public OpRewritePattern<OpTy> {
  using OpRewritePattern<OpTy>::OpRewritePattern;

  LogicalResult matchAndRewrite(OpTy op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()))
      return failure();
    rewriter.replaceOpWithNewOp<IntrinsicOp>(op, op.getLhs(), op.getRhs());
    return success();
  }
};

} // namespace

void bastile::populateApproximationPatterns(RewritePatternSet &patterns) {
  patterns.add<ExpandExp, ExpandDivision, ExpandRsqrt, ExpandSqrt, ExpandExp2,
               ExpandExtremum<arith::MaxNumFOp, LLVM::MaxNumOp>,
               ExpandExtremum<arith::MinNumFOp, LLVM::MinNumOp>>(
      patterns.getContext());
  patterns.add<ExpandLog<math::LogOp>>(patterns.getContext(), kLn2);
  patterns.add<ExpandLog<math::Log2Op>>(patterns.getContext(), 1.0);
}
