//===- ColumnReductions.cpp - Reductions along the row --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tile/ColumnReductions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/building/SumTiles.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

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
  Value total = tile::ReduceOp::create(builder, loc, tiling.getTileType(reduce),
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
  RankedTensorType type = tiling.getTileType(reduce.getInput());
  if (!tiling.isFolded())
    return type;
  const ThreadGrid &grid = *tiling.variant.grid;
  return RankedTensorType::get(
      {type.getDimSize(0), grid.columns * grid.blocks}, type.getElementType(),
      tile::BlockedAttr::get(builder.getContext(), /*vector=*/1, grid.rows,
                             grid.columns, grid.blocks));
}

SmallVector<Value> ColumnReductions::createInitial() {
  auto create = [&](tile::ReduceOp reduce) {
    return createNeutralTile(builder, builder.getLoc(), getPartialType(reduce),
                             reduce.getKind());
  };
  SmallVector<Value> initial =
      llvm::map_to_vector(accumulators.getOps(), create);
  llvm::append_range(initial,
                     llvm::map_range(accumulators.getCounted(), create));
  return initial;
}

Value ColumnReductions::fold(tile::ReduceOp reduce, Value tile) {
  RankedTensorType type = getPartialType(reduce);
  if (type == tile.getType())
    return tile;
  // Several threads hold what is computed of a group of columns: the threads
  // add up the tile together, and one of them takes the sum.
  if (reduce.getKind() == tile::ReduceKind::Add &&
      tiling.space.getGroup(reduce.getInput()) > 1) {
    Location loc = reduce.getLoc();
    if (cast<RankedTensorType>(tile.getType()).getDimSize(1) != 1)
      tile = tile::ReduceOp::create(builder, loc, tiling.getTileType(reduce),
                                    reduce.getKind(), tile);
    Value spread =
        tile::BroadcastOp::create(builder, loc, type, tile, /*like=*/Value());
    return tile::MaskOp::create(
        builder, loc, spread, arith::ConstantIndexOp::create(builder, loc, 0),
        /*misalignment=*/Value(), builder.getI64IntegerAttr(1),
        tile::ReduceOp::getNeutral(reduce.getKind(), type.getElementType()));
  }
  return tile::FoldOp::create(builder, reduce.getLoc(), type, reduce.getKind(),
                              tile);
}

SmallVector<Value> ColumnReductions::combine(ValueRange partials) {
  SmallVector<Value> combined;
  scaled.clear();
  for (auto [index, reduction] : llvm::enumerate(accumulators.getOps())) {
    tile::ReduceOp reduce = reduction;
    if (const FollowingSum *sum = tiling.getFollowing(reduce)) {
      size_t followed = accumulators.getNumber(sum->maximum);
      combined.push_back(
          combineFollowing(reduce, *sum, partials[index],
                           accumulators.getCount(reduce, partials),
                           partials[followed], combined[followed]));
      continue;
    }
    combined.push_back(tile::ReduceOp::combine(
        builder, reduce.getLoc(), reduce.getKind(), partials[index],
        fold(reduce, emitter.emitMasked(reduce))));
  }
  for (tile::ReduceOp reduce : accumulators.getCounted())
    combined.push_back(arith::AddFOp::create(
        builder, reduce.getLoc(), partials[combined.size()],
        fold(reduce, emitCount(reduce, *tiling.getFollowing(reduce)))));
  return combined;
}

//===----------------------------------------------------------------------===//
// Sums that follow a maximum
//===----------------------------------------------------------------------===//

/// The factor that makes a sum relative to `from` one relative to `to`, which
/// is 1 where there is a `count` of terms, which is 0.
Value ColumnReductions::getScaleOfEqual(Location loc, Value from, Value to,
                                        Value count) {
  Value scale =
      selectScale(builder, loc, from, to, createScale(builder, loc, from, to));
  if (!count)
    return scale;
  return arith::SelectOp::create(
      builder, loc, createIsEqual(builder, loc, count, 0),
      createSplat(builder, loc, to.getType(), 1), scale);
}

