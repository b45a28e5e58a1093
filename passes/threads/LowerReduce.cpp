//===- LowerReduce.cpp - Row reductions within and across threads ---------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/threads/Reducer.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/threads/ClusterExchange.h"

using namespace mlir;
using namespace bastile;

namespace {

/// Warps to a row up to which reading all partial results costs less than
/// another round of shuffles.
constexpr int64_t kMaxPartialsToRead = 8;
/// Barriers of a block that its rows may use: all but the first.
constexpr int64_t kMostRowBarriers = 15;

} // namespace

Value bastile::reduceInThread(OpBuilder &builder, Location loc,
                              tile::ReduceKind kind, ValueRange pieces) {
  if (kind == tile::ReduceKind::Add)
    if (Value oneHot = sumOneHot(builder, loc, pieces))
      return oneHot;
  return combinePieces(builder, loc, kind, pieces);
}

/// A butterfly of shuffles over groups of `lanes` lanes: every lane ends with
/// the result.
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
                              getSharedAddress(base, index), /*alignment=*/4);
}

/// The first slot of the calling thread's row.
Value Reducer::getFirstSlot() {
  if (grid.rows == 1)
    return constantIndex(0);
  return arith::MulIOp::create(rewriter, loc,
                               getThreadPosition(rewriter, loc, layout).row,
                               constantIndex(grid.getWarpsPerRow()));
}

/// Creates memory for `count` partial results. Where a loop repeats the
/// reduction, two places take turns. Two are enough: a thread that writes for
/// the turn after next has met all others since they read what it overwrites.
Value Reducer::createPlace(int64_t count) {
  Type type = input.getElementType();
  if (!op->getParentOfType<scf::ForOp>())
    return createScratch(rewriter, op, type, count);
  Value scratch = createScratch(rewriter, op, type, 2 * count);
  Value one = arith::ConstantIntOp::create(rewriter, loc, 1, /*width=*/32);
  Value turn =
      arith::AndIOp::create(rewriter, loc, countVisits(rewriter, op), one);
  Value first = arith::IndexCastUIOp::create(rewriter, loc,
                                             rewriter.getIndexType(), turn);
  return getSharedAddress(scratch, arith::MulIOp::create(rewriter, loc, first,
                                                         constantIndex(count)));
}

/// Stores the warp's results in the scratch memory of its block, by the warp's
/// first lane. Afterwards all threads can read the results of all warps of
/// their row.
void Reducer::storePartials(ValueRange values, Value scratch, ValueRange slots,
                            Value lane) {
  Value stores = arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq,
                                       lane, constantIndex(0));
  auto branch = scf::IfOp::create(rewriter, loc, stores);
  rewriter.setInsertionPointToStart(branch.thenBlock());
  for (auto [value, slot] : llvm::zip_equal(values, slots))
    LLVM::StoreOp::create(rewriter, loc, value,
                          getSharedAddress(scratch, slot));
  rewriter.setInsertionPointAfter(branch);
  waitForRow();
}

/// Makes the threads of each row wait for each other, but not for those of
/// other rows: rows that a block holds side by side need not wait for the
/// slowest. The first barrier is the whole block's, so a block has fewer
/// barriers for rows than there are.
void Reducer::waitForRow() {
  // A warp whose lanes hold several rows has to wait as a whole.
  if (grid.rows == 1 || grid.rows > kMostRowBarriers ||
      grid.columns % kWarp != 0) {
    gpu::BarrierOp::create(rewriter, loc);
    return;
  }
  auto toInt32 = [&](Value index) -> Value {
    return arith::IndexCastUIOp::create(rewriter, loc, rewriter.getI32Type(),
                                        index);
  };
  Value row = getThreadPosition(rewriter, loc, layout).row;
  NVVM::BarrierOp::create(rewriter, loc, /*resultTypes=*/TypeRange(),
                          toInt32(add(row, constantIndex(1))),
                          toInt32(constantIndex(grid.columns)),
                          /*reductionOp=*/{}, /*reductionPredicate=*/Value());
}

/// Combines the partial results of a row, which start at slot `first`.
Value Reducer::loadPartials(Value scratch, Value first, Value lane) {
  int64_t count = grid.getWarpsPerRow();
  if (count <= kMaxPartialsToRead) {
    Value total = loadShared(scratch, first);
    for (int64_t index = 1; index < count; ++index)
      total =
          combine(total, loadShared(scratch, add(first, constantIndex(index))));
    return total;
  }
  if (count == kWarp)
    return reduceInWarp(loadShared(scratch, add(first, lane)), kWarp);
  // Lanes beyond the last partial result read the last one again and drop it.
  Value clamped =
      arith::MinUIOp::create(rewriter, loc, lane, constantIndex(count - 1));
  Value partial = loadShared(scratch, add(first, clamped));
  Value neutral = arith::ConstantOp::create(
      rewriter, loc,
      tile::ReduceOp::getNeutral(op.getKind(), input.getElementType()));
  Value isPartial = arith::CmpIOp::create(
      rewriter, loc, arith::CmpIPredicate::ult, lane, constantIndex(count));
  return reduceInWarp(
      arith::SelectOp::create(rewriter, loc, isPartial, partial, neutral),
      kWarp);
}

