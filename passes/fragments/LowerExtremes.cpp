//===- LowerExtremes.cpp - Extremes of integers in memory -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each warp of a role reads all of the integers, a part of them a lane, and
// combines what its lanes have found: no warp waits for another. A role of one
// thread reads them one by one.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/Fragments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/fragments/Role.h"
#include "passes/pieces/Pieces.h"
#include "passes/schedule/ThreadGrid.h"

using namespace mlir;
using namespace bastile;

namespace {

struct LowerExtremes : public OpConversionPattern<tile::ExtremesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ExtremesOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, value);
    };
    const auto dimension = static_cast<unsigned>(op.getDimension());
    Value first = op.getIndices()[dimension];
    Value last = arith::SubIOp::create(builder, op.getEnd(), constant(1));
    // Beyond the last integer, that one is read again.
    auto load = [&](Value offset) -> Value {
      SmallVector<Value> indices(op.getIndices());
      indices[dimension] = arith::MinSIOp::create(
          builder, arith::AddIOp::create(builder, first, offset), last);
      return memref::LoadOp::create(builder, op.getSource(), indices);
    };
    auto smaller = [&](Value lhs, Value rhs) -> Value {
      return arith::MinSIOp::create(builder, lhs, rhs);
    };
    auto larger = [&](Value lhs, Value rhs) -> Value {
      return arith::MaxSIOp::create(builder, lhs, rhs);
    };
    if (Role(op).getThreads() % kWarp != 0) {
      Value only = load(constant(0));
      auto loop =
          scf::ForOp::create(builder, constant(1), constant(op.getCount()),
                             constant(1), ValueRange{only, only});
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      Value number = load(loop.getInductionVar());
      scf::YieldOp::create(
          builder, ValueRange{smaller(loop.getRegionIterArg(0), number),
                              larger(loop.getRegionIterArg(1), number)});
      rewriter.replaceOp(op, loop.getResults());
      return success();
    }
    Value lane = arith::RemUIOp::create(
        builder, getThreadId(builder, op.getLoc()), constant(kWarp));
    Value least = load(lane), greatest = least;
    for (int64_t offset = kWarp; offset < static_cast<int64_t>(op.getCount());
         offset += kWarp) {
      Value number =
          load(arith::AddIOp::create(builder, lane, constant(offset)));
      least = smaller(least, number);
      greatest = larger(greatest, number);
    }
    for (int32_t distance = kWarp / 2; distance > 0; distance /= 2) {
      auto getOther = [&](Value value) -> Value {
        return gpu::ShuffleOp::create(builder, value, distance, kWarp,
                                      gpu::ShuffleMode::XOR)
            .getShuffleResult();
      };
      least = smaller(least, getOther(least));
      greatest = larger(greatest, getOther(greatest));
    }
    rewriter.replaceOp(op, {least, greatest});
    return success();
  }
};

} // namespace

void bastile::populateExtremesPatterns(const TypeConverter &converter,
                                       RewritePatternSet &patterns) {
  patterns.add<LowerExtremes>(converter, patterns.getContext());
}
