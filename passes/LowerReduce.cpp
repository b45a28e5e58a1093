//===- LowerReduce.cpp - Row reductions within and across threads ---------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/LowerTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/Scratch.h"
#include "passes/ThreadGrid.h"

using namespace mlir;
using namespace bastile;

namespace {

constexpr int64_t kWarp = ThreadGrid::kWarp;
constexpr unsigned kClusterMemory =
    static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster);
/// Up to this many warps to a row, reading all partial results costs less than
/// another round of shuffles.
constexpr int64_t kMaxPartialsToRead = 8;

vector::CombiningKind getCombiningKind(tile::ReduceKind kind) {
  switch (kind) {
  case tile::ReduceKind::Add:
    return vector::CombiningKind::ADD;
  case tile::ReduceKind::Max:
    return vector::CombiningKind::MAXIMUMF;
  case tile::ReduceKind::Min:
    return vector::CombiningKind::MINIMUMF;
  }
  llvm_unreachable("unknown reduce kind");
}

Value reduceInThread(OpBuilder &builder, Location loc, tile::ReduceKind kind,
                     ValueRange pieces) {
  Value total = pieces.front();
  for (Value piece : pieces.drop_front())
    total = tile::ReduceOp::combine(builder, loc, kind, total, piece);
  if (!isa<VectorType>(total.getType()))
    return total;
  // A tree instead of a chain: the order of a reduction is ours to choose.
  return vector::ReductionOp::create(builder, loc, getCombiningKind(kind),
                                     total, arith::FastMathFlags::reassoc);
}

/// Builds one reduction of a tile.
class Reducer {
public:
  Reducer(ConversionPatternRewriter &rewriter, tile::ReduceOp op)
      : rewriter(rewriter), loc(op.getLoc()), op(op),
        input(op.getInput().getType()), layout(getLayout(input)),
        grid{layout.getThreadRows(), layout.getThreadColumns(),
             layout.getBlocks()} {}

  /// Returns one scalar for each repeat of the layout along the rows.
  SmallVector<Value> run(ValueRange pieces);

private:
  SmallVector<Value> runOnGroups(ValueRange pieces);
  Value reduceInThread(ValueRange pieces) {
    return ::reduceInThread(rewriter, loc, op.getKind(), pieces);
  }
  Value reduceInWarp(Value value, int64_t lanes);
  void reduceAcrossWarps(SmallVectorImpl<Value> &values);
  void storePartials(ValueRange values, Value scratch, Value ownSlot,
                     Value lane);
  Value loadPartials(Value scratch, Value first, Value lane);
  Value getFirstSlot();
  Value getOwnSlot(Value firstSlot, Value warp);

  /// Partial results of the rows that the block's threads cover at once.
  int64_t getSlotsPerRepeat() const {
    return grid.rows * grid.getPartialsPerRow();
  }
  Value combine(Value lhs, Value rhs) {
    return tile::ReduceOp::combine(rewriter, loc, op.getKind(), lhs, rhs);
  }
  Value constantIndex(int64_t value) {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
  }
  Value add(Value lhs, Value rhs) {
    return arith::AddIOp::create(rewriter, loc, lhs, rhs);
  }
  Value loadShared(Value base, Value index);
  Value getSharedAddress(Value base, Value index) {
    return getScratchAddress(rewriter, loc, base, input.getElementType(),
                             index);
  }

  ConversionPatternRewriter &rewriter;
  Location loc;
  tile::ReduceOp op;
  RankedTensorType input;
  tile::BlockedAttr layout;
  ThreadGrid grid;
};

/// Butterfly over groups of `lanes` lanes: every lane ends with the result.
Value Reducer::reduceInWarp(Value value, int64_t lanes) {
  for (int64_t offset = lanes / 2; offset > 0; offset /= 2) {
    auto shuffle = gpu::ShuffleOp::create(rewriter, loc, value, offset, kWarp,
                                          gpu::ShuffleMode::XOR);
    value = combine(value, shuffle.getShuffleResult());
  }
  return value;
}

Value Reducer::loadShared(Value base, Value index) {
  return LLVM::LoadOp::create(rewriter, loc, input.getElementType(),
                              getSharedAddress(base, index));
}

/// The first slot of the calling thread's row.
Value Reducer::getFirstSlot() {
  if (grid.rows == 1)
    return constantIndex(0);
  return arith::MulIOp::create(rewriter, loc,
                               getThreadPosition(rewriter, loc, layout).row,
                               constantIndex(grid.getPartialsPerRow()));
}

