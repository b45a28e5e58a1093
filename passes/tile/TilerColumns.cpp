//===- TilerColumns.cpp - Walking rows that a tile does not hold ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tile/Tiler.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace bastile;

//===----------------------------------------------------------------------===//
// What each thread combines by itself
//===----------------------------------------------------------------------===//

tile::ReduceOp Tiler::getFollowedMaximum(tile::ReduceOp reduce) const {
  return isFolded() ? getSubtractedMaximum(reduce) : nullptr;
}

/// The type of the partial result of `reduce`: one element for each thread
/// along the row. On the host, which has vectors to fill, it has as many
/// elements as the tile.
RankedTensorType Tiler::getFoldedType(tile::ReduceOp reduce) const {
  RankedTensorType type = getTileType(reduce.getInput().getType());
  if (!isFolded())
    return type;
  const ThreadGrid &grid = *variant.grid;
  return RankedTensorType::get(
      {type.getDimSize(0), grid.columns * grid.blocks}, type.getElementType(),
      tile::BlockedAttr::get(builder.getContext(), /*vector=*/1, grid.rows,
                             grid.columns, grid.blocks));
}

Value Tiler::fold(tile::ReduceOp reduce, Value tile) {
  RankedTensorType type = getFoldedType(reduce);
  if (type == tile.getType())
    return tile;
  return tile::FoldOp::create(builder, reduce.getLoc(), type, reduce.getKind(),
                              tile);
}

/// The factor that makes a sum of powers relative to `from` one relative to
/// `to`. As in the formula, it is NaN if both are infinite.
Value Tiler::getScale(Location loc, Value from, Value to) {
  return math::ExpOp::create(builder, loc,
                             arith::SubFOp::create(builder, loc, from, to));
}

/// Adds the current columns to a sum of exp(x - max(x)), relative to the
/// maximum of what the thread has seen (Milakov and Gimelshein, "Online
/// normalizer calculation for softmax", 2018).
Value Tiler::combineFollowing(tile::ReduceOp sum, Value partial,
                              Value oldMaximum, Value newMaximum) {
  Location loc = sum.getLoc();
  auto type = cast<RankedTensorType>(newMaximum.getType());
  Value base = getBase(loc, newMaximum);
  Value difference = sum.getInput().getDefiningOp()->getOperand(0);
  Value subtracted = difference.getDefiningOp()->getOperand(1);
  columnScope.map(subtracted,
                  tile::SpreadOp::create(
                      builder, loc,
                      getTileType(cast<RankedTensorType>(subtracted.getType())),
                      base)
                      .getResult());
  Value added = fold(sum, emitMasked(sum));
  Value one = arith::ConstantOp::create(
      builder, loc,
      DenseElementsAttr::get(
          type, Attribute(builder.getFloatAttr(type.getElementType(), 1.0))));
  Value isSame = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ,
                                       oldMaximum, newMaximum);
  Value scale = arith::SelectOp::create(builder, loc, isSame, one,
                                        getScale(loc, oldMaximum, newMaximum));
  return arith::AddFOp::create(
      builder, loc, arith::MulFOp::create(builder, loc, partial, scale), added);
}

/// Adds the current columns to the partial results of `reductions`.
SmallVector<Value> Tiler::combineColumns(ArrayRef<tile::ReduceOp> reductions,
                                         ValueRange partials) {
  SmallVector<Value> combined;
  for (auto [index, reduction] : llvm::enumerate(reductions)) {
    tile::ReduceOp reduce = reduction;
    if (tile::ReduceOp maximum = getFollowedMaximum(reduce)) {
      size_t followed = llvm::find(reductions, maximum) - reductions.begin();
      combined.push_back(combineFollowing(
          reduce, partials[index], partials[followed], combined[followed]));
      continue;
    }
    combined.push_back(tile::ReduceOp::combine(
        builder, reduce.getLoc(), reduce.getKind(), partials[index],
        fold(reduce, emitMasked(reduce))));
  }
  return combined;
}

