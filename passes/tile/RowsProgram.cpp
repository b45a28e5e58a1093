//===- RowsProgram.cpp - The program of a kernel on rows ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tile/RowsProgram.h"

#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/building/SumTiles.h"
#include "passes/tile/ColumnReductions.h"
#include "passes/tile/ProgramSignature.h"
#include "passes/tile/RowReductions.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

namespace {

/// The groups of rows that a loop goes through: from `first` up to `last`,
/// every `step`-th.
struct RowRange {
  Value first, last, step;
};

/// Builds the loops of a program. What is computed in them is the business of
/// the emitter and of the reductions.
class RowsBuilder {
public:
  RowsBuilder(tile::KernelOp kernel, const KernelSpace &space,
              const KernelShape &shape, const TileVariant &variant)
      : tiling(kernel, space, shape, variant), builder(kernel.getLoc(), kernel),
        columnBlocks(countColumnBlocks()),
        program(createProgram(builder, tiling, columnBlocks)),
        emitter(builder, tiling, program), sums(builder, tiling, emitter) {}

  tile::ProgramOp run();

private:
  int64_t countColumnBlocks() const;
  Value constantIndex(int64_t value) {
    return arith::ConstantIndexOp::create(builder, value);
  }
  scf::IfOp buildGuard();

  // Groups of rows.
  void buildPersistentRows();
  RowRange getRowRange();
  Value buildCombinedRows();
  Value getFirstRow(Value group);
  SmallVector<Value> buildRowLoop(const RowRange &range);
  SmallVector<Value> buildStagedRowLoop(const RowRange &range);
  SmallVector<Value> buildCompensatedRowLoop(const RowRange &range);
  void finishRows(ValueRange totals);

  // One group of rows.
  void buildRows(Value group);
  void buildWholeRows();
  void buildBand(Value number);
  void buildBandSweep(Value first, Value end,
                      ArrayRef<tile::ReduceBandsOp> reductions);
  scf::ForOp buildBandLoop(Value first, Value end, ValueRange initial);
  void buildSweeps();
  void buildSweep(int64_t number);
  void findLastSweeps();
  int64_t getSweep(Value value);

  const KernelTiling tiling;
  ImplicitLocOpBuilder builder;
  const int64_t columnBlocks;
  tile::ProgramOp program;
  TileEmitter emitter;
  RowAccumulators sums;

  /// The number of the program among those down the rows.
  Value rowProgram;
  /// Where rows are combined over some dimensions: the first of the rows that
  /// the program combines to one.
  Value firstCombined;
  /// How many reductions of a row values wait for.
  ReductionDepths depths;
  /// The numbers of the last sweep over the row, counted from 0, and of the
  /// last that computes rows rather than statistics.
  int64_t lastSweep = 0, lastOfRows = 0;
};

} // namespace

/// How many programs share a group of rows: without reductions, tiles are
/// independent along the row too.
int64_t RowsBuilder::countColumnBlocks() const {
  return tiling.shape.numReductions == 0
             ? llvm::divideCeil(tiling.getSpan(), tiling.schedule.getColumns())
             : 1;
}

tile::ProgramOp RowsBuilder::run() {
  scf::IfOp work = buildGuard();
  rowProgram = tile::ProgramIdOp::create(builder);
  Value column = constantIndex(0);
  if (columnBlocks > 1) {
    Value count = constantIndex(columnBlocks);
    column = arith::RemUIOp::create(builder, rowProgram, count);
    column = arith::MulIOp::create(builder, column,
                                   constantIndex(tiling.schedule.getColumns()));
    rowProgram = arith::DivUIOp::create(builder, rowProgram, count);
  }
  emitter.setColumn(column);
  if (tiling.schedule.getPersistent() == 0) {
    buildRows(rowProgram);
    finishRows(sums.getSums());
  } else {
    buildPersistentRows();
  }
  if (work)
    builder.setInsertionPointAfter(work);
  tile::ReturnOp::create(builder, ValueRange());
  return program;
}