/// The slot of the calling thread's warp.
Value Reducer::getOwnSlot(Value firstSlot, Value warp) {
  // Warps are numbered along the rows, so without a cluster a warp's number is
  // its slot.
  if (grid.blocks == 1)
    return warp;
  Value warps = constantIndex(grid.getWarpsPerRow());
  if (grid.rows > 1)
    warp = arith::RemUIOp::create(rewriter, loc, warp, warps);
  Value part = arith::MulIOp::create(
      rewriter, loc, getBlockRank(rewriter, loc, layout), warps);
  return add(add(firstSlot, part), warp);
}

/// Leaves the warp's results in the scratch memory: the first lane in that of
/// its own block, or each of the first lanes in that of one block of the
/// cluster. Afterwards all threads can read what all warps left.
void Reducer::storePartials(ValueRange values, Value scratch, Value ownSlot,
                            Value lane) {
  // Those of a cluster have met before.
  bool hasCluster = grid.blocks > 1;
  if (!hasCluster)
    waitForReaders(rewriter, op);
  Value stores = arith::CmpIOp::create(
      rewriter, loc,
      hasCluster ? arith::CmpIPredicate::ult : arith::CmpIPredicate::eq, lane,
      constantIndex(hasCluster ? grid.blocks : 0));
  auto branch = scf::IfOp::create(rewriter, loc, stores);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  Value target = scratch;
  if (hasCluster) {
    // LLVM may map ahead of the branch, and a block of this rank must exist.
    lane = arith::MinUIOp::create(rewriter, loc, lane,
                                  constantIndex(grid.blocks - 1));
    target = NVVM::MapaOp::create(
        rewriter, loc,
        LLVM::LLVMPointerType::get(rewriter.getContext(), kClusterMemory),
        scratch,
        arith::IndexCastUIOp::create(rewriter, loc, rewriter.getI32Type(),
                                     lane));
  }
  for (auto [repeat, value] : llvm::enumerate(values)) {
    Value slot = add(ownSlot, constantIndex(repeat * getSlotsPerRepeat()));
    LLVM::StoreOp::create(rewriter, loc, value, getSharedAddress(target, slot));
  }
  rewriter.setInsertionPointAfter(branch);
  if (!hasCluster) {
    gpu::BarrierOp::create(rewriter, loc);
    return;
  }
  // Whoever passes knows that no block writes into its memory any more; what
  // follows reads only its own. So a block may end here while others go on.
  NVVM::ClusterArriveOp::create(rewriter, loc, rewriter.getUnitAttr());
  NVVM::ClusterWaitOp::create(rewriter, loc, rewriter.getUnitAttr());
}

/// Combines the partial results of a row, which start at slot `first`.
Value Reducer::loadPartials(Value scratch, Value first, Value lane) {
  int64_t count = grid.getPartialsPerRow();
  Value value;
  auto include = [&](Value partial) {
    value = value ? combine(value, partial) : partial;
  };
  if (count <= kMaxPartialsToRead) {
    for (int64_t index = 0; index < count; ++index)
      include(loadShared(scratch, add(first, constantIndex(index))));
    return value;
  }
  for (int64_t done = 0; done < count; done += kWarp) {
    Value index = lane;
    if (done > 0)
      index = add(lane, constantIndex(done));
    if (count - done >= kWarp) {
      include(loadShared(scratch, add(first, index)));
      continue;
    }
    // Lanes past the last partial result read it again and drop it.
    Value clamped =
        arith::MinUIOp::create(rewriter, loc, index, constantIndex(count - 1));
    Value partial = loadShared(scratch, add(first, clamped));
    Value neutral = arith::ConstantOp::create(
        rewriter, loc,
        tile::ReduceOp::getNeutral(op.getKind(), input.getElementType()));
    Value isPartial = arith::CmpIOp::create(
        rewriter, loc, arith::CmpIPredicate::ult, index, constantIndex(count));
    include(
        arith::SelectOp::create(rewriter, loc, isPartial, partial, neutral));
  }
  return reduceInWarp(value, kWarp);
}

/// Every warp leaves its results in shared memory; after one barrier, of the
/// block or of the cluster, every thread reads those of its row.
void Reducer::reduceAcrossWarps(SmallVectorImpl<Value> &values) {
  Value scratch = createScratch(rewriter, op, input.getElementType(),
                                values.size() * getSlotsPerRepeat());
  Value thread = getThreadId(rewriter, loc);
  Value lane =
      arith::RemUIOp::create(rewriter, loc, thread, constantIndex(kWarp));
  Value warp =
      arith::DivUIOp::create(rewriter, loc, thread, constantIndex(kWarp));
  Value firstSlot = getFirstSlot();
  storePartials(values, scratch, getOwnSlot(firstSlot, warp), lane);
  for (auto [repeat, value] : llvm::enumerate(values)) {
    Value first = add(firstSlot, constantIndex(repeat * getSlotsPerRepeat()));
    value = loadPartials(scratch, first, lane);
  }
}

