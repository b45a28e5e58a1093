//===- ColumnReductions.cpp - Reductions along the row --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tile/ColumnReductions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace bastile;

//===----------------------------------------------------------------------===//
// Blocks of a cluster
//===----------------------------------------------------------------------===//

/// Sends `parts` from each block of a cluster to all of its blocks. The results
/// are the first part of every block, then the second part of every block, and
/// so on.
static ValueRange exchange(OpBuilder &builder, Location loc, int64_t blocks,
                           ValueRange parts) {
  SmallVector<Type> types;
  for (Value part : parts)
    types.append(blocks, part.getType());
  return tile::ExchangeOp::create(builder, loc, types, parts).getResults();
}

static Value combineAll(OpBuilder &builder, tile::ReduceOp reduce,
                        ValueRange values) {
  Value total = values.front();
  for (Value value : values.drop_front())
    total = tile::ReduceOp::combine(builder, reduce.getLoc(), reduce.getKind(),
                                    total, value);
  return total;
}

Value bastile::reduceColumns(ImplicitLocOpBuilder &builder,
                             const KernelTiling &tiling, tile::ReduceOp reduce,
                             Value tile) {
  const int64_t blocks = tiling.getBlocks();
  Location loc = reduce.getLoc();
  Value total =
      tile::ReduceOp::create(builder, loc, tiling.getTileType(reduce.getType()),
                             reduce.getKind(), tile);
  if (blocks == 1 || reduce.isOfGroups())
    return total;
  return combineAll(builder, reduce, exchange(builder, loc, blocks, total));
}

//===----------------------------------------------------------------------===//
// What each thread combines by itself
//===----------------------------------------------------------------------===//

/// The type of the partial result of `reduce`: one element for each thread
/// along the row. On the host, which has vectors to fill, it has as many
/// elements as the tile.
RankedTensorType ColumnReductions::getPartialType(tile::ReduceOp reduce) const {
  RankedTensorType type = tiling.getTileType(reduce.getInput().getType());
  if (!tiling.isFolded())
    return type;
  const ThreadGrid &grid = *tiling.variant.grid;
  return RankedTensorType::get(
      {type.getDimSize(0), grid.columns * grid.blocks}, type.getElementType(),
      tile::BlockedAttr::get(builder.getContext(), /*vector=*/1, grid.rows,
                             grid.columns, grid.blocks));
}

SmallVector<Value> ColumnReductions::createInitial() {
  return llvm::map_to_vector(reductions, [&](tile::ReduceOp reduce) {
    return createNeutralTile(builder, builder.getLoc(), getPartialType(reduce),
                             reduce.getKind());
  });
}

Value ColumnReductions::fold(tile::ReduceOp reduce, Value tile) {
  RankedTensorType type = getPartialType(reduce);
  if (type == tile.getType())
    return tile;
  return tile::FoldOp::create(builder, reduce.getLoc(), type, reduce.getKind(),
                              tile);
}

/// The factor that makes a sum of powers relative to `from` one relative to
/// `to`. As in the formula, it is NaN if both are infinite.
Value ColumnReductions::getScale(Location loc, Value from, Value to) {
  return math::ExpOp::create(builder, loc,
                             arith::SubFOp::create(builder, loc, from, to));
}

