//===- Decompose.cpp - Replace model ops by primitives --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Rows.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/ValueOrder.h"
#include "passes/analysis/ExactDifferences.h"
#include "passes/analysis/StreamedFactors.h"

namespace bastile {
#define GEN_PASS_DEF_DECOMPOSE
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

namespace {

/// Checks that the ops from `first` up to `op`, which `op` was decomposed into,
/// are valid: an op whose verifier checks less than its formula needs would
/// otherwise be compiled to code that reads what is not there.
LogicalResult verifyFormula(Block::iterator first, Operation *op) {
  std::string message;
  auto verifyBuilt = [&](Operation &built) {
    ScopedDiagnosticHandler collector(
        op->getContext(), [&](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
              message.empty())
            message = diagnostic.str();
        });
    return verify(&built);
  };
  for (Operation &built : llvm::make_range(first, op->getIterator()))
    if (failed(verifyBuilt(built)))
      return op->emitOpError("has operands that its formula does not fit: ")
             << message;
  return success();
}

/// Checks that `values` are what replaces the results of `op`.
LogicalResult verifyResults(Operation *op, ArrayRef<Value> values) {
  if (values.size() != op->getNumResults())
    return op->emitOpError("has a formula of ")
           << values.size() << " results, but " << op->getNumResults()
           << " are defined; 'decompose' returns one value for each";
  for (auto [index, value] : llvm::enumerate(values))
    if (Type type = op->getResult(index).getType(); value.getType() != type)
      return op->emitOpError("result #")
             << index << " is of type " << type << ", but its formula of type "
             << value.getType();
  return success();
}

struct DecomposeOp
    : public OpInterfaceRewritePattern<tile::DecomposableOpInterface> {
  DecomposeOp(MLIRContext *context, bool &isInvalid)
      : OpInterfaceRewritePattern(context), isInvalid(isInvalid) {}

  LogicalResult matchAndRewrite(tile::DecomposableOpInterface op,
                                PatternRewriter &rewriter) const override {
    // One error is enough, and the driver tries an op again.
    if (isInvalid)
      return failure();
    Operation *before = op->getPrevNode();
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    SmallVector<Value> values = op.decompose(builder);
    Block::iterator first =
        before ? std::next(before->getIterator()) : op->getBlock()->begin();
    isInvalid =
        failed(verifyFormula(first, op)) || failed(verifyResults(op, values));
    if (isInvalid)
      return failure();
    rewriter.replaceOp(op, values);
    return success();
  }

private:
  bool &isInvalid;
};

/// Leaves the rounding of left factors to products that compute them on the
/// way: `softmax(s).to(bf16) @ v` is `softmax(s) @ v`, whose product rounds as
/// well. Other factors are rounded where the formula says so.
void leaveRoundingToProducts(func::FuncOp func) {
  SmallVector<std::pair<tile::DotOp, Value>> changed;
  for (auto dot : func.getOps<tile::DotOp>()) {
    Value factor = dot.getA();
    auto rounding = factor.getDefiningOp<arith::TruncFOp>();
    // A product rounds float32 to the type of its other factor.
    if (!rounding ||
        !getElementTypeOrSelf(rounding.getIn().getType()).isF32() ||
        getElementTypeOrSelf(factor.getType()) !=
            getElementTypeOrSelf(dot.getB().getType()))
      continue;
    dot.getAMutable().assign(rounding.getIn());
    changed.emplace_back(dot, factor);
  }
  if (changed.empty())
    return;
  const StreamedOps streamed = findStreamedOps(func);
  for (auto [dot, factor] : changed)
    if (!streamed.products.contains(dot))
      dot.getAMutable().assign(factor);
}

struct DecomposePass : public bastile::impl::DecomposeBase<DecomposePass> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet owned(context);
    owned.add<DecomposeOp>(context, isInvalid);
    patterns = std::move(owned);
    return success();
  }

  /// An attribute that the op does not define is an error: it is most likely
  /// misspelled.
  static WalkResult verifyAttributes(Operation *op) {
    if (!isa<tile::TileDialect>(op->getDialect()))
      return WalkResult::advance();
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      if (StringRef name = attribute.getName();
          !name.contains('.') || name.starts_with("tile.")) {
        op->emitOpError("has the unknown attribute '") << name << "'";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  }

  void runOnOperation() override {
    if (failed(verifyOrder(getOperation())) ||
        getOperation().walk(verifyAttributes).wasInterrupted())
      return signalPassFailure();
    isInvalid = false;
    repeatFoldedNumbers(getOperation());
    if (failed(applyPatternsGreedily(getOperation(), patterns)) || isInvalid)
      return signalPassFailure();
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (!func.isDeclaration())
        leaveRoundingToProducts(func);
    // Derivatives and kernels have parts of a difference, and cannot tell.
    markExactDifferences(getOperation());
  }

  FrozenRewritePatternSet patterns;
  /// Whether an op was decomposed into what is not valid.
  bool isInvalid = false;
};

} // namespace