/// Returns the result of its group for each piece: no group goes beyond a warp.
SmallVector<Value> Reducer::runOnGroups(ValueRange pieces) {
  tile::BlockedAttr groups = getLayout(op.getType());
  int64_t count = groups.getGroupPieces();
  SmallVector<Value> values;
  for (size_t first = 0; first < pieces.size(); first += count) {
    Value value = reduceInThread(pieces.slice(first, count));
    values.append(count, reduceInWarp(value, groups.getGroupThreads()));
  }
  return values;
}

SmallVector<Value> Reducer::run(ValueRange pieces) {
  if (op.isOfGroups())
    return runOnGroups(pieces);
  int64_t columns = layout.getColumnRepeats(input.getShape());
  SmallVector<Value> values;
  for (size_t first = 0; first < pieces.size(); first += columns) {
    Value value = reduceInThread(pieces.slice(first, columns));
    values.push_back(reduceInWarp(value, std::min(grid.columns, kWarp)));
  }
  if (grid.getPartialsPerRow() > 1)
    reduceAcrossWarps(values);
  return values;
}

struct LowerReduceOp : public OpConversionPattern<tile::ReduceOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ReduceOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!getLayout(op.getInput().getType()))
      return failure();
    SmallVector<Value> values = Reducer(rewriter, op).run(adaptor.getInput());
    rewriter.replaceOpWithMultiple(op, {ValueRange(values)});
    return success();
  }
};

struct LowerFold : public OpConversionPattern<tile::FoldOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::FoldOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getInput().getType());
    if (!getLayout(type))
      return failure();
    int64_t columns = getLayout(type).getColumnRepeats(type.getShape());
    SmallVector<Value> values;
    for (size_t first = 0; first < adaptor.getInput().size(); first += columns)
      values.push_back(
          reduceInThread(rewriter, op.getLoc(), op.getKind(),
                         adaptor.getInput().slice(first, columns)));
    rewriter.replaceOpWithMultiple(op, {ValueRange(values)});
    return success();
  }
};

} // namespace

/// Finds the last reduction before `reduce` in its block: the operation that is
/// or contains it, if any.
static Operation *findEarlierReduction(tile::ReduceOp reduce) {
  for (Operation *op = reduce->getPrevNode(); op; op = op->getPrevNode()) {
    bool found = op->walk([](tile::ReduceOp reduce) {
                     return reduce.isOfGroups() ? WalkResult::advance()
                                                : WalkResult::interrupt();
                   }).wasInterrupted();
    if (found)
      return op;
  }
  return nullptr;
}

// A block may write into another's memory once that one has started and, in a
// loop, reads no more what the last iteration left. One meeting vouches for
// all reductions that follow it, since each has scratch memory of its own. The
// blocks announce themselves ahead of the loads, so that by the time these have
// returned, few are left to wait for.
void bastile::insertClusterBarriers(tile::KernelOp kernel) {
  kernel.walk([](tile::ReduceOp reduce) {
    tile::BlockedAttr layout = getLayout(reduce.getInput().getType());
    if (!layout || layout.getBlocks() == 1 || reduce.isOfGroups())
      return;
    Operation *earlier = findEarlierReduction(reduce);
    if (isa_and_present<tile::ReduceOp>(earlier))
      return;
    OpBuilder builder(reduce);
    if (earlier)
      builder.setInsertionPointAfter(earlier);
    else
      builder.setInsertionPointToStart(reduce->getBlock());
    // Outside of a loop nothing was read that the meeting would have to order.
    if (reduce->getParentOfType<scf::ForOp>())
      NVVM::ClusterArriveOp::create(builder, reduce.getLoc(),
                                    builder.getUnitAttr());
    else
      NVVM::ClusterArriveRelaxedOp::create(builder, reduce.getLoc(),
                                           builder.getUnitAttr());
    builder.setInsertionPoint(reduce);
    NVVM::ClusterWaitOp::create(builder, reduce.getLoc(),
                                builder.getUnitAttr());
  });
}

void bastile::populateReducePatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<LowerReduceOp, LowerFold>(converter, patterns.getContext());
}
