//===- LowerBarriers.cpp - Threads that wait for each other ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/Fragments.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/fragments/Role.h"
#include "passes/fragments/SharedTiles.h"
#include "passes/pieces/Pieces.h"
#include "passes/pieces/Scratch.h"
#include "passes/schedule/ThreadGrid.h"

using namespace mlir;
using namespace bastile;

namespace {

Value toInt32(OpBuilder &builder, Location loc, Value index) {
  return arith::IndexCastUIOp::create(builder, loc, builder.getI32Type(),
                                      index);
}

Value constant32(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIntOp::create(builder, loc, value, /*width=*/32);
}

Value getBarrier(OpBuilder &builder, Location loc, Value barriers,
                 Value index) {
  return getScratchAddress(builder, loc, barriers, builder.getI64Type(), index);
}

struct LowerMakeBarriers : public OpConversionPattern<tile::MakeBarriersOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::MakeBarriersOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    int64_t count = op.getType().getCount();
    Value barriers = createScratch(rewriter, op, rewriter.getI64Type(), count);
    Role(op).runOnFirst(rewriter, loc, [&] {
      for (int64_t index = 0; index < count; ++index)
        NVVM::MBarrierInitOp::create(
            rewriter, loc,
            getBarrier(rewriter, loc, barriers,
                       arith::ConstantIndexOp::create(rewriter, loc, index)),
            constant32(rewriter, loc, op.getArrivals()),
            /*predicate=*/Value());
      NVVM::FenceMbarrierInitOp::create(rewriter, loc);
    });
    rewriter.replaceOp(op, barriers);
    return success();
  }
};

struct LowerExpect : public OpConversionPattern<tile::ExpectOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ExpectOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Role(op).runOnFirst(rewriter, loc, [&] {
      NVVM::MBarrierArriveExpectTxOp::create(
          rewriter, loc, /*res=*/Type(),
          getBarrier(rewriter, loc, adaptor.getBarriers().front(),
                     adaptor.getIndex().front()),
          constant32(rewriter, loc, op.getBytes()), NVVM::MemScopeKind::CTA,
          /*relaxed=*/false, /*predicate=*/Value());
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerArrive : public OpConversionPattern<tile::ArriveOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ArriveOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Role role(op);
    Value barrier = getBarrier(rewriter, loc, adaptor.getBarriers().front(),
                               adaptor.getIndex().front());
    int64_t blocks =
        op.getCluster()
            ? op->getParentOfType<tile::ProgramOp>().getSchedule().getBlocks()
            : 1;
    // Of this block's scope also where another block's barrier is meant. An
    // arrival of the cluster's scope would wait until all that the thread has
    // stored is visible to the whole GPU, hundreds of cycles in each step of a
    // product, while tiles are in shared memory, which only copies and
    // `tile.send` write from other blocks, and barriers count their bytes.
    auto arrive = [&](Value at) {
      NVVM::MBarrierArriveOp::create(rewriter, loc, /*res=*/Type(), at,
                                     /*count=*/Value(), NVVM::MemScopeKind::CTA,
                                     /*relaxed=*/false);
    };
    auto arriveIn = [&](Value block) {
      arrive(mapToBlock(rewriter, loc, barrier, block));
    };
    if (op.getWarps()) {
      synchronizeWarp(rewriter, loc);
      role.runOnFirstOfWarps(rewriter, loc, [&] { arrive(barrier); });
      rewriter.eraseOp(op);
      return success();
    }
    if (role.getWarpgroups() == 0) {
      role.runOnFirst(rewriter, loc, [&] {
        if (blocks == 1)
          return arrive(barrier);
        for (int64_t block = 0; block < blocks; ++block)
          arriveIn(constant32(rewriter, loc, block));
      });
      rewriter.eraseOp(op);
      return success();
    }
    // Of each warpgroup, the first threads arrive, each in one block.
    Value thread = arith::RemUIOp::create(
        rewriter, loc, role.getThread(rewriter, loc),
        arith::ConstantIndexOp::create(rewriter, loc, kWarpgroup));
    Value arrives = arith::CmpIOp::create(
        rewriter, loc, arith::CmpIPredicate::ult, thread,
        arith::ConstantIndexOp::create(rewriter, loc, blocks));
    auto branch = scf::IfOp::create(rewriter, loc, arrives);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(branch.thenBlock());
      if (blocks == 1)
        arrive(barrier);
      else
        arriveIn(toInt32(rewriter, loc, thread));
    }
    rewriter.eraseOp(op);
    return success();
  }
};

/// The tiles in slot `index` of `buffers`, at the addresses `first`.
SmallVector<Value> getTiles(OpBuilder &builder, Location loc,
                            OperandRange buffers, ArrayRef<ValueRange> first,
                            Value index) {
  SmallVector<Value> tiles;
  for (auto [buffer, type] : llvm::zip_equal(first, buffers.getTypes()))
    tiles.push_back(
        getSlot(builder, loc, cast<MemRefType>(type), buffer.front(), index));
  return tiles;
}