/// A constant of `type` by which terms with coefficients are multiplied: a
/// power of two that is no more than 1 / the row's length. So a sum overflows
/// only where its result does, although it is divided by l, or made relative to
/// a larger maximum, after terms have been added up. With `isInverse`, its
/// reciprocal.
Value ColumnReductions::getTermScale(Type type, bool isInverse) const {
  const double scale =
      std::ldexp(1.0, llvm::Log2_64_Ceil(tiling.shape.rowLength));
  return createSplat(builder, builder.getLoc(), type,
                     isInverse ? scale : 1 / scale);
}

/// The tile of the terms of `reduce`, with powers relative to `base` in place
/// of m. In place of l there is the constant that the terms are scaled by.
Value ColumnReductions::emitTerms(tile::ReduceOp reduce,
                                  const FollowingSum &sum, Value base) {
  auto getTileType = [&](Value value) { return tiling.getTileType(value); };
  for (const Power &power : sum.powers)
    emitter.map(power.subtracted,
                tile::SpreadOp::create(builder, reduce.getLoc(),
                                       getTileType(power.subtracted), base)
                    .getResult());
  for (Value broadcast : sum.reciprocals)
    emitter.map(broadcast, getTermScale(getTileType(broadcast), false));
  for (Value broadcast : sum.divisors)
    emitter.map(broadcast, getTermScale(getTileType(broadcast), true));
  for (const Power &power : sum.powers) {
    if (!power.isDivided || !scaled.insert(power.result).second)
      continue;
    if (Value logarithm = power.logarithm)
      emitter.map(logarithm, createSplat(builder, reduce.getLoc(),
                                         getTileType(logarithm), 0));
    Value tile = emitter.emit(power.result);
    emitter.map(power.result,
                arith::MulFOp::create(builder, reduce.getLoc(), tile,
                                      getTermScale(tile.getType(), false))
                    .getResult());
  }
  Value terms = emitter.emitMasked(reduce);
  if (sum.divisor || !sum.hasCoefficients)
    return terms;
  return arith::MulFOp::create(builder, reduce.getLoc(), terms,
                               getTermScale(terms.getType(), false));
}

/// The tile that has for each element how many terms of `reduce` count there.
Value ColumnReductions::emitCount(tile::ReduceOp reduce,
                                  const FollowingSum &sum) {
  Location loc = reduce.getLoc();
  RankedTensorType type = tiling.getTileType(reduce.getInput());
  Value count;
  for (const Power &power : sum.powers) {
    Value counts = createCounts(builder, loc, type, power, [&](Value value) {
      return emitter.emit(value);
    });
    count = count ? arith::AddFOp::create(builder, loc, count, counts) : counts;
  }
  return emitter.mask(reduce, count);
}

/// Adds the current columns to a sum relative to the maximum of what the thread
/// has seen (Milakov and Gimelshein, "Online normalizer calculation for
/// softmax", 2018).
Value ColumnReductions::combineFollowing(tile::ReduceOp reduce,
                                         const FollowingSum &sum, Value partial,
                                         Value count, Value oldMaximum,
                                         Value newMaximum) {
  Location loc = reduce.getLoc();
  Value base = createBase(builder, loc, newMaximum);
  Value added = fold(reduce, emitTerms(reduce, sum, base));
  Value scale = getScaleOfEqual(loc, oldMaximum, newMaximum, count);
  return arith::AddFOp::create(
      builder, loc, arith::MulFOp::create(builder, loc, partial, scale), added);
}

/// The result of `reduce`, the terms of which add up to `total` relative to m.
/// `count` is how many there are, if there may be none.
Value ColumnReductions::finishFollowing(tile::ReduceOp reduce,
                                        const FollowingSum &sum, Value total,
                                        Value count) {
  Location loc = reduce.getLoc();
  Type type = total.getType();
  Value isEmpty;
  if (count) {
    // Powers of minus infinity less minus infinity have been added up as 0.
    isEmpty = createIsEqual(builder, loc, count, 0);
    Value isNone =
        createIsEqual(builder, loc, emitter.emit(sum.subtracted), -INFINITY);
    Value some = arith::SelectOp::create(
        builder, loc, isNone, createSplat(builder, loc, type, NAN), total);
    total = arith::SelectOp::create(builder, loc, isEmpty, total, some);
  }
  if (!sum.divisor)
    return sum.hasCoefficients ? arith::MulFOp::create(builder, loc, total,
                                                       getTermScale(type, true))
                               : total;
  Value scaled = arith::MulFOp::create(builder, loc, emitter.emit(sum.divisor),
                                       getTermScale(type, false));
  Value divided = arith::DivFOp::create(builder, loc, total, scaled);
  if (!count || sum.dividesZeros)
    return divided;
  return arith::SelectOp::create(builder, loc, isEmpty, total, divided);
}