/// Combines the results of warps: each warp leaves its results in shared memory
/// and, after one wait, every thread reads those of its row.
void Reducer::reduceAcrossWarps(SmallVectorImpl<Value> &values) {
  Value thread = getThreadId(rewriter, loc);
  Value lane =
      arith::RemUIOp::create(rewriter, loc, thread, constantIndex(kWarp));
  // Warps are numbered along the rows, so that the number of a warp is its
  // slot.
  Value ownSlot =
      arith::DivUIOp::create(rewriter, loc, thread, constantIndex(kWarp));
  Value firstSlot = getFirstSlot();
  SmallVector<Value> slots;
  for (size_t repeat = 0; repeat < values.size(); ++repeat)
    slots.push_back(add(ownSlot, constantIndex(repeat * getSlotsPerRepeat())));
  Value scratch = createPlace(values.size() * getSlotsPerRepeat());
  storePartials(values, scratch, slots, lane);
  for (auto [repeat, value] : llvm::enumerate(values)) {
    Value first = add(firstSlot, constantIndex(repeat * getSlotsPerRepeat()));
    value = loadPartials(scratch, first, lane);
  }
}

SmallVector<Value> Reducer::run(ValueRange pieces) {
  SmallVector<Value> once;
  if (op.getKind() == tile::ReduceKind::Add &&
      layout.getGroup() > layout.getVector()) {
    once = keepFirstOfGroups(pieces);
    pieces = once;
  }
  if (op.isOfGroups())
    return runOnGroups(pieces);
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

namespace {

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

/// Only the first warp of each row sends, as the other warps of the row have
/// the same numbers.
struct LowerExchange : public OpConversionPattern<tile::ExchangeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ExchangeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getInputs().front().getType());
    tile::BlockedAttr layout = getLayout(type);
    if (!layout)
      return failure();
    Location loc = op.getLoc();
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(rewriter, loc, value);
    };
    auto add = [&](Value lhs, Value rhs) -> Value {
      return arith::AddIOp::create(rewriter, loc, lhs, rhs);
    };
    int64_t blocks = layout.getBlocks(), rows = layout.getThreadRows();
    SmallVector<Value> values;
    for (ValueRange input : adaptor.getInputs())
      llvm::append_range(values, input);

    // There is a place for each number, row and block; the block varies
    // fastest.
    Value row = getThreadPosition(rewriter, loc, layout).row;
    Value first = arith::MulIOp::create(rewriter, loc, row, constant(blocks));
    Value own = add(first, getBlockRank(rewriter, loc, layout));
    auto getPlace = [&](size_t index) {
      return constant(static_cast<int64_t>(index) * rows * blocks);
    };
    SmallVector<Value> slots;
    for (size_t index = 0; index < values.size(); ++index)
      slots.push_back(add(own, getPlace(index)));

    Type element = type.getElementType();
    ClusterExchange exchange(rewriter, op, element,
                             values.size() * rows * blocks, blocks);
    // Threads behind the first warp of a row have lanes beyond the last block,
    // and so send nothing.
    Value thread = getThreadId(rewriter, loc);
    Value lane = arith::RemUIOp::create(rewriter, loc, thread,
                                        constant(layout.getThreadColumns()));
    exchange.send(values, slots, lane);
    Value memory = exchange.receive();
    SmallVector<SmallVector<Value>> results;
    size_t repeats = adaptor.getInputs().front().size();
    for (size_t input = 0; input < op.getInputs().size(); ++input)
      for (int64_t block = 0; block < blocks; ++block) {
        results.emplace_back();
        for (size_t repeat = 0; repeat < repeats; ++repeat) {
          const size_t number = input * repeats + repeat;
          Value slot = add(add(first, getPlace(number)), constant(block));
          // The load is volatile, because LLVM does not know that messages
          // change the memory.
          auto load = LLVM::LoadOp::create(
              rewriter, loc, element,
              getScratchAddress(rewriter, loc, memory, element, slot),
              /*alignment=*/4, /*isVolatile=*/true);
          load->setAttr(kNumberAttrName, rewriter.getI64IntegerAttr(
                                             static_cast<int64_t>(number)));
          results.back().push_back(load);
        }
      }
    rewriter.replaceOpWithMultiple(op, results);
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

void bastile::populateReducePatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<LowerReduceOp, LowerExchange, LowerFold>(converter,
                                                        patterns.getContext());
}
