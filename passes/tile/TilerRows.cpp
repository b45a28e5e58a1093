//===- TilerRows.cpp - Combining rows in a program ------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tile/Tiler.h"

#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace bastile;

bool Tiler::isInRegisters(tile::ReduceRowsOp reduce) const {
  return !isRow(reduce.getInput()) || shape.numReductions == 0 ||
         schedule.getColumns() >= shape.rowLength;
}

/// The tile of `value`, whose rows beyond the last row of the operand are
/// neutral to `kind`.
Value Tiler::emitRowMasked(Value value, tile::ReduceKind kind) {
  Value tile = emit(value);
  if (schedule.getRows() == 1)
    return tile;
  return tile::MaskRowsOp::create(
      builder, value.getLoc(), tile, row,
      endCombined ? endCombined : getRowCount(),
      tile::ReduceOp::getNeutral(kind, getElementTypeOrSelf(tile)));
}

/// Whether the sum is compensated: what each addition rounds off is added up as
/// well. A program of the host goes through so many rows that a plain running
/// sum would lose digits.
bool Tiler::isCompensated(tile::ReduceRowsOp reduce) const {
  return variant.compensated && reduce.getKind() == tile::ReduceKind::Add &&
         isInRegisters(reduce);
}

/// Creates the accumulators in registers, as they are before the first row.
SmallVector<Value> Tiler::createAccumulators() {
  SmallVector<Value> initial;
  for (tile::ReduceRowsOp reduce : rowReductions)
    if (isInRegisters(reduce))
      initial.push_back(getNeutralTile(getTileType(reduce.getInput().getType()),
                                       reduce.getKind()));
  return initial;
}

/// Loads what the kernel reads of a group of rows, and nothing else.
SmallVector<Value> Tiler::emitRowLoads(Value group) {
  SmallVector<Value> loads;
  rowScope.clear();
  columnScope.clear();
  setRow(getFirstRow(group));
  llvm::SaveAndRestore saved(collected, &loads);
  emitArguments();
  rowScope.clear();
  columnScope.clear();
  return loads;
}

/// Builds a loop over groups of rows like `buildLoopOverRows`, in which each
/// group is loaded while the one before it is computed on.
SmallVector<Value> Tiler::buildStagedLoop(Value first, Value last, Value step) {
  SmallVector<Value> initial = createAccumulators();
  size_t numSums = initial.size();
  Value hasRows =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, first, last);
  auto branch =
      scf::IfOp::create(builder, TypeRange(ValueRange(initial)), hasRows,
                        /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.elseBlock());
  if (numSums > 0)
    scf::YieldOp::create(builder, initial);

  builder.setInsertionPointToStart(branch.thenBlock());
  SmallVector<Value> carried(initial);
  carried.append(emitRowLoads(first));
  auto loop = scf::ForOp::create(builder, first, last, step, carried);
  builder.setInsertionPointToStart(loop.getBody());
  Value group = loop.getInductionVar();
  // After the last group, the same group is loaded again, from the cache, which
  // saves a branch around the loads.
  Value next = arith::AddIOp::create(builder, group, step);
  Value hasNext =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, next, last);
  next = arith::SelectOp::create(builder, hasNext, next, group);
  SmallVector<Value> loads = emitRowLoads(next);
  accumulators = loop.getRegionIterArgs().take_front(numSums);
  ahead = loop.getRegionIterArgs().drop_front(numSums);
  buildRows(group);
  SmallVector<Value> yielded(accumulated);
  yielded.append(loads);
  if (!yielded.empty())
    scf::YieldOp::create(builder, yielded);

  builder.setInsertionPointAfter(loop);
  if (numSums > 0)
    scf::YieldOp::create(builder, loop.getResults().take_front(numSums));
  return llvm::to_vector_of<Value>(branch.getResults());
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

