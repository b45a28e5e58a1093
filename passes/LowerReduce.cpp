//===- LowerReduce.cpp - Row reductions within and across threads ---------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/LowerTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/Scratch.h"
#include "passes/ThreadGrid.h"

using namespace mlir;
using namespace bastile;

namespace {

constexpr int64_t kWarp = ThreadGrid::kWarp;
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

/// Builds one reduction of a tile.
class Reducer {
public:
  Reducer(ConversionPatternRewriter &rewriter, tile::ReduceOp op)
      : rewriter(rewriter), loc(op.getLoc()), op(op),
        input(op.getInput().getType()), layout(getLayout(input)),
        grid{layout.getThreadRows(), layout.getThreadColumns()} {}

  /// Returns one scalar for each repeat of the layout along the rows.
  SmallVector<Value> run(ValueRange pieces);

private:
  Value reduceInThread(ValueRange pieces);
  Value reduceInWarp(Value value, int64_t lanes);
  void reduceAcrossWarps(SmallVectorImpl<Value> &values);

  Value combine(Value lhs, Value rhs) {
    return tile::ReduceOp::combine(rewriter, loc, op.getKind(), lhs, rhs);
  }
  Value constantIndex(int64_t value) {
    return arith::ConstantIndexOp::create(rewriter, loc, value);
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

Value Reducer::reduceInThread(ValueRange pieces) {
  Value total = pieces.front();
  for (Value piece : pieces.drop_front())
    total = combine(total, piece);
  if (!isa<VectorType>(total.getType()))
    return total;
  // A tree instead of a chain: the order of a reduction is ours to choose.
  return vector::ReductionOp::create(rewriter, loc,
                                     getCombiningKind(op.getKind()), total,
                                     arith::FastMathFlags::reassoc);
}

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

/// The first lane of each warp leaves its result in shared memory; after one
/// barrier every thread reads those of its row.
void Reducer::reduceAcrossWarps(SmallVectorImpl<Value> &values) {
  int64_t warps = grid.getWarpsPerRow();
  Value scratch = createScratch(rewriter, op, input.getElementType(),
                                values.size() * grid.rows * warps);
  Value thread = getThreadId(rewriter, loc);
  Value lane =
      arith::RemUIOp::create(rewriter, loc, thread, constantIndex(kWarp));
  // Warps are numbered along the rows, so a warp's number is its slot.
  Value warp =
      arith::DivUIOp::create(rewriter, loc, thread, constantIndex(kWarp));
  Value firstSlot = constantIndex(0);
  if (grid.rows > 1)
    firstSlot = arith::MulIOp::create(
        rewriter, loc, getThreadPosition(rewriter, loc, layout).row,
        constantIndex(warps));

  waitForReaders(rewriter, op);
  Value isFirstLane = arith::CmpIOp::create(
      rewriter, loc, arith::CmpIPredicate::eq, lane, constantIndex(0));
  auto branch = scf::IfOp::create(rewriter, loc, isFirstLane);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  int64_t slotsPerRepeat = grid.rows * warps;
  for (auto [repeat, value] : llvm::enumerate(values)) {
    Value slot = arith::AddIOp::create(rewriter, loc, warp,
                                       constantIndex(repeat * slotsPerRepeat));
    LLVM::StoreOp::create(rewriter, loc, value,
                          getSharedAddress(scratch, slot));
  }
  rewriter.setInsertionPointAfter(branch);
  gpu::BarrierOp::create(rewriter, loc);

  for (auto [repeat, value] : llvm::enumerate(values)) {
    Value first = arith::AddIOp::create(rewriter, loc, firstSlot,
                                        constantIndex(repeat * slotsPerRepeat));
    if (warps <= kMaxPartialsToRead) {
      SmallVector<Value> partials;
      for (int64_t index = 0; index < warps; ++index)
        partials.push_back(
            loadShared(scratch, arith::AddIOp::create(rewriter, loc, first,
                                                      constantIndex(index))));
      value = partials.front();
      for (Value partial : ArrayRef(partials).drop_front())
        value = combine(value, partial);
      continue;
    }
    // Lanes past the last warp read its slot again and drop it.
    Value index =
        arith::MinUIOp::create(rewriter, loc, lane, constantIndex(warps - 1));
    Value partial =
        loadShared(scratch, arith::AddIOp::create(rewriter, loc, first, index));
    Value neutral = arith::ConstantOp::create(
        rewriter, loc,
        tile::ReduceOp::getNeutral(op.getKind(), input.getElementType()));
    Value isPartial = arith::CmpIOp::create(
        rewriter, loc, arith::CmpIPredicate::ult, lane, constantIndex(warps));
    value = reduceInWarp(
        arith::SelectOp::create(rewriter, loc, isPartial, partial, neutral),
        kWarp);
  }
}

SmallVector<Value> Reducer::run(ValueRange pieces) {
  int64_t columns = layout.getColumnRepeats(input.getShape());
  SmallVector<Value> values;
  for (size_t first = 0; first < pieces.size(); first += columns) {
    Value value = reduceInThread(pieces.slice(first, columns));
    values.push_back(reduceInWarp(value, std::min(grid.columns, kWarp)));
  }
  if (grid.getWarpsPerRow() > 1)
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

} // namespace

void bastile::populateReducePatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<LowerReduceOp>(converter, patterns.getContext());
}
