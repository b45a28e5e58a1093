//===- CrossedProgram.cpp - One program of two kernels --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A program has a tile of rows of the kernel over rows, and goes along k. It
// computes the factor of each step once, where two kernels would compute it
// twice: of ten products of attention's gradients, that leaves five of seven.
//
// What the kernel over columns sums, the programs of a matrix add to memory, a
// role of its own in each of them. They take turns at each step, so that a sum
// has the same bits in every run (Waves.h). Another kernel computes what
// follows the sums (SplitCrossed.cpp). A program waits only for programs with
// smaller numbers.
//
//===----------------------------------------------------------------------===//

#include "passes/crossed/CrossedProgram.h"

#include "dialect/ElementBytes.h"
#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/crossed/SharedSums.h"
#include "passes/crossed/Waves.h"
#include "passes/products/Epilogue.h"
#include "passes/roles/BoxStores.h"
#include "passes/roles/StreamPipeline.h"
#include "passes/schedule/MatmulRules.h"

#include <numeric>

using namespace mlir;
using namespace bastile;

namespace {

/// What a program has besides the schedule of the kernel over rows.
struct CrossedPlan {
  /// The plan for parts of `columns` columns.
  static CrossedPlan get(int64_t columns);

  /// Stages of what is copied for a step.
  int64_t stages;
  AddedSums::Slots slots;
  /// The warps of each role, and the registers of their threads, in the order
  /// of `Role`.
  SmallVector<int64_t, 4> warps, registers;
};

/// The roles of a program. The last one is not in all of them.
enum Role : unsigned { Copy, Add, Compute, Multiply };

} // namespace

CrossedPlan CrossedPlan::get(int64_t columns) {
  // Registers hold two sums of 128 columns beside a step and its part. Beside
  // sums of 64, they hold the factors of a step while the next one is computed,
  // and four more warps multiply these.
  if (columns == 2 * kRows)
    return {/*stages=*/2,
            {/*factors=*/2, /*parts=*/2, /*hasMultiplier=*/false},
            {2, 2, 8},
            {24, 24, 240}};
  return {/*stages=*/3,
          {/*factors=*/3, /*parts=*/3, /*hasMultiplier=*/true},
          {2, 2, 8, 4},
          {24, 24, 208, 72}};
}

//===----------------------------------------------------------------------===//
// Which kernels
//===----------------------------------------------------------------------===//

/// The schedule of a program of both kernels, by that of the kernel over rows.
static tile::MatmulAttr getSchedule(tile::MatmulAttr overRows) {
  MatmulFields fields(overRows);
  fields.stages = CrossedPlan::get(overRows.getColumns()).stages;
  return fields.getAttr(overRows.getContext());
}

/// Whether steps of later rows begin no earlier, and steps of all rows end with
/// the last one.
static bool endsWithAll(const CrossedKernels &crossed,
                        const KernelSpace &space) {
  Block &body = tile::KernelOp(crossed.overRows).getBody().front();
  return llvm::all_of(findVisited(body, space).conditions,
                      [](const MaskCondition &condition) {
                        return condition.row == -1 && condition.column == 1 &&
                               !hasNumbersOfRows(condition);
                      });
}

bool bastile::fitsCrossedProgram(const CrossedKernels &crossed,
                                 tile::MatmulAttr schedule,
                                 tile::MatmulAttr other, const Target &target) {
  tile::KernelOp rows = crossed.overRows;
  tile::DotOp rowsDot = crossed.rowsDot, columnsDot = crossed.columnsDot;
  if (!schedule || !other || !schedule.isSpecialized() ||
      !other.isSpecialized() || schedule.getBlocks() != 1 ||
      other.getBlocks() != 1 || schedule.getThreads() != other.getThreads() ||
      schedule.getPersistent() != other.getPersistent() ||
      schedule.getPersistent() > 1 || schedule.getTileMatrices() != 1)
    return false;
  const CrossedPlan plan = CrossedPlan::get(schedule.getColumns());
  const KernelSpace space(rows);
  const MatmulShape shape(rows, space);
  // A warpgroup's product has 64 rows. Those of two are the columns of a part,
  // whose transpose they multiply; those of a multiplier the rows of a step.
  const int64_t size = columnsDot.getSumType().getShape().back();
  if ((size != kRows && size != 2 * kRows) || size != schedule.getColumns() ||
      schedule.getRows() != 2 * kRows || schedule.getDepth() != kRows ||
      schedule.getDotWarps() != plan.warps[Compute] ||
      (schedule.getSteps() == 1) == plan.slots.hasMultiplier ||
      shape.mostShown || getElementBytes(rowsDot.getFactorType()) != 2)
    return false;
  const Extents extents{schedule.getRows(), schedule.getColumns(),
                        schedule.getDepth(), schedule.getRows()};
  MatmulFields fields(getSchedule(schedule));
  return getStagedBytes(fields, shape) +
                 plan.slots.getBytes(extents, /*elementBytes=*/2) +
                 getFirstStagedByte(fields, shape) <=
             target.maxSharedBytesPerBlock &&
         endsWithAll(crossed, space);
}

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