/// Builds a loop that adds up a few groups of rows at a time without
/// compensation, and adds these sums to the total with compensation: so each
/// row costs no more than in a plain sum.
SmallVector<Value> Tiler::buildBlocksOfRows(Value first, Value last,
                                            Value step) {
  constexpr int64_t groupsInBlock = 8;
  SmallVector<Value> initial = createAccumulators();
  // Behind the sums stand the lost parts of each, which reductions other than
  // sums do not use.
  size_t count = initial.size();
  initial.append(createAccumulators());
  Value distance =
      arith::MulIOp::create(builder, step, constantIndex(groupsInBlock));
  auto loop = scf::ForOp::create(builder, first, last, distance, initial);
  builder.setInsertionPointToStart(loop.getBody());
  Value next = arith::AddIOp::create(builder, loop.getInductionVar(), distance);
  SmallVector<Value> block =
      buildLoopOverRows(loop.getInductionVar(),
                        arith::MinUIOp::create(builder, next, last), step);
  ValueRange before = loop.getRegionIterArgs();
  SmallVector<Value> sums, lost;
  for (tile::ReduceRowsOp reduce : rowReductions) {
    if (!isInRegisters(reduce))
      continue;
    size_t index = sums.size();
    Location loc = reduce.getLoc();
    sums.push_back(tile::ReduceOp::combine(builder, loc, reduce.getKind(),
                                           before[index], block[index]));
    lost.push_back(before[count + index]);
    if (isCompensated(reduce))
      lost.back() =
          arith::AddFOp::create(builder, loc, lost.back(),
                                createLostPart(builder, loc, before[index],
                                               block[index], sums.back()));
  }
  sums.append(lost);
  scf::YieldOp::create(builder, sums);

  builder.setInsertionPointAfter(loop);
  SmallVector<Value> results;
  for (tile::ReduceRowsOp reduce : rowReductions)
    if (isInRegisters(reduce)) {
      size_t index = results.size();
      Value sum = loop.getResult(index);
      results.push_back(
          isCompensated(reduce)
              ? addLostPart(reduce.getLoc(), sum, loop.getResult(count + index))
              : sum);
    }
  return results;
}

/// Adds the part that rounding took from `sum`. The lost part of an infinite
/// sum is NaN and is left out.
Value Tiler::addLostPart(Location loc, Value sum, Value lost) {
  Value isNumber = arith::CmpFOp::create(builder, loc,
                                         arith::CmpFPredicate::ORD, lost, lost);
  Value whole = arith::AddFOp::create(builder, loc, sum, lost);
  return arith::SelectOp::create(builder, loc, isNumber, whole, sum);
}

/// Adds the current rows to the accumulators in registers. A program of a
/// single group of rows has no accumulators yet and starts them.
void Tiler::accumulate() {
  accumulated.clear();
  for (tile::ReduceRowsOp reduce : rowReductions) {
    if (!isInRegisters(reduce))
      continue;
    Value tile = emitRowMasked(reduce.getInput(), reduce.getKind());
    if (!accumulators.empty())
      tile = tile::ReduceOp::combine(builder, reduce.getLoc(), reduce.getKind(),
                                     accumulators[accumulated.size()], tile);
    accumulated.push_back(tile);
  }
}

Value Tiler::combineTileRows(Value tile, tile::ReduceKind kind) {
  auto type = cast<RankedTensorType>(tile.getType());
  if (type.getDimSize(0) == 1)
    return tile;
  return tile::ReduceRowsOp::create(builder, tile.getLoc(),
                                    type.clone({1, type.getDimSize(1)}), kind,
                                    tile, /*partial=*/false);
}

Value Tiler::getAccumulatorMemory(tile::ReduceRowsOp reduce) {
  return getResultMemory(reduce->getUses().begin()->getOperandNumber());
}

/// Sets this program's row of the partial results to the neutral value. No
/// barrier is needed, because each thread later reads only what it wrote
/// itself.
void Tiler::clearInMemory(tile::ReduceRowsOp reduce) {
  auto loop = scf::ForOp::create(builder, constantIndex(0),
                                 constantIndex(shape.rowLength),
                                 constantIndex(schedule.getColumns()));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  RankedTensorType type = getTileType(reduce.getInput().getType());
  Value neutral =
      getNeutralTile(type.clone({1, type.getDimSize(1)}), reduce.getKind());
  llvm::SaveAndRestore saved(column, Value(loop.getInductionVar()));
  emitStore(neutral, getAccumulatorMemory(reduce), rowProgram,
            reduce.getInput().getType());
}

void Tiler::accumulateInMemory(tile::ReduceRowsOp reduce) {
  RankedTensorType type = reduce.getInput().getType();
  Value tile = combineTileRows(
      emitRowMasked(reduce.getInput(), reduce.getKind()), reduce.getKind());
  Value memory = getAccumulatorMemory(reduce);
  Value before = tile::LoadOp::create(
      builder, reduce.getLoc(), tile.getType(), memory,
      ValueRange{rowProgram, column}, /*misalignment=*/Value(),
      builder.getI64IntegerAttr(getAlignment(type)), /*invariant=*/nullptr,
      /*offset=*/nullptr, /*length=*/nullptr, /*space=*/nullptr,
      /*band=*/nullptr);
  Value after = tile::ReduceOp::combine(builder, reduce.getLoc(),
                                        reduce.getKind(), before, tile);
  emitStore(after, memory, rowProgram, type);
}