/// Adds the current columns to a sum of exp(x - max(x)), relative to the
/// maximum of what the thread has seen (Milakov and Gimelshein, "Online
/// normalizer calculation for softmax", 2018).
Value ColumnReductions::combineFollowing(tile::ReduceOp sum, Value partial,
                                         Value oldMaximum, Value newMaximum) {
  Location loc = sum.getLoc();
  auto type = cast<RankedTensorType>(newMaximum.getType());
  Value base = getBase(loc, newMaximum);
  Value difference = sum.getInput().getDefiningOp()->getOperand(0);
  Value subtracted = difference.getDefiningOp()->getOperand(1);
  emitter.map(subtracted,
              tile::SpreadOp::create(builder, loc,
                                     tiling.getTileType(cast<RankedTensorType>(
                                         subtracted.getType())),
                                     base)
                  .getResult());
  Value added = fold(sum, emitter.emitMasked(sum));
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

SmallVector<Value> ColumnReductions::combine(ValueRange partials) {
  SmallVector<Value> combined;
  for (auto [index, reduction] : llvm::enumerate(reductions)) {
    tile::ReduceOp reduce = reduction;
    if (tile::ReduceOp maximum = tiling.getFollowedMaximum(reduce)) {
      size_t followed = getFollowed(maximum);
      combined.push_back(combineFollowing(
          reduce, partials[index], partials[followed], combined[followed]));
      continue;
    }
    combined.push_back(tile::ReduceOp::combine(
        builder, reduce.getLoc(), reduce.getKind(), partials[index],
        fold(reduce, emitter.emitMasked(reduce))));
  }
  return combined;
}

/// The number that a sum of powers is relative to: the maximum so far or, where
/// only minus infinity has been seen, 0, as powers relative to minus infinity
/// would be NaN.
Value ColumnReductions::getBase(Location loc, Value maximum) {
  auto type = cast<RankedTensorType>(maximum.getType());
  Value none =
      createNeutralTile(builder, builder.getLoc(), type, tile::ReduceKind::Max);
  Value zero =
      createNeutralTile(builder, builder.getLoc(), type, tile::ReduceKind::Add);
  Value isNone = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ,
                                       maximum, none);
  return arith::SelectOp::create(builder, loc, isNone, zero, maximum);
}

/// Combines the partial results of the threads of each block. In a cluster, a
/// block may have seen no column.
SmallVector<Value> ColumnReductions::combineThreads(ValueRange partials) {
  SmallVector<Value> totals;
  for (auto [index, reduction] : llvm::enumerate(reductions)) {
    tile::ReduceOp reduce = reduction;
    Location loc = reduce.getLoc();
    Value partial = partials[index];
    if (tile::ReduceOp maximum = tiling.getFollowedMaximum(reduce)) {
      size_t followed = getFollowed(maximum);
      Value whole = totals[followed];
      whole = tile::BroadcastOp::create(
          builder, loc, partial.getType(),
          tiling.getBlocks() > 1 ? getBase(loc, whole) : whole, Value());
      partial = arith::MulFOp::create(builder, loc, partial,
                                      getScale(loc, partials[followed], whole));
    }
    totals.push_back(tile::ReduceOp::create(
        builder, loc, tiling.getTileType(reduce.getType()), reduce.getKind(),
        partial));
  }
  return totals;
}

/// Combines the partial results of the blocks of a cluster, which they exchange
/// all at once.
SmallVector<Value> ColumnReductions::combineBlocks(ValueRange parts) {
  ValueRange exchanged = exchange(builder, reductions.front()->getLoc(),
                                  tiling.getBlocks(), parts);
  auto getParts = [&](size_t index) {
    int64_t blocks = tiling.getBlocks();
    return exchanged.slice(index * blocks, blocks);
  };
  SmallVector<Value> totals;
  for (auto [index, reduction] : llvm::enumerate(reductions)) {
    tile::ReduceOp reduce = reduction;
    SmallVector<Value> values(getParts(index));
    if (tile::ReduceOp maximum = tiling.getFollowedMaximum(reduce)) {
      size_t followed = getFollowed(maximum);
      for (auto [value, from] : llvm::zip_equal(values, getParts(followed)))
        value = arith::MulFOp::create(
            builder, reduce.getLoc(), value,
            getScale(reduce.getLoc(), from, totals[followed]));
    }
    totals.push_back(combineAll(builder, reduce, values));
  }
  return totals;
}

void ColumnReductions::finish(ValueRange partials) {
  if (reductions.empty())
    return;
  SmallVector<Value> totals = combineThreads(partials);
  if (tiling.getBlocks() > 1)
    totals = combineBlocks(totals);
  for (auto [reduction, total] : llvm::zip_equal(reductions, totals)) {
    tile::ReduceOp reduce = reduction;
    emitter.map(reduce.getResult(), total);
  }
}