/// Where an operand is a factor for scaling in place, builds a branch that a
/// factor of 1 skips, and leaves the builder inside of it.
scf::IfOp RowsBuilder::buildGuard() {
  Value factor;
  SmallVector<Value> inputs, outputs;
  for (unsigned index = 0; index < tiling.getKernel().getNumArguments();
       ++index) {
    if (tiling.getKernel().getArgAttr(index,
                                      tile::TileDialect::kFactorAttrName))
      factor = emitter.getMemory(index);
    if (auto result = tiling.getKernel().getArgAttrOfType<IntegerAttr>(
            index, tile::TileDialect::kInPlaceAttrName)) {
      inputs.push_back(emitter.getMemory(index));
      outputs.push_back(emitter.getResultMemory(result.getInt()));
    }
  }
  if (!factor)
    return {};
  Value isDone = tile::IsDoneOp::create(builder, factor, inputs, outputs);
  Value isLeft = arith::XOrIOp::create(
      builder, isDone, arith::ConstantIntOp::create(builder, 1, /*width=*/1));
  auto branch = scf::IfOp::create(builder, isLeft, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(branch.thenBlock());
  return branch;
}

//===----------------------------------------------------------------------===//
// Groups of rows
//===----------------------------------------------------------------------===//

void RowsBuilder::buildPersistentRows() {
  const RowRange range = getRowRange();
  sums.clearInMemory(rowProgram);
  SmallVector<Value> totals;
  if (sums.areCompensated())
    totals = buildCompensatedRowLoop(range);
  else if (tiling.schedule.getStages() > 1)
    totals = buildStagedRowLoop(range);
  else
    totals = buildRowLoop(range);
  emitter.clear();
  finishRows(totals);
}

/// The groups of rows that this program goes through.
RowRange RowsBuilder::getRowRange() {
  Value step = constantIndex(1), first = rowProgram, rows;
  if (tiling.shape.numCombinedRows > 0) {
    first = constantIndex(0);
    if (!tiling.shape.combinedDimensions.empty())
      rows = buildCombinedRows();
  } else {
    step = tile::ProgramCountOp::create(builder);
    if (columnBlocks > 1)
      step = arith::DivUIOp::create(builder, step, constantIndex(columnBlocks));
  }
  if (!rows)
    rows = emitter.getRowCount();
  Value groups = arith::CeilDivUIOp::create(
      builder, rows, constantIndex(program.getRowsPerProgram()));
  return {first, groups, step};
}

/// Finds the rows that the program combines to one, and returns their number.
/// They are neighbours, as the sizes of the combined dimensions come last.
Value RowsBuilder::buildCombinedRows() {
  Value count = constantIndex(1);
  for (Value size :
       program.getSizes().take_back(tiling.shape.combinedDimensions.size()))
    count = arith::MulIOp::create(builder, count, size);
  firstCombined = arith::MulIOp::create(builder, rowProgram, count);
  emitter.setRowEnd(arith::AddIOp::create(builder, firstCombined, count));
  return count;
}

/// The first row of a group of rows.
Value RowsBuilder::getFirstRow(Value group) {
  Value first = arith::MulIOp::create(builder, group,
                                      constantIndex(tiling.schedule.getRows()));
  return firstCombined ? arith::AddIOp::create(builder, firstCombined, first)
                       : first;
}

/// Builds a loop over the groups of rows of `range`, and returns the sums.
SmallVector<Value> RowsBuilder::buildRowLoop(const RowRange &range) {
  SmallVector<Value> initial = sums.createInitial();
  auto loop =
      scf::ForOp::create(builder, range.first, range.last, range.step, initial);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  sums.set(loop.getRegionIterArgs());
  buildRows(loop.getInductionVar());
  if (!initial.empty())
    scf::YieldOp::create(builder, sums.getSums());
  return llvm::to_vector_of<Value>(loop.getResults());
}

/// Builds a loop over groups of rows like `buildRowLoop`, in which each group
/// is loaded while the one before it is computed on.
SmallVector<Value> RowsBuilder::buildStagedRowLoop(const RowRange &range) {
  SmallVector<Value> initial = sums.createInitial();
  size_t numSums = initial.size();
  Value hasRows = arith::CmpIOp::create(builder, arith::CmpIPredicate::ult,
                                        range.first, range.last);
  auto branch =
      scf::IfOp::create(builder, TypeRange(ValueRange(initial)), hasRows,
                        /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.elseBlock());
  if (numSums > 0)
    scf::YieldOp::create(builder, initial);

  builder.setInsertionPointToStart(branch.thenBlock());
  SmallVector<Value> carried(initial);
  carried.append(emitter.emitLoadsAhead(getFirstRow(range.first)));
  auto loop =
      scf::ForOp::create(builder, range.first, range.last, range.step, carried);
  builder.setInsertionPointToStart(loop.getBody());
  Value group = loop.getInductionVar();
  // After the last group, the same group is loaded again, from the cache, which
  // saves a branch around the loads.
  Value next = arith::AddIOp::create(builder, group, range.step);
  Value hasNext = arith::CmpIOp::create(builder, arith::CmpIPredicate::ult,
                                        next, range.last);
  next = arith::SelectOp::create(builder, hasNext, next, group);
  SmallVector<Value> loads = emitter.emitLoadsAhead(getFirstRow(next));
  sums.set(loop.getRegionIterArgs().take_front(numSums));
  emitter.setLoadsAhead(loop.getRegionIterArgs().drop_front(numSums));
  buildRows(group);
  SmallVector<Value> yielded(sums.getSums());
  yielded.append(loads);
  if (!yielded.empty())
    scf::YieldOp::create(builder, yielded);

  builder.setInsertionPointAfter(loop);
  if (numSums > 0)
    scf::YieldOp::create(builder, loop.getResults().take_front(numSums));
  return llvm::to_vector_of<Value>(branch.getResults());
}

/// Builds a loop that adds up a few groups of rows at a time without
/// compensation, and adds these sums to the total with compensation: so each
/// row costs no more than in a plain sum.
SmallVector<Value> RowsBuilder::buildCompensatedRowLoop(const RowRange &range) {
  constexpr int64_t groupsInBlock = 8;
  SmallVector<Value> initial = sums.createInitial();
  // Behind the sums stand the lost parts of each, which reductions other than
  // sums do not use.
  initial.append(sums.createInitial());
  Value distance =
      arith::MulIOp::create(builder, range.step, constantIndex(groupsInBlock));
  auto loop =
      scf::ForOp::create(builder, range.first, range.last, distance, initial);
  builder.setInsertionPointToStart(loop.getBody());
  Value first = loop.getInductionVar();
  Value next = arith::AddIOp::create(builder, first, distance);
  SmallVector<Value> block = buildRowLoop(
      {first, arith::MinUIOp::create(builder, next, range.last), range.step});
  scf::YieldOp::create(builder,
                       sums.addCompensated(loop.getRegionIterArgs(), block));
  builder.setInsertionPointAfter(loop);
  return sums.finishCompensated(loop.getResults());
}

/// Stores the rows that the program has combined or, where it has combined all
/// rows, computes and stores what follows from them.
void RowsBuilder::finishRows(ValueRange totals) {
  sums.finish(totals, rowProgram);
  if (tiling.shape.numCombinedRows == 0)
    return;
  emitter.setCombinedRow(rowProgram);
  emitter.emitStores();
}

//===----------------------------------------------------------------------===//
// One group of rows
//===----------------------------------------------------------------------===//

void RowsBuilder::buildRows(Value group) {
  if (tiling.shape.band > tiling.schedule.getRows())
    return buildBand(group);
  emitter.setRow(getFirstRow(group));
  if (tiling.holdsRows())
    buildWholeRows();
  else
    buildSweeps();
}

void RowsBuilder::buildWholeRows() {
  // Loads come first: so all of them are under way before the first value is
  // needed, and no load waits behind a reduction's barrier.
  emitter.emitArguments();
  // Values that depend on a combination of all rows are computed after the
  // loop.
  if (tiling.shape.numCombinedRows == 0) {
    for (Operation &op : tiling.getBody().without_terminator())
      if (!isa<tile::ReduceRowsOp, tile::JoinOp, tile::PackBandsOp>(op))
        for (OpResult result : op.getResults())
          emitter.emit(result);
    emitter.emitStores();
  }
  sums.add();
}

//===----------------------------------------------------------------------===//
// Bands that have more rows than a tile
//===----------------------------------------------------------------------===//

/// Builds the sweeps over a band: one for each depth of reductions, and one
/// more to store. After the first sweep, the band comes from a cache.
void RowsBuilder::buildBand(Value number) {
  const int64_t band = tiling.shape.band;
  Value first = arith::MulIOp::create(builder, number, constantIndex(band));
  Value end = arith::AddIOp::create(builder, first, constantIndex(band));
  end = arith::MinUIOp::create(builder, end, emitter.getRowCount());
  ReductionDepths ofBands(
      [](Operation *op) { return isa<tile::ReduceBandsOp>(op); });
  SmallVector<SmallVector<tile::ReduceBandsOp>> sweeps;
  for (auto reduce : tiling.getBody().getOps<tile::ReduceBandsOp>()) {
    size_t sweep = ofBands.getSweep(reduce);
    sweeps.resize(std::max(sweeps.size(), sweep + 1));
    sweeps[sweep].push_back(reduce);
  }
  for (ArrayRef<tile::ReduceBandsOp> reductions : sweeps)
    buildBandSweep(first, end, reductions);
  auto loop = buildBandLoop(first, end, {});
  buildWholeRows();
  builder.setInsertionPointAfter(loop);
  emitter.clearBand();
}

/// Builds the sweep over a band that combines `reductions`.
void RowsBuilder::buildBandSweep(Value first, Value end,
                                 ArrayRef<tile::ReduceBandsOp> reductions) {
  auto initial =
      llvm::map_to_vector(reductions, [&](tile::ReduceBandsOp reduce) {
        return createNeutralTile(builder, builder.getLoc(),
                                 tiling.getTileType(reduce), reduce.getKind());
      });
  auto loop = buildBandLoop(first, end, initial);
  SmallVector<Value> combined;
  for (auto [reduction, partial] :
       llvm::zip_equal(reductions, loop.getRegionIterArgs())) {
    tile::ReduceBandsOp reduce = reduction;
    Value tile = emitter.emitRowMasked(reduce.getInput(), reduce.getKind());
    combined.push_back(tile::ReduceOp::combine(
        builder, reduce.getLoc(), reduce.getKind(), partial, tile));
  }
  scf::YieldOp::create(builder, combined);
  builder.setInsertionPointAfter(loop);
  for (auto [reduction, partial] :
       llvm::zip_equal(reductions, loop.getResults())) {
    tile::ReduceBandsOp reduce = reduction;
    emitter.mapInBand(reduce.getResult(),
                      combineBand(builder, tiling, reduce, partial));
  }
}

/// Builds a loop over the tiles of a band and leaves the builder inside of it.
scf::ForOp RowsBuilder::buildBandLoop(Value first, Value end,
                                      ValueRange initial) {
  auto loop = scf::ForOp::create(
      builder, first, end, constantIndex(tiling.schedule.getRows()), initial);
  emitter.clear();
  builder.setInsertionPointToStart(loop.getBody());
  emitter.setRow(loop.getInductionVar());
  return loop;
}

//===----------------------------------------------------------------------===//
// Rows that a tile does not hold
//===----------------------------------------------------------------------===//

/// Finds the last sweep that reads rows, and that of statistics, which may wait
/// for one more. A sum that follows a maximum needs no sweep after the
/// maximum's.
void RowsBuilder::findLastSweeps() {
  if (tiling.isFolded())
    depths = tiling.shape.following.getDepths();
  for (Operation &op : tiling.getBody())
    for (Value result : op.getResults()) {
      const int64_t depth = depths.get(result);
      lastSweep = std::max(lastSweep, depth);
      if (tiling.hasColumns(result))
        lastOfRows = std::max(lastOfRows, depth);
    }
}

/// Builds the sweeps over a row, one for each depth of reductions: sweep d
/// computes what waits for d reductions, and computes again from memory what it
/// shares with earlier sweeps.
void RowsBuilder::buildSweeps() {
  findLastSweeps();
  for (int64_t number = 0; number <= lastSweep; ++number)
    buildSweep(number);
  sums.add();
}

/// The sweep that stores `value`: the first that can, or the last where the
/// rows may take the memory of an operand that later sweeps read.
int64_t RowsBuilder::getSweep(Value value) {
  if (program.getInPlace() && tiling.hasColumns(value))
    return lastOfRows;
  return depths.get(value);
}

void RowsBuilder::buildSweep(int64_t number) {
  SmallVector<tile::ReduceOp> reduced;
  for (auto reduce : tiling.getBody().getOps<tile::ReduceOp>())
    if (isRowReduction(reduce) && depths.getSweep(reduce) == number)
      reduced.push_back(reduce);
  ColumnReductions reductions(builder, tiling, emitter, reduced);
  SmallVector<tile::ReduceRowsOp> inMemory;
  for (tile::ReduceRowsOp reduce : sums.getInMemory())
    if (depths.get(reduce.getInput()) == number)
      inMemory.push_back(reduce);
  SmallVector<unsigned> rowResults, statistics;
  for (auto [index, value] : llvm::enumerate(tiling.getReturn()->getOperands()))
    if (!value.getDefiningOp<tile::ReduceRowsOp>() && getSweep(value) == number)
      (tiling.hasColumns(value) ? rowResults : statistics).push_back(index);
  for (unsigned index : statistics)
    emitter.emitStore(index);
  if (reductions.empty() && rowResults.empty() && inMemory.empty())
    return;

  // Each thread combines what it loads; the threads' results are combined once,
  // after the loop.
  SmallVector<Value> initial = reductions.createInitial();
  Value firstColumn = emitter.getColumn();
  auto loop =
      scf::ForOp::create(builder, firstColumn, constantIndex(tiling.getSpan()),
                         constantIndex(tiling.schedule.getColumns()), initial);
  emitter.enterColumnLoop(loop, loop.getInductionVar());
  SmallVector<Value> combined = reductions.combine(loop.getRegionIterArgs());
  // The blocks exchange results before the first store, which may overwrite
  // operands that other blocks still need.
  for (unsigned index : rowResults)
    emitter.emitResult(index);
  for (tile::ReduceRowsOp reduce : inMemory)
    emitter.emit(reduce.getInput());
  for (unsigned index : rowResults)
    emitter.emitStore(index);
  for (tile::ReduceRowsOp reduce : inMemory)
    sums.addInMemory(reduce, rowProgram);
  if (!combined.empty())
    scf::YieldOp::create(builder, combined);
  emitter.leaveColumnLoop(firstColumn);
  reductions.finish(loop.getResults());
}

tile::ProgramOp bastile::buildRowsProgram(tile::KernelOp kernel,
                                          const KernelSpace &space,
                                          const KernelShape &shape,
                                          const TileVariant &variant) {
  return RowsBuilder(kernel, space, shape, variant).run();
}