/// Stores the rows that the program has combined or, where it has combined all
/// rows, computes and stores what follows from them.
void Tiler::finishAccumulators(ValueRange sums) {
  for (tile::ReduceRowsOp reduce : rowReductions) {
    if (!isInRegisters(reduce))
      continue;
    Value tile = combineTileRows(sums.front(), reduce.getKind());
    sums = sums.drop_front();
    if (reduce.getPartial())
      emitStore(tile, getAccumulatorMemory(reduce), rowProgram,
                reduce.getInput().getType());
    else
      (isRow(reduce.getResult()) ? columnScope : rowScope)
          .map(reduce.getResult(), tile);
  }
  if (shape.numCombinedRows == 0)
    return;
  row = rowProgram;
  for (unsigned index = 0; index < getReturn()->getNumOperands(); ++index)
    emitStore(index);
}

//===----------------------------------------------------------------------===//
// Bands
//===----------------------------------------------------------------------===//

/// Repeats `tile`, of one row, for all rows of a tile of `type`.
Value Tiler::repeatForRows(Value tile, RankedTensorType type) {
  if (tile.getType() == getTileType(type))
    return tile;
  return tile::BroadcastOp::create(builder, tile.getLoc(), getTileType(type),
                                   tile, Value());
}

/// Combines the rows of a tile that holds a band.
Value Tiler::emitBandReduction(tile::ReduceBandsOp reduce) {
  Value rows = emitRowMasked(reduce.getInput(), reduce.getKind());
  return repeatForRows(combineTileRows(rows, reduce.getKind()),
                       reduce.getType());
}

/// How many reductions of bands `value` waits for.
int64_t Tiler::getBandDepth(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return 0;
  if (auto it = depths.find(value); it != depths.end())
    return it->second;
  int64_t depth = 0;
  for (Value operand : getValueOperands(op))
    depth = std::max(depth, getBandDepth(operand));
  depth += isa<tile::ReduceBandsOp>(op);
  depths[value] = depth;
  return depth;
}

/// Builds the sweeps over a band that has more rows than the tile: one for each
/// depth of reductions, and one more to store. After the first sweep, the band
/// comes from a cache.
void Tiler::buildBand(Value number) {
  Value first =
      arith::MulIOp::create(builder, number, constantIndex(shape.band));
  Value end = arith::AddIOp::create(builder, first, constantIndex(shape.band));
  end = arith::MinUIOp::create(builder, end, getRowCount());
  SmallVector<SmallVector<tile::ReduceBandsOp>> sweeps;
  for (auto reduce : kernel.getBody().front().getOps<tile::ReduceBandsOp>()) {
    size_t depth = getBandDepth(reduce.getInput());
    sweeps.resize(std::max(sweeps.size(), depth + 1));
    sweeps[depth].push_back(reduce);
  }
  for (ArrayRef<tile::ReduceBandsOp> reductions : sweeps) {
    SmallVector<Value> initial;
    for (tile::ReduceBandsOp reduce : reductions)
      initial.push_back(
          getNeutralTile(getTileType(reduce.getType()), reduce.getKind()));
    auto loop = buildBandLoop(first, end, initial);
    SmallVector<Value> combined;
    for (auto [reduction, partial] :
         llvm::zip_equal(reductions, loop.getRegionIterArgs())) {
      tile::ReduceBandsOp reduce = reduction;
      Value tile = emitRowMasked(reduce.getInput(), reduce.getKind());
      combined.push_back(tile::ReduceOp::combine(
          builder, reduce.getLoc(), reduce.getKind(), partial, tile));
    }
    scf::YieldOp::create(builder, combined);
    builder.setInsertionPointAfter(loop);
    for (auto [reduction, partial] :
         llvm::zip_equal(reductions, loop.getResults())) {
      tile::ReduceBandsOp reduce = reduction;
      bandScope.map(reduce.getResult(),
                    repeatForRows(combineTileRows(partial, reduce.getKind()),
                                  reduce.getType()));
    }
  }
  auto loop = buildBandLoop(first, end, {});
  buildWholeRow();
  builder.setInsertionPointAfter(loop);
  bandScope.clear();
}

/// Builds a loop over the tiles of a band and leaves the builder inside of it.
scf::ForOp Tiler::buildBandLoop(Value first, Value end, ValueRange initial) {
  auto loop = scf::ForOp::create(builder, first, end,
                                 constantIndex(schedule.getRows()), initial);
  rowScope.clear();
  columnScope.clear();
  builder.setInsertionPointToStart(loop.getBody());
  setRow(loop.getInductionVar());
  return loop;
}