namespace {

class CrossedBuilder {
public:
  explicit CrossedBuilder(const CrossedKernels &crossed)
      : crossed(crossed),
        frame(crossed.overRows,
              getSchedule(cast<tile::MatmulAttr>(
                  *tile::KernelOp(crossed.overRows).getSchedule())),
              /*onHost=*/false),
        builder(frame.builder),
        plan(CrossedPlan::get(frame.schedule.getColumns())) {}

  tile::ProgramOp build(BlockArgument sums, DictionaryAttr marks,
                        StringRef name);

private:
  void compute(StreamPipeline &pipeline);
  void multiplySteps(StreamPipeline &pipeline);
  void buildUnlessZero(Value number, function_ref<void()> body);
  void leaveStepBefore(Value number, Value part);
  void addSteps(StreamPipeline &pipeline, SharedSums &shared);
  Value emitTurn(StreamPipeline &pipeline, SharedSums &shared);
  void awaitTurn(SharedSums &shared, Value counter, Value turn);
  void addStep(SharedSums &shared, Value number, Value turn);
  void passTurn(SharedSums &shared, ValueRange behind, int64_t pending);

  CrossedKernels crossed;
  ProgramFrame frame;
  ImplicitLocOpBuilder &builder;
  const CrossedPlan plan;
  std::optional<AddedSums> added;
};

} // namespace

tile::ProgramOp CrossedBuilder::build(BlockArgument sums, DictionaryAttr marks,
                                      StringRef name) {
  tile::ProgramOp program = frame.create(name);
  const int64_t warps = std::accumulate(plan.warps.begin(), plan.warps.end(),
                                        static_cast<int64_t>(0));
  program.setScheduleAttr(tile::LaunchAttr::get(
      builder.getContext(), warps * kWarp, /*cluster=*/0, /*persistent=*/0));
  // There are no boxes of tensors without rows: the programs of each kernel
  // store sums of nothing.
  program.setLeastAttr(builder.getDictionaryAttr(
      builder.getNamedAttr("m", builder.getI64IntegerAttr(1))));
  SharedSums shared(frame, sums, marks);
  StreamPipeline pipeline(frame);
  added.emplace(
      frame, crossed.rowsDot,
      frame.operands.findFactor(crossed.innerDot,
                                frame.space.getRowFactor(crossed.innerDot)),
      plan.slots, pipeline.getBytes());
  pipeline.setAddedSums(*added);
  Value number = tile::ProgramIdOp::create(builder);
  frame.countTiles();
  frame.reversed = findPlaceInWaves(frame, number);
  tile::SynchronizeOp::create(builder, /*cluster=*/false);
  SmallVector<int64_t, 4> threads{pipeline.getCopyThreads(), 1,
                                  plan.warps[Compute] * kWarp};
  if (added->hasMultiplier())
    threads.push_back(plan.warps[Multiply] * kWarp);
  auto roles =
      tile::RolesOp::create(builder, plan.warps, threads,
                            builder.getDenseI64ArrayAttr(plan.registers),
                            static_cast<unsigned>(plan.warps.size()));
  auto enter = [&](Role role) { builder.createBlock(&roles.getRoles()[role]); };
  enter(Copy);
  pipeline.copy(frame.constant(0), frame.constant(0));
  enter(Compute);
  compute(pipeline);
  enter(Add);
  addSteps(pipeline, shared);
  if (added->hasMultiplier()) {
    enter(Multiply);
    multiplySteps(pipeline);
  }
  builder.setInsertionPointAfter(roles);
  tile::ReturnOp::create(builder, ValueRange());
  return program;
}

/// Computes the results of the kernel over rows.
void CrossedBuilder::compute(StreamPipeline &pipeline) {
  Value end = pipeline.compute(frame.constant(0), frame.constant(0));
  // Nobody reads what the tile has as a whole any more.
  if (added->hasMultiplier())
    added->awaitMultiplier(end);
  tile::SynchronizeOp::create(builder, /*cluster=*/false);
  BoxStores stores(frame, EpilogueShape::get(frame).columns, /*offset=*/0);
  int64_t firstByte = 0;
  Epilogue(frame, firstByte, [&](unsigned index, Value tile) {
    stores.store(index, tile);
  }).emit();
  BoxStores::wait(builder, /*pending=*/0);
}