struct LowerAwait : public OpConversionPattern<tile::AwaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::AwaitOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value index = adaptor.getIndex().front();
    Value barrier =
        getBarrier(rewriter, loc, adaptor.getBarriers().front(), index);
    waitForPhase(rewriter, loc, barrier,
                 toInt32(rewriter, loc, adaptor.getParity().front()));
    // The thread that acts for its warp must not let two phases pass while
    // another one still waits for the first of them.
    if (Role(op).getThreads() == kWarp)
      synchronizeWarp(rewriter, loc);
    rewriter.replaceOp(op, getTiles(rewriter, loc, op.getBuffers(),
                                    adaptor.getBuffers(), index));
    return success();
  }
};

struct LowerGetTiles : public OpConversionPattern<tile::GetTilesOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::GetTilesOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOp(op, getTiles(rewriter, op.getLoc(), op.getBuffers(),
                                    adaptor.getBuffers(),
                                    adaptor.getIndex().front()));
    return success();
  }
};

struct LowerSynchronize : public OpConversionPattern<tile::SynchronizeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::SynchronizeOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Role role(op);
    if (op.getCluster()) {
      NVVM::ClusterArriveOp::create(rewriter, loc, rewriter.getUnitAttr());
      NVVM::ClusterWaitOp::create(rewriter, loc, rewriter.getUnitAttr());
    } else {
      role.synchronize(rewriter, loc);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

/// Barriers are fenced where they are made, so that a relaxed arrival is
/// enough.
struct LowerAnnounceBlock : public OpConversionPattern<tile::AnnounceBlockOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::AnnounceBlockOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    NVVM::ClusterArriveRelaxedOp::create(rewriter, op.getLoc(),
                                         rewriter.getUnitAttr());
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerAwaitBlocks : public OpConversionPattern<tile::AwaitBlocksOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::AwaitBlocksOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    NVVM::ClusterWaitOp::create(rewriter, op.getLoc(), rewriter.getUnitAttr());
    rewriter.eraseOp(op);
    return success();
  }
};

/// The number of the barrier at which warpgroup `warpgroup` waits for its turn.
Value getTurnBarrier(OpBuilder &builder, Location loc, Value warpgroup) {
  Value first =
      arith::ConstantIndexOp::create(builder, loc, Role::kTurnBarriers);
  return toInt32(builder, loc,
                 arith::AddIOp::create(builder, loc, first, warpgroup));
}

void passTurn(OpBuilder &builder, Location loc, Value to) {
  NVVM::BarrierArriveOp::create(builder, loc, getTurnBarrier(builder, loc, to),
                                constant32(builder, loc, 2 * kWarpgroup));
}

struct LowerTakeTurn : public OpConversionPattern<tile::TakeTurnOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::TakeTurnOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Role role(op);
    NVVM::BarrierOp::create(
        rewriter, loc, /*resultTypes=*/TypeRange(),
        getTurnBarrier(rewriter, loc, role.getWarpgroup(rewriter, loc)),
        constant32(rewriter, loc, 2 * kWarpgroup), /*reductionOp=*/{},
        /*reductionPredicate=*/Value());
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerPassTurn : public OpConversionPattern<tile::PassTurnOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::PassTurnOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Role role(op);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(rewriter, loc, value);
    };
    Value own = role.getWarpgroup(rewriter, loc);
    Value next = arith::AddIOp::create(rewriter, loc, own, constant(1));
    Value isLast =
        arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, next,
                              constant(role.getWarpgroups()));
    passTurn(rewriter, loc,
             arith::SelectOp::create(rewriter, loc, isLast, constant(0), next));
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerFenceShared : public OpConversionPattern<tile::FenceSharedOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::FenceSharedOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    NVVM::FenceProxyOp::create(
        rewriter, op.getLoc(), NVVM::ProxyKind::async_shared,
        NVVM::SharedSpaceAttr::get(getContext(),
                                   NVVM::SharedSpace::shared_cta));
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerBlockRank : public OpConversionPattern<tile::BlockRankOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::BlockRankOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    int64_t blocks =
        op->getParentOfType<tile::ProgramOp>().getSchedule().getBlocks();
    rewriter.replaceOp(op, createBlockRank(rewriter, op.getLoc(), blocks));
    return success();
  }
};

} // namespace

void bastile::startTurns(tile::RolesOp roles) {
  for (Region &region : roles.getRoles()) {
    tile::TakeTurnOp first;
    region.walk([&](tile::TakeTurnOp op) {
      first = op;
      return WalkResult::interrupt();
    });
    if (!first)
      continue;
    OpBuilder builder = OpBuilder::atBlockBegin(&region.front());
    Location loc = first.getLoc();
    Role role(first);
    Value isLast = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq, role.getWarpgroup(builder, loc),
        arith::ConstantIndexOp::create(builder, loc, role.getWarpgroups() - 1));
    auto branch = scf::IfOp::create(builder, loc, isLast);
    builder.setInsertionPointToStart(branch.thenBlock());
    passTurn(builder, loc, arith::ConstantIndexOp::create(builder, loc, 0));
  }
}

void bastile::populateBarrierPatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<LowerMakeBarriers, LowerExpect, LowerArrive, LowerAwait,
               LowerGetTiles, LowerSynchronize, LowerAnnounceBlock,
               LowerAwaitBlocks, LowerTakeTurn, LowerPassTurn, LowerFenceShared,
               LowerBlockRank>(converter, patterns.getContext());
}
