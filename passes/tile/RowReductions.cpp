//===- RowReductions.cpp - Combining rows in a program --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tile/RowReductions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/building/SumTiles.h"

using namespace mlir;
using namespace bastile;

Value bastile::combineTileRows(OpBuilder &builder, Value tile,
                               tile::ReduceKind kind) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (type.getDimSize(0) == 1)
    return tile;
  return tile::ReduceRowsOp::create(builder, tile.getLoc(),
                                    type.clone({1, type.getDimSize(1)}), kind,
                                    tile, /*partial=*/false);
}

Value bastile::combineBand(OpBuilder &builder, const KernelTiling &tiling,
                           tile::ReduceBandsOp reduce, Value tile) {
  Value row = combineTileRows(builder, tile, reduce.getKind());
  RankedTensorType type = tiling.getTileType(reduce);
  if (row.getType() == type)
    return row;
  return tile::BroadcastOp::create(builder, row.getLoc(), type, row, Value());
}

//===----------------------------------------------------------------------===//
// Accumulators
//===----------------------------------------------------------------------===//

RowAccumulators::RowAccumulators(ImplicitLocOpBuilder &builder,
                                 const KernelTiling &tiling,
                                 TileEmitter &emitter)
    : builder(builder), tiling(tiling), emitter(emitter) {
  for (auto reduce : tiling.getBody().getOps<tile::ReduceRowsOp>())
    (isInRegisters(reduce) ? reductions : inMemory).push_back(reduce);
}

bool RowAccumulators::isInRegisters(tile::ReduceRowsOp reduce) const {
  return !tiling.hasColumns(reduce.getInput()) ||
         tiling.shape.numReductions == 0 ||
         tiling.schedule.getColumns() >= tiling.shape.rowLength;
}

bool RowAccumulators::isCompensated(tile::ReduceRowsOp reduce) const {
  return tiling.variant.compensated &&
         reduce.getKind() == tile::ReduceKind::Add;
}

bool RowAccumulators::areCompensated() const {
  return llvm::any_of(reductions, [&](tile::ReduceRowsOp reduce) {
    return isCompensated(reduce);
  });
}

SmallVector<Value> RowAccumulators::createInitial() {
  return llvm::map_to_vector(reductions, [&](tile::ReduceRowsOp reduce) {
    return createNeutralTile(builder, builder.getLoc(),
                             tiling.getTileType(reduce.getInput()),
                             reduce.getKind());
  });
}

void RowAccumulators::add() {
  sums.clear();
  for (tile::ReduceRowsOp reduce : reductions) {
    Value tile = emitter.emitRowMasked(reduce.getInput(), reduce.getKind());
    if (!accumulators.empty())
      tile = tile::ReduceOp::combine(builder, reduce.getLoc(), reduce.getKind(),
                                     accumulators[sums.size()], tile);
    sums.push_back(tile);
  }
}

/// What rounding takes from the sum of `lhs` and `rhs`, exactly (Knuth, The Art
/// of Computer Programming 4.2.2).
static Value createLostPart(OpBuilder &builder, Location loc, Value lhs,
                            Value rhs, Value sum) {
  auto subtract = [&](Value from, Value value) -> Value {
    return arith::SubFOp::create(builder, loc, from, value);
  };
  Value ofRhs = subtract(sum, lhs);
  Value ofLhs = subtract(sum, ofRhs);
  return arith::AddFOp::create(builder, loc, subtract(lhs, ofLhs),
                               subtract(rhs, ofRhs));
}

SmallVector<Value> RowAccumulators::addCompensated(ValueRange totals,
                                                   ValueRange block) {
  const size_t count = reductions.size();
  SmallVector<Value> results, lost;
  for (auto [index, reduction] : llvm::enumerate(reductions)) {
    tile::ReduceRowsOp reduce = reduction;
    Location loc = reduce.getLoc();
    results.push_back(tile::ReduceOp::combine(builder, loc, reduce.getKind(),
                                              totals[index], block[index]));
    lost.push_back(totals[count + index]);
    if (isCompensated(reduce))
      lost.back() =
          arith::AddFOp::create(builder, loc, lost.back(),
                                createLostPart(builder, loc, totals[index],
                                               block[index], results.back()));
  }
  results.append(lost);
  return results;
}

