//===- Decompose.cpp - Replace model ops by primitives --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/ValueOrder.h"

namespace bastile {
#define GEN_PASS_DEF_DECOMPOSE
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

namespace {

struct DecomposeOp
    : public OpInterfaceRewritePattern<tile::DecomposableOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;

  LogicalResult matchAndRewrite(tile::DecomposableOpInterface op,
                                PatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    rewriter.replaceOp(op, op.decompose(builder));
    return success();
  }
};

struct DecomposePass : public bastile::impl::DecomposeBase<DecomposePass> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet owned(context);
    owned.add<DecomposeOp>(context);
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
    if (failed(applyPatternsGreedily(getOperation(), patterns)))
      signalPassFailure();
  }

  FrozenRewritePatternSet patterns;
};

} // namespace
