//===- ExpandMath.cpp - Rewrite functions and casts that targets lack -----===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/FoldUtils.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/TargetLookup.h"
#include "passes/ValueOrder.h"
#include "passes/analysis/ExactDifferences.h"
#include "passes/math/ExpandMath.h"

namespace bastile {
#define GEN_PASS_DEF_EXPANDMATH
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

namespace {

/// Whether `op` computes and rounds. An op that only moves values needs no more
/// bits than they have.
bool isArithmetic(Operation *op) {
  return isa<math::MathDialect>(op->getDialect()) ||
         isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
             arith::RemFOp, arith::NegFOp, arith::MinimumFOp, arith::MaximumFOp,
             arith::MinNumFOp, arith::MaxNumFOp, arith::CmpFOp>(op);
}

/// Computes narrow types in float32 and rounds after each op. Targets have few
/// functions for narrow types, and no library that has the others; where they
/// have arithmetic, a product and a sum would contract and lose the rounding
/// between them.
struct WidenMath : public RewritePattern {
  explicit WidenMath(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), /*benefit=*/2, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isArithmetic(op) || op->getNumResults() != 1)
      return failure();
    auto isNarrow = [](Type type) {
      return isa<Float16Type, BFloat16Type, Float8E4M3FNType, Float8E5M2Type>(
          getElementTypeOrSelf(type));
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
    for (Value operand : op->getOperands()) {
      if (isNarrow(operand.getType())) {
        Type wide = widen(operand.getType());
        // The constant is converted here, because patterns look for constant
        // operands.
        if (std::optional<double> number = getConstant(operand))
          operand = Formula(rewriter, op->getLoc(), wide).number(*number);
        else
          operand =
              arith::ExtFOp::create(rewriter, op->getLoc(), wide, operand);
      }
      state.operands.push_back(operand);
    }
    state.addTypes(isNarrow(type) ? widen(type) : type);
    state.addAttributes(op->getAttrs());
    Value result = rewriter.create(state)->getResult(0);
    if (isNarrow(type))
      result = arith::TruncFOp::create(rewriter, op->getLoc(), type, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// Whether `op` takes floats and computes, as each op does that a pattern
/// rewrites, or spreads one, which patterns ask whether it is a constant.
bool isOfFloats(Operation *op) {
  if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
      !isa<vector::BroadcastOp>(op))
    return false;
  return llvm::any_of(op->getOperandTypes(), [](Type type) {
    return isa<FloatType>(getElementTypeOrSelf(type));
  });
}

/// Whether code generation for a GPU knows `op`, of the math dialect.
bool hasInstruction(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::CopySignOp,
             math::CountLeadingZerosOp, math::CountTrailingZerosOp,
             math::CtPopOp, math::Exp2Op, math::FloorOp, math::FmaOp,
             math::IsFiniteOp, math::IsNaNOp, math::RoundEvenOp, math::RoundOp,
             math::SqrtOp, math::TruncOp>(op);
}

/// The most elements of a thread's vector for functions that are computed
/// element by element.
constexpr int64_t maxElements = 1 << 16;

/// Checks that no vector is too long to be split in reasonable time.
LogicalResult verifyLengths(Operation *module) {
  auto isTooLong = [](Type type) {
    auto vector = dyn_cast<VectorType>(type);
    return vector && vector.getNumElements() > maxElements;
  };
  auto result = module->walk([&](Operation *op) {
    if (llvm::none_of(op->getResultTypes(), isTooLong))
      return WalkResult::advance();
    op->emitOpError("computes vectors of more than ")
        << maxElements << " elements";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Tells code generation which differences are exact. LLVM keeps flags of an
/// instruction, and no attributes: of a sum, this flag says nothing else.
void flagExactDifferences(Operation *module) {
  module->walk([](Operation *op) {
    if (isExactDifference(op))
      addFlags(op, arith::FastMathFlags::arcp);
  });
}

/// Leaves one op of each constant that is used, in front of the program. CSE,
/// which follows, removes other ops that are no longer used.
void mergeConstants(Operation *module) {
  OperationFolder folder(module->getContext());
  module->walk([&](Operation *op) {
    Attribute value;
    if (!matchPattern(op, m_Constant(&value)))
      return;
    if (op->use_empty())
      op->erase();
    else
      folder.insertKnownConstant(op, value);
  });
}

struct ExpandMathPass : public bastile::impl::ExpandMathBase<ExpandMathPass> {
  using ExpandMathBase::ExpandMathBase;

  void runOnOperation() override {
    const Target *found = lookupTarget(getOperation(), this->target);
    if (!found)
      return signalPassFailure();
    if (failed(verifyOrder(getOperation())) ||
        failed(verifyLengths(getOperation())))
      return signalPassFailure();
    guardDivisions(getOperation());
    RewritePatternSet patterns(&getContext());
    bool onHost = found->isHost();
    if (onHost) {
      populateExponentialPatterns(patterns);
    } else {
      populateApproximationPatterns(patterns);
      populateQuotientPatterns(patterns);
      populateHiddenPatterns(patterns);
      populateRemainderPatterns(patterns);
      for (auto program : getOperation().getOps<tile::ProgramOp>()) {
        markApproximate(program);
        hideSigmoids(program);
        divideByNoRoots(program);
        markEndsOfRange(program);
        collectFactors(program);
      }
    }
    populateFunctionPatterns(patterns);
    populateSinePatterns(patterns, *found);
    populateInversePatterns(patterns);
    populateHyperbolicPatterns(patterns);
    populatePowerPatterns(patterns);
    populateCastPatterns(patterns, *found);
    patterns.add<WidenMath>(&getContext());
    // Most of a program is addresses, which no pattern rewrites: to visit them
    // as well would take longer than any other pass.
    SmallVector<Operation *> rewritten;
    getOperation().walk([&](Operation *op) {
      if (isOfFloats(op))
        rewritten.push_back(op);
    });
    GreedyRewriteConfig config;
    config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
    config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(applyOpPatternsGreedily(rewritten, std::move(patterns), config)))
      return signalPassFailure();
    // Functions have brought constants of their own.
    if (!onHost)
      for (auto program : getOperation().getOps<tile::ProgramOp>())
        collectFactors(program);
    mergeConstants(getOperation());
    flagExactDifferences(getOperation());
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