/// Adds the part that rounding took from `sum`. The lost part of an infinite
/// sum is NaN and is left out.
static Value addLostPart(OpBuilder &builder, Location loc, Value sum,
                         Value lost) {
  Value isNumber = arith::CmpFOp::create(builder, loc,
                                         arith::CmpFPredicate::ORD, lost, lost);
  Value whole = arith::AddFOp::create(builder, loc, sum, lost);
  return arith::SelectOp::create(builder, loc, isNumber, whole, sum);
}

SmallVector<Value> RowAccumulators::finishCompensated(ValueRange totals) {
  SmallVector<Value> results;
  for (auto [index, reduction] : llvm::enumerate(reductions)) {
    tile::ReduceRowsOp reduce = reduction;
    results.push_back(isCompensated(reduce)
                          ? addLostPart(builder, reduce.getLoc(), totals[index],
                                        totals[reductions.size() + index])
                          : totals[index]);
  }
  return results;
}

void RowAccumulators::finish(ValueRange totals, Value rowProgram) {
  for (auto [reduction, total] : llvm::zip_equal(reductions, totals)) {
    tile::ReduceRowsOp reduce = reduction;
    Value tile = combineTileRows(builder, total, reduce.getKind());
    if (reduce.getPartial())
      emitter.emitStore(tile, getMemory(reduce), rowProgram, reduce.getInput());
    else
      emitter.map(reduce.getResult(), tile);
  }
}

//===----------------------------------------------------------------------===//
// In memory
//===----------------------------------------------------------------------===//

Value RowAccumulators::getMemory(tile::ReduceRowsOp reduce) {
  return emitter.getResultMemory(reduce->getUses().begin()->getOperandNumber());
}

void RowAccumulators::clearInMemory(Value rowProgram) {
  for (tile::ReduceRowsOp reduce : inMemory) {
    auto constantIndex = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, value);
    };
    auto loop = scf::ForOp::create(builder, constantIndex(0),
                                   constantIndex(tiling.shape.rowLength),
                                   constantIndex(tiling.schedule.getColumns()));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    RankedTensorType type = tiling.getTileType(reduce.getInput());
    Value neutral = createNeutralTile(builder, builder.getLoc(),
                                      type.clone({1, type.getDimSize(1)}),
                                      reduce.getKind());
    Value column = emitter.getColumn();
    emitter.setColumn(loop.getInductionVar());
    emitter.emitStore(neutral, getMemory(reduce), rowProgram,
                      reduce.getInput());
    emitter.setColumn(column);
  }
}

void RowAccumulators::addInMemory(tile::ReduceRowsOp reduce, Value rowProgram) {
  Value tile = combineTileRows(
      builder, emitter.emitRowMasked(reduce.getInput(), reduce.getKind()),
      reduce.getKind());
  Value memory = getMemory(reduce);
  Value before = tile::LoadOp::create(
      builder, reduce.getLoc(), tile.getType(), memory,
      ValueRange{rowProgram, emitter.getColumn()}, /*misalignment=*/Value(),
      builder.getI64IntegerAttr(tiling.getAlignment(reduce.getInput())),
      /*invariant=*/nullptr, /*offset=*/nullptr, /*length=*/nullptr,
      /*space=*/nullptr, /*band=*/nullptr, /*transposed=*/nullptr);
  Value after = tile::ReduceOp::combine(builder, reduce.getLoc(),
                                        reduce.getKind(), before, tile);
  emitter.emitStore(after, memory, rowProgram, reduce.getInput());
}
