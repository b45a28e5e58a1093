//===- ExpandMath.cpp - Rewrite functions and casts that targets lack -----===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

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
#include "passes/TargetLookup.h"

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
  TypedAttr scalar = builder.getFloatAttr(getElementTypeOrSelf(type), value);
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
  auto result = kernel.walk([](Operation *op) {
    Value value, address;
    if (auto store = dyn_cast<LLVM::StoreOp>(op)) {
      value = store.getValue();
      address = store.getAddr();
    } else if (auto store = dyn_cast<LLVM::MaskedStoreOp>(op)) {
      value = store.getValue();
      address = store.getData();
    } else {
      return WalkResult::advance();
    }
    unsigned space =
        cast<LLVM::LLVMPointerType>(address.getType()).getAddressSpace();
    bool isShared =
        space == static_cast<unsigned>(NVVM::NVVMMemorySpace::Shared);
    Type element = getElementTypeOrSelf(value.getType());
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
    lost =
        math::FmaOp::create(rewriter, loc, x, number(log2e - log2eHigh), lost);
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

/// Whether `op` computes and rounds; what only moves values needs no more bits.
bool isArithmetic(Operation *op) {
  return isa<math::MathDialect>(op->getDialect()) ||
         isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
             arith::RemFOp, arith::NegFOp, arith::MinimumFOp, arith::MaximumFOp,
             arith::MinNumFOp, arith::MaxNumFOp>(op);
}

/// Values are computed in float32 at least and rounded after each op. Targets
/// have few functions for the narrow types, and no library to ask for the
/// others; where they have arithmetic, a product and a sum would contract and
/// lose the rounding between them.
struct WidenMath : public RewritePattern {
  explicit WidenMath(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/2, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isArithmetic(op) || op->getNumResults() != 1)
      return failure();
    auto isNarrow = [](Type type) {
      return isa<Float16Type, BFloat16Type>(getElementTypeOrSelf(type));
    };
    if (llvm::none_of(op->getOperandTypes(), isNarrow))
      return failure();
    auto widen = [&](Type type) -> Type {
      if (auto vector = dyn_cast<VectorType>(type))
        return vector.clone(rewriter.getF32Type());
      return rewriter.getF32Type();
    };
    Type type = op->getResult(0).getType();
    OperationState state(op->getLoc(), op->getName());
    for (Value operand : op->getOperands())
      state.operands.push_back(
          isNarrow(operand.getType())
              ? arith::ExtFOp::create(rewriter, op->getLoc(),
                                      widen(operand.getType()), operand)
              : operand);
    state.addTypes(isNarrow(type) ? widen(type) : type);
    state.addAttributes(op->getAttrs());
    Value result = rewriter.create(state)->getResult(0);
    if (isNarrow(type))
      result = arith::TruncFOp::create(rewriter, op->getLoc(), type, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Rounds to bfloat16 in integers, for processors without the instruction.
///
/// NaN keeps its upper bits. Were it a constant, LLVM would select it among
/// vectors of bfloat16 in the end, which it splits into scalars.
struct ExpandBFloat16Truncation : public OpRewritePattern<arith::TruncFOp> {
  explicit ExpandBFloat16Truncation(MLIRContext *context)
      : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(arith::TruncFOp op,
                                PatternRewriter &rewriter) const override {
    Value value = op.getIn();
    if (!isFloat32(value.getType()) || op.getRoundingmode() ||
        !getElementTypeOrSelf(op.getType()).isBF16())
      return failure();
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    auto withElements = [&](unsigned bits) -> Type {
      Type element = builder.getIntegerType(bits);
      auto vector = dyn_cast<VectorType>(op.getType());
      return vector ? vector.clone(element) : element;
    };
    auto number = [&](int32_t value) -> Value {
      TypedAttr scalar = builder.getI32IntegerAttr(value);
      if (auto vector = dyn_cast<VectorType>(withElements(32)))
        scalar = DenseElementsAttr::get(vector, Attribute(scalar));
      return arith::ConstantOp::create(builder, scalar);
    };
    Value bits = arith::BitcastOp::create(builder, withElements(32), value);
    Value isOdd = arith::ShRUIOp::create(builder, bits, number(16));
    isOdd = arith::AndIOp::create(builder, isOdd, number(1));
    // Half a unit, less one where a tie is to round down to the even neighbour.
    Value rounded = arith::AddIOp::create(builder, bits, number(0x7FFF));
    rounded = arith::AddIOp::create(builder, rounded, isOdd);
    Value isNaN =
        arith::CmpFOp::create(builder, arith::CmpFPredicate::UNO, value, value);
    constexpr int32_t quiet = 0x00400000;
    Value quieted = arith::OrIOp::create(builder, bits, number(quiet));
    rounded = arith::SelectOp::create(builder, isNaN, quieted, rounded);
    rounded = arith::ShRUIOp::create(builder, rounded, number(16));
    rounded = arith::TruncIOp::create(builder, withElements(16), rounded);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), rounded);
    return success();
  }
};

/// Whether code generation for a GPU knows `op`, of the math dialect.
bool hasInstruction(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
             math::CountLeadingZerosOp, math::CountTrailingZerosOp,
             math::CtPopOp, math::Exp2Op, math::FloorOp, math::FmaOp,
             math::IsFiniteOp, math::IsInfOp, math::IsNaNOp, math::IsNormalOp,
             math::RoundEvenOp, math::RoundOp, math::SqrtOp, math::TruncOp>(op);
}

struct ExpandMathPass : public bastile::impl::ExpandMathBase<ExpandMathPass> {
  using ExpandMathBase::ExpandMathBase;

  void runOnOperation() override {
    const Target *found = lookupTarget(getOperation(), this->target);
    if (!found)
      return signalPassFailure();
    RewritePatternSet patterns(&getContext());
    bool onHost = found->isHost();
    if (onHost) {
      patterns.add<ExpandBFloat16Truncation>(&getContext());
      arith::populateExpandBFloat16Patterns(patterns);
    } else {
      patterns.add<ExpandExp, ExpandDivision, ExpandRsqrt, ExpandExp2>(
          &getContext());
    }
    // What the target has itself, or gets from a pattern above, is left alone.
    populateMathPolynomialApproximationPatterns(
        patterns, [onHost](StringRef name) {
          if (name == math::ExpOp::getOperationName() ||
              name == math::Exp2Op::getOperationName())
            return onHost;
          return name != math::RsqrtOp::getOperationName();
        });
    patterns.add<WidenMath>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    if (onHost)
      return;
    auto result = getOperation().walk([&](Operation *op) {
      if (!isa<math::MathDialect>(op->getDialect()) || hasInstruction(op))
        return WalkResult::advance();
      op->emitOpError("cannot be computed on ") << target;
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
