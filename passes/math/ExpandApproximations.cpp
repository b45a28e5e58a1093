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
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace bastile;

namespace {

constexpr double kLog2E = 1.4426950408889634074;
constexpr double kLn2 = 0.69314718055994530942;

/// Applies the GPU's intrinsic `name` to each element.
Value createIntrinsic(Formula &f, StringRef name, Value x) {
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

/// The values that hold what `use` takes on as it is, possibly rounded; nothing
/// if the use does something else with it.
std::optional<SmallVector<Value>> follow(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<arith::TruncFOp, LLVM::BitcastOp, LLVM::ExtractElementOp,
          LLVM::InsertElementOp, vector::ExtractOp, vector::FromElementsOp>(
          user))
    return SmallVector<Value>{user->getResult(0)};
  if (isa<tile::WgmmaWaitOp>(user))
    return SmallVector<Value>{user->getResult(use.getOperandNumber())};
  if (isa<scf::YieldOp>(user))
    if (auto loop = dyn_cast<scf::ForOp>(user->getParentOp()))
      return SmallVector<Value>{loop.getRegionIterArg(use.getOperandNumber()),
                                loop.getResult(use.getOperandNumber())};
  return std::nullopt;
}

/// Whether what `first` takes, rounded or not, is only used as the left operand
/// of products of warpgroups, whose sums it is a factor of.
bool isFactorOfDots(OpOperand &first) {
  SmallVector<OpOperand *> uses{&first};
  DenseSet<Value> seen;
  while (!uses.empty()) {
    OpOperand *use = uses.pop_back_val();
    if (isa<tile::WgmmaFenceOp>(use->getOwner()))
      continue;
    std::optional<SmallVector<Value>> values = follow(*use);
    if (!values)
      return false;
    for (Value value : *values)
      if (seen.insert(value).second)
        for (OpOperand &next : value.getUses())
          uses.push_back(&next);
  }
  return true;
}

/// Whether a result below 2^-126 may be flushed to 0: `value` is only used in
/// sums and in products with a number that is the same for all of a vector, as
/// the terms of a softmax are. So small a number adds nothing to a sum and
/// stays small in such a product; a gate, in contrast, may be multiplied by
/// something large.
bool isTerm(Value value) {
  return llvm::all_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<arith::AddFOp, vector::ReductionOp>(user) || isFactorOfDots(use))
      return true;
    if (!isa<arith::MulFOp, arith::DivFOp>(user))
      return false;
    Value other = user->getOperand(user->getOperand(0) == value ? 1 : 0);
    return other != value &&
           (isa<arith::MulFOp>(user) || user->getOperand(0) == value) &&
           other.getDefiningOp<vector::BroadcastOp>();
  });
}

/// 2^x. Unless results below 2^-126 may be `flushed` to 0, they take three
/// instructions more than the power itself.
Value createExp2(Formula &f, Value x, bool flushed = false) {
  return createIntrinsic(
      f, flushed ? "llvm.nvvm.ex2.approx.ftz.f32" : "llvm.nvvm.ex2.approx.f32",
      x);
}

/// exp(x) = 2^(x log2 e) by the GPU's ex2, whose error is about two units in
/// the last place of float32.
///
/// The rounding of x log2 e alone costs up to |x| half-units. Where that can be
/// seen it is made up for: with t the rounded and e the lost part of the
/// product, exp(x) = 2^t + 2^t e ln 2 up to 2^t e^2.
struct ExpandExp : public OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()))
      return failure();
    constexpr float log2eHigh = static_cast<float>(kLog2E);
    Location loc = op.getLoc();
    Formula f(rewriter, loc, op.getType());
    Value x = op.getOperand();
    if (isApproximate(op.getFastmath())) {
      Value power = f.mul(x, f.number(kLog2E));
      rewriter.replaceOp(op, createExp2(f, power, isTerm(op)));
      return success();
    }
    // Beyond these bounds the result is 0 or infinity, and the lost part of an
    // infinite product would be NaN. The upper bound is the first number whose
    // result is infinity: its own lost part is positive, as a number added to
    // infinity must be.
    x = arith::MaximumFOp::create(rewriter, loc, x, f.number(-105.0));
    x = arith::MinimumFOp::create(rewriter, loc, x, f.number(0x1.62e43p+6));
    Value power = f.mul(x, f.number(log2eHigh));
    Value lost = f.fma(x, f.number(log2eHigh), f.neg(power));
    lost = f.fma(x, f.number(kLog2E - log2eHigh), lost);
    Value result = createExp2(f, power);
    Value correction = f.mul(lost, f.number(kLn2));
    rewriter.replaceOp(op, f.fma(result, correction, result));
    return success();
  }
};

/// x / y = x (1 / y) by the GPU's reciprocal. IEEE division is a subroutine.
struct ExpandDivision : public OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()) || !isApproximate(op.getFastmath()) ||
        matchPattern(op.getLhs(), m_OneFloat()))
      return failure();
    Formula f(rewriter, op.getLoc(), op.getType(), kApproximate);
    Value reciprocal = f.div(f.number(1.0), op.getRhs());
    rewriter.replaceOp(op, f.mul(op.getLhs(), reciprocal));
    return success();
  }
};

/// 1 / sqrt(x), which the GPU has as one instruction when both may be
/// approximate.
struct ExpandRsqrt : public OpRewritePattern<math::RsqrtOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::RsqrtOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()))
      return failure();
    Formula f(rewriter, op.getLoc(), op.getType(), op.getFastmath());
    Value root = math::SqrtOp::create(rewriter, op.getLoc(), op.getOperand(),
                                      op.getFastmath());
    rewriter.replaceOp(op, f.div(f.number(1.0), root));
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
    bool flushed =
        isApproximate(op.getFastmath()) &&
        (op->hasAttr(tile::TileDialect::kFlushedAttrName) || isTerm(op));
    rewriter.replaceOp(op, createExp2(f, op.getOperand(), flushed));
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
    Value log2 = createIntrinsic(f, "llvm.nvvm.lg2.approx.f", x);
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
  patterns.add<ExpandExp, ExpandDivision, ExpandRsqrt, ExpandExp2,
               ExpandExtremum<arith::MaxNumFOp, LLVM::MaxNumOp>,
               ExpandExtremum<arith::MinNumFOp, LLVM::MinNumOp>>(
      patterns.getContext());
  patterns.add<ExpandLog<math::LogOp>>(patterns.getContext(), kLn2);
  patterns.add<ExpandLog<math::Log2Op>>(patterns.getContext(), 1.0);
}
