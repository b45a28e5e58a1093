//===- LowerCounters.cpp - Programs that wait for each other --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One thread of a role waits for a counter in memory, or raises it, and the
// role's threads meet behind or ahead of that. The order that this makes holds
// for all of them: a release and an acquire order also what the thread has
// learned of at barriers (causality in PTX's memory model).
//
// Copies of boxes go another way to memory than the threads' own accesses. Of a
// copy that has ended, its thread sees what it wrote, so that the release comes
// after that. What threads of another program wrote is seen by copies begun
// after a fence between the two ways, which stands behind the acquire.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/Fragments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "passes/fragments/Role.h"

using namespace mlir;
using namespace bastile;

namespace {

/// The lowering of an op on one counter of a program, which may copy boxes.
template <typename Op>
class CounterLowering : public OpConversionPattern<Op> {
public:
  CounterLowering(const TypeConverter &converter, MLIRContext *context,
                  bool copiesBoxes)
      : OpConversionPattern<Op>(converter, context), copiesBoxes(copiesBoxes) {}

protected:
  using OneToNOpAdaptor = typename OpConversionPattern<Op>::OneToNOpAdaptor;

  /// Creates `Access`, with the counter's address and the number of `op`.
  template <typename Access>
  static void createAccess(OpBuilder &builder, Location loc,
                           OneToNOpAdaptor adaptor) {
    Value counters = adaptor.getCounters().front();
    Value offset = arith::IndexCastUIOp::create(
        builder, loc, builder.getI64Type(), adaptor.getIndex().front());
    Value address = LLVM::GEPOp::create(
        builder, loc, counters.getType(), builder.getI32Type(), counters,
        ValueRange{offset}, LLVM::GEPNoWrapFlags::none);
    Value count = arith::IndexCastUIOp::create(
        builder, loc, builder.getI32Type(), adaptor.getCount().front());
    Access::create(builder, loc, address, count);
  }

  const bool copiesBoxes;
};

struct LowerAwaitCount : public CounterLowering<tile::AwaitCountOp> {
  using CounterLowering::CounterLowering;

  LogicalResult
  matchAndRewrite(tile::AwaitCountOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    const Role role(op);
    role.runOnFirst(rewriter, loc, [&] {
      createAccess<tile::PollCountOp>(rewriter, loc, adaptor);
      if (copiesBoxes)
        NVVM::FenceProxyOp::create(rewriter, loc, NVVM::ProxyKind::async_global,
                                   NVVM::SharedSpaceAttr());
    });
    role.synchronize(rewriter, loc);
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerReleaseCount : public CounterLowering<tile::ReleaseCountOp> {
  using CounterLowering::CounterLowering;

  LogicalResult
  matchAndRewrite(tile::ReleaseCountOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    const Role role(op);
    role.synchronize(rewriter, loc);
    role.runOnFirst(rewriter, loc, [&] {
      // Without `read`, until what the copies write is there.
      if (copiesBoxes)
        NVVM::CpAsyncBulkWaitGroupOp::create(
            rewriter, loc, static_cast<uint32_t>(op.getPending()),
            /*read=*/UnitAttr());
      createAccess<tile::PublishCountOp>(rewriter, loc, adaptor);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void bastile::populateCounterPatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns,
                                      bool copiesBoxes) {
  patterns.add<LowerAwaitCount, LowerReleaseCount>(
      converter, patterns.getContext(), copiesBoxes);
}
