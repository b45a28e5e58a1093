//===- ExpandMath.cpp - Rewrite functions and casts that targets lack -----===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "bastile/Target.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace bastile {
#define GEN_PASS_DEF_EXPANDMATH
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

namespace {

constexpr arith::FastMathFlags kApproximate = arith::FastMathFlags::afn;

bool isFloat32(Type type) { return getElementTypeOrSelf(type).isF32(); }

bool isApproximate(arith::FastMathFlags flags) {
  return bitEnumContainsAll(flags, kApproximate);
}

Value constant(OpBuilder &builder, Location loc, Type type, double value) {
  TypedAttr scalar =
      builder.getFloatAttr(getElementTypeOrSelf(type), value);
  if (auto vector = dyn_cast<VectorType>(type))
    scalar = DenseElementsAttr::get(vector, Attribute(scalar));
  return arith::ConstantOp::create(builder, loc, scalar);
}

/// Whether the results of the kernel around `op` are so narrow that their
/// rounding hides the error of the GPU's approximations.
bool hasNarrowResults(Operation *op) {
  auto kernel = op->getParentOfType<tile::KernelOp>();
  if (!kernel)
    return false;
  auto result = kernel.walk([](LLVM::StoreOp store) {
    unsigned space =
        cast<LLVM::LLVMPointerType>(store.getAddr().getType()).getAddressSpace();
    bool isShared =
        space == static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared);
    Type element = getElementTypeOrSelf(store.getValue().getType());
    return !isShared && element.getIntOrFloatBitWidth() > 16
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return !result.wasInterrupted();
}

/// exp(x) = 2^(x log2 e) by the GPU's ex2, whose error is about two units in
/// the last place of float32.
///
/// The rounding of x log2 e alone costs up to |x| half-units. Where results are
/// float32 it is made up for: with t the rounded and e the lost part of the
/// product, exp(x) = 2^t (1 + e ln 2) up to e^2.
struct ExpandExp : public OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!isFloat32(type))
      return failure();
    constexpr double log2e = 1.4426950408889634074;
    constexpr double ln2 = 0.69314718055994530942;
    constexpr float log2eHigh = static_cast<float>(log2e);
    Location loc = op.getLoc();
    auto number = [&](double value) {
      return constant(rewriter, loc, type, value);
    };
    auto exp2 = [&](Value power) {
      return math::Exp2Op::create(rewriter, loc, power, kApproximate);
    };
    Value x = op.getOperand();
    if (hasNarrowResults(op)) {
      Value power = arith::MulFOp::create(rewriter, loc, x, number(log2e));
      rewriter.replaceOp(op, exp2(power));
      return success();
    }
    // Beyond these bounds the result is 0 or infinity, and the lost part of an
    // infinite product would be NaN.
    x = arith::MaximumFOp::create(rewriter, loc, x, number(-105.0));
    x = arith::MinimumFOp::create(rewriter, loc, x, number(89.0));
    Value power = arith::MulFOp::create(rewriter, loc, x, number(log2eHigh));
    Value negated = arith::NegFOp::create(rewriter, loc, power);
    Value lost =
        math::FmaOp::create(rewriter, loc, x, number(log2eHigh), negated);
    lost = math::FmaOp::create(rewriter, loc, x, number(log2e - log2eHigh),
                               lost);
    Value correction =
        math::FmaOp::create(rewriter, loc, lost, number(ln2), number(1.0));
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, exp2(power), correction);
    return success();
  }
};

/// x / y = x (1 / y) by the GPU's reciprocal. IEEE division is a subroutine.
struct ExpandDivision : public OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::DivFOp op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()) || isApproximate(op.getFastmath()) ||
        !hasNarrowResults(op))
      return failure();
    Value one = constant(rewriter, op.getLoc(), op.getType(), 1.0);
    Value reciprocal = arith::DivFOp::create(rewriter, op.getLoc(), one,
                                             op.getRhs(), kApproximate);
    if (matchPattern(op.getLhs(), m_OneFloat()))
      rewriter.replaceOp(op, reciprocal);
    else
      rewriter.replaceOpWithNewOp<arith::MulFOp>(op, op.getLhs(), reciprocal);
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
    arith::FastMathFlags flags =
        hasNarrowResults(op) ? kApproximate : arith::FastMathFlags::none;
    Value root =
        math::SqrtOp::create(rewriter, op.getLoc(), op.getOperand(), flags);
    Value one = constant(rewriter, op.getLoc(), op.getType(), 1.0);
    rewriter.replaceOpWithNewOp<arith::DivFOp>(op, one, root, flags);
    return success();
  }
};

/// The only form in which the GPU has 2^x.
struct ExpandExp2 : public OpRewritePattern<math::Exp2Op> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(math::Exp2Op op,
                                PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()) || isApproximate(op.getFastmath()))
      return failure();
    rewriter.replaceOpWithNewOp<math::Exp2Op>(op, op.getOperand(),
                                              kApproximate);
    return success();
  }
};

struct ExpandMathPass : public bastile::impl::ExpandMathBase<ExpandMathPass> {
  using ExpandMathBase::ExpandMathBase;

  void runOnOperation() override {
    llvm::Expected<const Target &> found = Target::lookup(target);
    if (!found) {
      getOperation().emitError(llvm::toString(found.takeError()));
      return signalPassFailure();
    }
    RewritePatternSet patterns(&getContext());
    bool onHost = found->isHost();
    if (onHost)
      arith::populateExpandBFloat16Patterns(patterns);
    else
      patterns.add<ExpandExp, ExpandDivision, ExpandRsqrt, ExpandExp2>(
          &getContext());
    // What the target has itself, or gets from a pattern above, is left alone.
    populateMathPolynomialApproximationPatterns(
        patterns, [onHost](StringRef name) {
          if (name == math::ExpOp::getOperationName() ||
              name == math::Exp2Op::getOperationName())
            return onHost;
          return name != math::RsqrtOp::getOperationName();
        });
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