/// Multiplies the factors of all steps. A step's product begins ahead of the
/// part of the step before, which it need not wait for.
void CrossedBuilder::multiplySteps(StreamPipeline &pipeline) {
  Value tile = pipeline.awaitWhole(added->getWhole());
  Value zeros = arith::ConstantOp::create(
      builder, builder.getZeroAttr(added->getPartType()));
  const SmallVector<Value> last = pipeline.buildOverTile(
      {frame.constant(0), zeros}, [&](ValueRange before) -> SmallVector<Value> {
        Value number = before[0];
        Value product = added->multiply(tile, number);
        leaveStepBefore(number, before[1]);
        Value part = waitForSum(builder, product);
        added->releaseFactor(number);
        return {arith::AddIOp::create(builder, number, frame.constant(1)),
                part};
      });
  leaveStepBefore(last[0], last[1]);
}

/// Builds `body` where `number` is not 0.
void CrossedBuilder::buildUnlessZero(Value number, function_ref<void()> body) {
  Value isOther = arith::CmpIOp::create(builder, arith::CmpIPredicate::ne,
                                        number, frame.constant(0));
  auto branch = scf::IfOp::create(builder, isOther);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(branch.thenYield());
  body();
}

/// Leaves `part` of the step ahead of `number`, if there is one.
void CrossedBuilder::leaveStepBefore(Value number, Value part) {
  buildUnlessZero(number, [&] {
    added->leave(part,
                 arith::SubIOp::create(builder, number, frame.constant(1)));
  });
}

/// Adds the parts of all steps to memory. A turn ends when what has been added
/// is in memory, which takes about as long as a step: a program passes the turn
/// of a step once it has begun to add the part of the next one.
void CrossedBuilder::addSteps(StreamPipeline &pipeline, SharedSums &shared) {
  Value zero = frame.constant(0), one = frame.constant(1);
  const SmallVector<Value> last = pipeline.buildOverTile(
      {zero, zero, zero}, [&](ValueRange before) -> SmallVector<Value> {
        Value number = before.front(), turn = emitTurn(pipeline, shared);
        Value counter = shared.getCounter();
        awaitTurn(shared, counter, turn);
        added->await(number);
        addStep(shared, number, turn);
        passTurn(shared, before, /*pending=*/1);
        tile::WaitStoresOp::create(builder, /*pending=*/0, /*warp=*/false);
        added->release(number);
        return {arith::AddIOp::create(builder, number, one), counter,
                arith::AddIOp::create(builder, turn, one)};
      });
  passTurn(shared, last, /*pending=*/0);
}

/// Which turn the program has at the step where the emitter is.
Value CrossedBuilder::emitTurn(StreamPipeline &pipeline, SharedSums &shared) {
  Value tile = arith::DivUIOp::create(builder, frame.emitter.row,
                                      frame.constant(frame.extents.rows));
  return arith::SelectOp::create(
      builder, frame.reversed, tile,
      arith::SubIOp::create(builder, shared.emitLastTile(pipeline), tile));
}

/// Waits for turn `turn` of a step. The first one of all need not.
void CrossedBuilder::awaitTurn(SharedSums &shared, Value counter, Value turn) {
  buildUnlessZero(turn, [&] {
    tile::AwaitCountOp::create(builder, shared.getCounters(), counter, turn);
  });
}

/// Begins to add the part of step `number` to memory, or to store it, if it is
/// the first one.
void CrossedBuilder::addStep(SharedSums &shared, Value number, Value turn) {
  Value slot = added->getSlot(number);
  const SmallVector<Value> indices = shared.getIndices();
  Value isFirst = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, turn,
                                        frame.constant(0));
  auto branch = scf::IfOp::create(builder, isFirst, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(branch.thenYield());
  tile::StoreBoxOp::create(builder, added->getParts(), slot, shared.getSums(),
                           indices);
  builder.setInsertionPoint(branch.elseYield());
  tile::StoreBoxOp::create(builder, added->getParts(), slot, shared.getSums(),
                           indices, /*warp=*/false, /*add=*/true);
}

/// Passes the turn of the step behind which the numbers of `behind` are: that
/// of the next step, a counter, and its new count. Behind no step, there is
/// none.
void CrossedBuilder::passTurn(SharedSums &shared, ValueRange behind,
                              int64_t pending) {
  buildUnlessZero(behind[0], [&] {
    tile::ReleaseCountOp::create(builder, shared.getCounters(), behind[1],
                                 behind[2], pending);
  });
}

tile::ProgramOp bastile::buildCrossedProgram(const CrossedKernels &crossed,
                                             BlockArgument sums,
                                             DictionaryAttr marks,
                                             StringRef name) {
  return CrossedBuilder(crossed).build(sums, marks, name);
}