/// The number that a sum of powers is relative to: the maximum so far or, where
/// only minus infinity has been seen, 0, as powers relative to minus infinity
/// would be NaN.
Value Tiler::getBase(Location loc, Value maximum) {
  auto type = cast<RankedTensorType>(maximum.getType());
  Value none = getNeutralTile(type, tile::ReduceKind::Max);
  Value zero = getNeutralTile(type, tile::ReduceKind::Add);
  Value isNone = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ,
                                       maximum, none);
  return arith::SelectOp::create(builder, loc, isNone, zero, maximum);
}

/// Combines the partial results of the threads of each block. In a cluster, a
/// block may have seen no column.
SmallVector<Value> Tiler::combineThreads(ArrayRef<tile::ReduceOp> reductions,
                                         ValueRange partials) {
  SmallVector<Value> totals;
  for (auto [index, reduction] : llvm::enumerate(reductions)) {
    tile::ReduceOp reduce = reduction;
    Location loc = reduce.getLoc();
    Value partial = partials[index];
    if (tile::ReduceOp maximum = getFollowedMaximum(reduce)) {
      size_t followed = llvm::find(reductions, maximum) - reductions.begin();
      Value whole = totals[followed];
      whole = tile::BroadcastOp::create(
          builder, loc, partial.getType(),
          getBlocks() > 1 ? getBase(loc, whole) : whole, Value());
      partial = arith::MulFOp::create(builder, loc, partial,
                                      getScale(loc, partials[followed], whole));
    }
    totals.push_back(tile::ReduceOp::create(builder, loc,
                                            getTileType(reduce.getType()),
                                            reduce.getKind(), partial));
  }
  return totals;
}

/// Sends `parts` from each block of a cluster to all of its blocks. The results
/// are the first part of every block, then the second part of every block, and
/// so on.
ValueRange Tiler::exchange(Location loc, ValueRange parts) {
  SmallVector<Type> types;
  for (Value part : parts)
    types.append(getBlocks(), part.getType());
  return tile::ExchangeOp::create(builder, loc, types, parts).getResults();
}

Value Tiler::combineAll(tile::ReduceOp reduce, ValueRange values) {
  Value total = values.front();
  for (Value value : values.drop_front())
    total = tile::ReduceOp::combine(builder, reduce.getLoc(), reduce.getKind(),
                                    total, value);
  return total;
}

Value Tiler::emitReduction(tile::ReduceOp reduce) {
  bool isShared = getBlocks() > 1 && !reduce.isOfGroups();
  Value total = tile::ReduceOp::create(builder, reduce.getLoc(),
                                       getTileType(reduce.getType()),
                                       reduce.getKind(), emitMasked(reduce));
  return isShared ? combineAll(reduce, exchange(reduce.getLoc(), total))
                  : total;
}

/// Combines the partial results of the blocks of a cluster, which they exchange
/// all at once.
SmallVector<Value> Tiler::combineBlocks(ArrayRef<tile::ReduceOp> reductions,
                                        ValueRange parts) {
  ValueRange exchanged = exchange(reductions.front()->getLoc(), parts);
  auto getParts = [&](size_t index) {
    int64_t blocks = getBlocks();
    return exchanged.slice(index * blocks, blocks);
  };
  SmallVector<Value> totals;
  for (auto [index, reduction] : llvm::enumerate(reductions)) {
    tile::ReduceOp reduce = reduction;
    SmallVector<Value> values(getParts(index));
    if (tile::ReduceOp maximum = getFollowedMaximum(reduce)) {
      size_t followed = llvm::find(reductions, maximum) - reductions.begin();
      for (auto [value, from] : llvm::zip_equal(values, getParts(followed)))
        value = arith::MulFOp::create(
            builder, reduce.getLoc(), value,
            getScale(reduce.getLoc(), from, totals[followed]));
    }
    totals.push_back(combineAll(reduce, values));
  }
  return totals;
}

/// Combines the partial results of all threads, each of which has seen its own
/// columns.
void Tiler::finishColumns(ArrayRef<tile::ReduceOp> reductions,
                          ValueRange partials) {
  if (reductions.empty())
    return;
  SmallVector<Value> totals = combineThreads(reductions, partials);
  if (getBlocks() > 1)
    totals = combineBlocks(reductions, totals);
  for (auto [reduction, total] : llvm::zip_equal(reductions, totals)) {
    tile::ReduceOp reduce = reduction;
    rowScope.map(reduce.getResult(), total);
  }
}

