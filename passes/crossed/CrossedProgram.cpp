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

using namespace mlir;
using namespace bastile;

/// Stages of what is copied for a step.
static constexpr int64_t kStages = 2;
/// The warps of each role, and the registers of their threads: those that copy,
/// that multiply, and that add.
static constexpr int64_t kWarps[] = {4, 8, 4}, kRegisters[] = {24, 232, 24};

//===----------------------------------------------------------------------===//
// Which kernels
//===----------------------------------------------------------------------===//

/// The schedule of a program of both kernels, by that of the kernel over rows.
static tile::MatmulAttr getSchedule(tile::MatmulAttr overRows) {
  MatmulFields fields(overRows);
  fields.stages = kStages;
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
      !other.isSpecialized() || schedule.getSteps() != 1 ||
      schedule.getBlocks() != 1 || other.getBlocks() != 1 ||
      schedule.getDotWarps() != kWarps[1] ||
      schedule.getThreads() != other.getThreads() ||
      schedule.getPersistent() != other.getPersistent() ||
      schedule.getPersistent() > 1 || schedule.getTileMatrices() != 1)
    return false;
  const KernelSpace space(rows);
  const MatmulShape shape(rows, space);
  // Each warpgroup multiplies the factor for the columns of 64 rows, which the
  // adding role's four warps have as rows of steps.
  const int64_t size = columnsDot.getSumType().getShape().back();
  if (size != 2 * kRows || size != schedule.getColumns() ||
      schedule.getRows() != 2 * kRows || schedule.getDepth() != kRows ||
      shape.mostShown || getElementBytes(rowsDot.getFactorType()) != 2)
    return false;
  const Extents extents{schedule.getRows(), schedule.getColumns(),
                        schedule.getDepth(), schedule.getRows()};
  MatmulFields fields(getSchedule(schedule));
  return getStagedBytes(fields, shape) + AddedSums::getBytes(extents, 2) +
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
        builder(frame.builder) {}

  tile::ProgramOp build(BlockArgument sums, DictionaryAttr marks,
                        StringRef name);

private:
  void compute(StreamPipeline &pipeline);
  void addSteps(StreamPipeline &pipeline, SharedSums &shared);
  Value emitTurn(StreamPipeline &pipeline, SharedSums &shared);
  void addStep(SharedSums &shared, Value number, Value counter, Value turn);
  void passTurn(SharedSums &shared, ValueRange behind, int64_t pending);

  CrossedKernels crossed;
  ProgramFrame frame;
  ImplicitLocOpBuilder &builder;
  std::optional<AddedSums> added;
};

} // namespace

tile::ProgramOp CrossedBuilder::build(BlockArgument sums, DictionaryAttr marks,
                                      StringRef name) {
  tile::ProgramOp program = frame.create(name);
  const int64_t warps = kWarps[0] + kWarps[1] + kWarps[2];
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
      pipeline.getBytes());
  pipeline.setAddedSums(*added);
  Value number = tile::ProgramIdOp::create(builder);
  frame.countTiles();
  frame.reversed = findPlaceInWaves(frame, number);
  tile::SynchronizeOp::create(builder, /*cluster=*/false);
  auto roles = tile::RolesOp::create(
      builder, ArrayRef<int64_t>(kWarps),
      ArrayRef<int64_t>{pipeline.getCopyThreads(), kWarps[1] * kWarp, 1},
      builder.getDenseI64ArrayAttr(kRegisters),
      /*rolesCount=*/3);
  auto enter = [&](unsigned role) {
    builder.createBlock(&roles.getRoles()[role]);
  };
  auto getZero = [&]() -> Value { return frame.constant(0); };
  enter(0);
  pipeline.copy(getZero(), getZero());
  enter(1);
  compute(pipeline);
  enter(2);
  addSteps(pipeline, shared);
  builder.setInsertionPointAfter(roles);
  tile::ReturnOp::create(builder, ValueRange());
  return program;
}

/// Computes the results of the kernel over rows.
void CrossedBuilder::compute(StreamPipeline &pipeline) {
  pipeline.compute(frame.constant(0), frame.constant(0));
  // No warpgroup reads what the tile has as a whole any more.
  tile::SynchronizeOp::create(builder, /*cluster=*/false);
  BoxStores stores(frame, EpilogueShape::get(frame).columns, /*offset=*/0);
  int64_t firstByte = 0;
  Epilogue(frame, firstByte, [&](unsigned index, Value tile) {
    stores.store(index, tile);
  }).emit();
  BoxStores::wait(builder, /*pending=*/0);
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
        added->await(number);
        addStep(shared, number, counter, turn);
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

/// Begins to add the part of step `number` to memory in its turn, or to store
/// it, if it is the first one.
void CrossedBuilder::addStep(SharedSums &shared, Value number, Value counter,
                             Value turn) {
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
  tile::AwaitCountOp::create(builder, shared.getCounters(), counter, turn);
  tile::StoreBoxOp::create(builder, added->getParts(), slot, shared.getSums(),
                           indices, /*warp=*/false, /*add=*/true);
}

/// Passes the turn of the step behind which the numbers of `behind` are: that
/// of the next step, a counter, and its new count. Behind no step, there is
/// none.
void CrossedBuilder::passTurn(SharedSums &shared, ValueRange behind,
                              int64_t pending) {
  Value isAny = arith::CmpIOp::create(builder, arith::CmpIPredicate::ne,
                                      behind[0], frame.constant(0));
  auto branch = scf::IfOp::create(builder, isAny);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(branch.thenYield());
  tile::ReleaseCountOp::create(builder, shared.getCounters(), behind[1],
                               behind[2], pending);
}

tile::ProgramOp bastile::buildCrossedProgram(const CrossedKernels &crossed,
                                             BlockArgument sums,
                                             DictionaryAttr marks,
                                             StringRef name) {
  return CrossedBuilder(crossed).build(sums, marks, name);
}