//===----------------------------------------------------------------------===//
// What threads and blocks have combined
//===----------------------------------------------------------------------===//

/// Makes `total` the tile of `reduce`.
void ColumnReductions::finish(tile::ReduceOp reduce, Value total, Value count) {
  if (const FollowingSum *sum = tiling.getFollowing(reduce))
    total = finishFollowing(reduce, *sum, total, count);
  emitter.map(reduce.getResult(), total);
}

/// Combines the partial results of the threads of each block, and finishes the
/// reductions unless several blocks share the row. In a cluster, a block may
/// have seen no column.
SmallVector<Value> ColumnReductions::combineThreads(ValueRange partials) {
  const bool isLast = tiling.getBlocks() == 1;
  auto combine = [&](tile::ReduceOp reduce, Value partial) -> Value {
    return tile::ReduceOp::create(builder, reduce.getLoc(),
                                  tiling.getTileType(reduce), reduce.getKind(),
                                  partial);
  };
  SmallVector<Value> totals;
  for (auto [index, reduction] : llvm::enumerate(accumulators.getOps())) {
    tile::ReduceOp reduce = reduction;
    Location loc = reduce.getLoc();
    Value count = accumulators.getCount(reduce, partials);
    Value partial = partials[index];
    if (const FollowingSum *sum = tiling.getFollowing(reduce)) {
      size_t followed = accumulators.getNumber(sum->maximum);
      Value to = isLast ? emitter.emit(sum->subtracted)
                        : createBase(builder, loc, totals[followed]);
      to = tile::BroadcastOp::create(builder, loc, partial.getType(), to,
                                     Value());
      Value from = partials[followed];
      partial =
          arith::MulFOp::create(builder, loc, partial,
                                count ? getScaleOfEqual(loc, from, to, count)
                                      : createScale(builder, loc, from, to));
    }
    totals.push_back(combine(reduce, partial));
    if (isLast)
      finish(reduce, totals.back(), count ? combine(reduce, count) : Value());
  }
  if (!isLast)
    for (tile::ReduceOp reduce : accumulators.getCounted())
      totals.push_back(combine(reduce, partials[totals.size()]));
  return totals;
}

/// Combines the partial results of the blocks of a cluster, which they exchange
/// all at once.
void ColumnReductions::combineBlocks(ValueRange parts) {
  ValueRange exchanged =
      exchange(builder, accumulators.getOps().front()->getLoc(),
               tiling.getBlocks(), parts);
  auto getParts = [&](size_t index) {
    int64_t blocks = tiling.getBlocks();
    return exchanged.slice(index * blocks, blocks);
  };
  for (auto [index, reduction] : llvm::enumerate(accumulators.getOps())) {
    tile::ReduceOp reduce = reduction;
    Location loc = reduce.getLoc();
    SmallVector<Value> values(getParts(index)), counts;
    if (std::optional<size_t> count = accumulators.getCountNumber(reduce))
      counts.append(getParts(*count).begin(), getParts(*count).end());
    if (const FollowingSum *sum = tiling.getFollowing(reduce)) {
      Value to = emitter.emit(sum->subtracted);
      for (auto [part, from] :
           llvm::enumerate(getParts(accumulators.getNumber(sum->maximum)))) {
        Value scale = counts.empty()
                          ? createScale(builder, loc, from, to)
                          : getScaleOfEqual(loc, from, to, counts[part]);
        values[part] = arith::MulFOp::create(builder, loc, values[part], scale);
      }
    }
    finish(reduce, combineAll(builder, reduce, values),
           counts.empty() ? Value() : combineAll(builder, reduce, counts));
  }
}

void ColumnReductions::finish(ValueRange partials) {
  if (accumulators.empty())
    return;
  SmallVector<Value> parts = combineThreads(partials);
  if (tiling.getBlocks() > 1)
    combineBlocks(parts);
}