//===----------------------------------------------------------------------===//
// Sweeps
//===----------------------------------------------------------------------===//

/// The number of the last sweep, counted from 0. A sum of powers needs no sweep
/// after that of its maximum.
int64_t Tiler::findLastSweep() {
  if (isFolded())
    noteFollowingSums(kernel, depths);
  int64_t last = 0;
  for (Operation &op : kernel.getBody().front())
    for (Value result : op.getResults())
      last = std::max(last, getReductionDepth(result, depths));
  return last;
}

/// Builds the sweeps over a row, one for each depth of reductions: sweep d
/// computes what waits for d reductions, and computes again from memory what it
/// shares with earlier sweeps.
void Tiler::buildSweeps() {
  lastSweep = findLastSweep();
  for (int64_t depth = 0; depth <= lastSweep; ++depth)
    buildSweep(depth);
  accumulate();
}

/// The sweep that stores `value`: the first that can, or the last where the
/// rows may take the memory of an operand that later sweeps read.
int64_t Tiler::getSweep(Value value) {
  if (program.getInPlace() && isRow(value))
    return lastSweep;
  return getReductionDepth(value, depths);
}

/// The sweep in which threads compute the partial results of `reduce`.
int64_t Tiler::getSweep(tile::ReduceOp reduce) {
  if (tile::ReduceOp maximum = getFollowedMaximum(reduce))
    return getSweep(maximum);
  return getReductionDepth(reduce.getInput(), depths);
}

void Tiler::emitResult(unsigned resultIndex) {
  Value value = getReturn()->getOperand(resultIndex);
  if (auto join = value.getDefiningOp<tile::JoinOp>())
    for (Value piece : join.getPieces())
      emit(piece);
  else
    emit(value);
}

void Tiler::buildSweep(int64_t depth) {
  SmallVector<tile::ReduceOp> reductions;
  for (auto reduce : kernel.getBody().front().getOps<tile::ReduceOp>())
    if (isRowReduction(reduce) && getSweep(reduce) == depth)
      reductions.push_back(reduce);
  SmallVector<tile::ReduceRowsOp> inMemory;
  for (tile::ReduceRowsOp reduce : rowReductions)
    if (!isInRegisters(reduce) &&
        getReductionDepth(reduce.getInput(), depths) == depth)
      inMemory.push_back(reduce);
  SmallVector<unsigned> rowResults, statistics;
  for (auto [index, value] : llvm::enumerate(getReturn()->getOperands()))
    if (!value.getDefiningOp<tile::ReduceRowsOp>() && getSweep(value) == depth)
      (isRow(value) ? rowResults : statistics).push_back(index);
  for (unsigned index : statistics)
    emitStore(index);
  if (reductions.empty() && rowResults.empty() && inMemory.empty())
    return;

  // Each thread combines what it loads; the threads' results are combined once,
  // after the loop.
  SmallVector<Value> initial;
  for (tile::ReduceOp reduce : reductions)
    initial.push_back(getNeutralTile(getFoldedType(reduce), reduce.getKind()));
  Value firstColumn = column;
  auto loop = scf::ForOp::create(builder, firstColumn, constantIndex(getSpan()),
                                 constantIndex(schedule.getColumns()), initial);
  columnLoop = loop;
  columnScope.clear();
  column = loop.getInductionVar();
  builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> combined =
      combineColumns(reductions, loop.getRegionIterArgs());
  // The blocks exchange results before the first store, which may overwrite
  // operands that other blocks still need.
  for (unsigned index : rowResults)
    emitResult(index);
  for (tile::ReduceRowsOp reduce : inMemory)
    emit(reduce.getInput());
  for (unsigned index : rowResults)
    emitStore(index);
  for (tile::ReduceRowsOp reduce : inMemory)
    accumulateInMemory(reduce);
  if (!combined.empty())
    scf::YieldOp::create(builder, combined);

  builder.setInsertionPointAfter(loop);
  columnLoop = nullptr;
  column = firstColumn;
  finishColumns(reductions, loop.getResults());
}
