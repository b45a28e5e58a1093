//===- SpecializedProgram.cpp - A program whose warps have roles ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One thread copies boxes of the factors ahead, and warpgroups multiply them,
// each with the sums of 64 rows in registers. A block computes one tile after
// the other: the copies for the next tile run ahead while the last one is
// stored. The blocks of a cluster have rows of their own and the columns in
// common: each copies a part of the right factors, to all of them. Or, where
// there are few tiles, they have a tile in common and each a part of k, and
// complete some of the tile's columns each.
//
//===----------------------------------------------------------------------===//

#include "passes/roles/SpecializedProgram.h"

#include "dialect/Warps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/products/Epilogue.h"
#include "passes/roles/BoxStages.h"
#include "passes/roles/BoxStores.h"
#include "passes/roles/FactorPipeline.h"
#include "passes/roles/SentSums.h"
#include "passes/roles/StreamPipeline.h"
#include "passes/roles/TileNumbers.h"

using namespace mlir;
using namespace bastile;

/// The registers of each thread that copies, and of each that multiplies: a
/// multiprocessor has as many for all of them.
static ArrayRef<int64_t> getRegisters(tile::MatmulAttr schedule) {
  static constexpr int64_t few[] = {40, 232}, many[] = {32, 160},
                           ofTwo[] = {40, 216}, ofThree[] = {32, 128};
  constexpr int64_t mostWarps = 8;
  if (schedule.getPersistent() > 1)
    return schedule.getPersistent() > 2 ? ArrayRef(ofThree) : ArrayRef(ofTwo);
  return schedule.getDotWarps() > mostWarps ? ArrayRef(many) : ArrayRef(few);
}

namespace {

class SpecializedBuilder {
public:
  SpecializedBuilder(tile::KernelOp kernel, tile::MatmulAttr schedule,
                     int64_t mostRows)
      : frame(kernel, schedule, /*onHost=*/false, mostRows),
        builder(frame.builder), epilogue(EpilogueShape::get(frame)) {}

  tile::ProgramOp build(StringRef name);

private:
  void makeBarriers();
  void awaitStored(Value turn);
  void buildOverTiles(
      llvm::function_ref<Value(Value place, Value at, Value turn)> body);
  void putNumbers(Value place, Value turn);
  void getNumbers(Value turn);
  Value computeTile(Value place, Value at, Value turn);
  /// Lets the block's threads meet, with those of blocks that share factors.
  void synchronize() {
    tile::SynchronizeOp::create(builder,
                                /*cluster=*/frame.schedule.getRowBlocks() > 1);
  }

  ProgramFrame frame;
  ImplicitLocOpBuilder &builder;
  const EpilogueShape epilogue;
  std::unique_ptr<TilePipeline> pipeline;
  std::optional<TileNumbers> numbers;
  /// The number of the block in its cluster; null without one.
  Value rank;
  Value first, programs, tiles, blockRow;
  /// Where sums wait in the stages' memory: a barrier whose phases are tiles
  /// that all blocks of the cluster have stored. Null elsewhere.
  Value stored;
  /// Where blocks have parts of the sums.
  std::optional<SentSums> split;
  /// The bytes that stages and sums take of shared memory.
  int64_t usedBytes = 0;
};

} // namespace

/// Makes the barriers of tiles whose sums wait in the stages' memory, or are
/// those of parts of k.
void SpecializedBuilder::makeBarriers() {
  usedBytes = pipeline->getBytes();
  if (!epilogue.isLoop)
    return;
  constexpr int64_t warpgroup = 4, floatBytes = 4;
  const tile::MatmulAttr schedule = frame.schedule;
  const int64_t warpgroups = schedule.getDotWarps() / warpgroup;
  if (schedule.getSplitBlocks() > 1) {
    split.emplace(frame, rank, warpgroups, epilogue.columns, usedBytes);
    usedBytes += split->getBytes();
    return;
  }
  stored = tile::MakeBarriersOp::create(
      builder, tile::BarriersType::get(builder.getContext(), 1),
      warpgroups * schedule.getBlocks());
  const int64_t keptBytes = frame.extents.rows * frame.extents.columns *
                            floatBytes *
                            static_cast<int64_t>(frame.space.getDots().size());
  usedBytes = std::max(usedBytes, keptBytes);
}

/// Waits until all blocks have stored the tile before that of `turn`.
void SpecializedBuilder::awaitStored(Value turn) {
  tile::AwaitOp::create(
      builder, TypeRange(), stored, frame.constant(0),
      arith::RemUIOp::create(
          builder, arith::AddIOp::create(builder, turn, frame.constant(1)),
          frame.constant(2)),
      ValueRange());
}

/// Builds `body`, which carries a number of steps, for each tile of the
/// program, the first of which has the number 0 as its `turn`.
void SpecializedBuilder::buildOverTiles(
    llvm::function_ref<Value(Value place, Value at, Value turn)> body) {
  Value zero = frame.constant(0);
  auto loop = scf::ForOp::create(builder, first, tiles, programs,
                                 ValueRange{zero, zero});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value turn = loop.getRegionIterArg(1);
  Value after = body(loop.getInductionVar(), loop.getRegionIterArg(0), turn);
  scf::YieldOp::create(
      builder, ValueRange{after, arith::AddIOp::create(builder, turn,
                                                       frame.constant(1))});
}

/// Lets the emitter compute the tile at `place`, and tells the other role.
void SpecializedBuilder::putNumbers(Value place, Value turn) {
  pipeline->findPlace(place, blockRow);
  SmallVector<Value> values = frame.getPlace();
  for (BlockArgument argument : pipeline->getNumbersOfRows()) {
    auto [least, greatest] = frame.emitter.emitNumbersOfRows(argument);
    values.append({least, greatest});
  }
  numbers->put(turn, values);
}

/// Lets the emitter compute the tile of which the other role has told.
void SpecializedBuilder::getNumbers(Value turn) {
  SmallVector<Value> values = numbers->get(turn);
  ArrayRef<Value> left = frame.setPlace(values);
  for (BlockArgument argument : pipeline->getNumbersOfRows()) {
    frame.emitter.setNumbersOfRows(argument, left[0], left[1]);
    left = left.drop_front(2);
  }
}

/// Computes the tile at `place` of each result. `at` steps were taken before,
/// and as many behind it are the result.
Value SpecializedBuilder::computeTile(Value place, Value at, Value turn) {
  numbers->await(turn);
  getNumbers(turn);
  Value next = pipeline->compute(at, turn);
  // They are read again, so as to take no registers from the products.
  getNumbers(turn);
  numbers->release(turn);
  // No warpgroup reads the factors any more where sums wait in their place.
  if (stored)
    tile::SynchronizeOp::create(builder, /*cluster=*/false);
  if (split)
    split->setTurn(turn);
  BoxStores stores(frame, epilogue.columns, usedBytes);
  int64_t firstByte = 0;
  Epilogue(
      frame, firstByte,
      [&](unsigned result, Value tile) { stores.store(result, tile); },
      split ? &*split : nullptr)
      .emit();
  if (split)
    split->release(arith::CmpIOp::create(
        builder, arith::CmpIPredicate::ult,
        arith::AddIOp::create(builder, place, programs), tiles));
  if (stored) {
    // What copies write next comes behind what threads have written.
    tile::FenceSharedOp::create(builder);
    tile::SynchronizeOp::create(builder, /*cluster=*/false);
    tile::ArriveOp::create(builder, stored, frame.constant(0),
                           /*cluster=*/frame.schedule.getBlocks() > 1,
                           /*warps=*/false);
  }
  return next;
}

tile::ProgramOp SpecializedBuilder::build(StringRef name) {
  tile::ProgramOp program = frame.create(name);
  const tile::MatmulAttr schedule = frame.schedule;
  const int64_t warps = schedule.getDotWarps();
  if (schedule.getBlocks() > 1)
    rank = tile::BlockRankOp::create(builder);
  if (schedule.getRowBlocks() > 1)
    blockRow = arith::MulIOp::create(builder, rank,
                                     frame.constant(frame.extents.rows));
  if (frame.space.hasComputedLeft())
    pipeline = std::make_unique<StreamPipeline>(frame);
  else
    pipeline = std::make_unique<FactorPipeline>(frame, rank);
  makeBarriers();
  numbers.emplace(
      builder,
      frame.countPlace() +
          2 * static_cast<int64_t>(pipeline->getNumbersOfRows().size()),
      warps);
  // Blocks that only send sums to each other copy before they have met.
  if (split)
    tile::AnnounceBlockOp::create(builder);
  synchronize();
  first = tile::ProgramIdOp::create(builder);
  programs = tile::ProgramCountOp::create(builder);
  frame.countTiles();
  tiles = frame.getAllTiles();

  auto roles = tile::RolesOp::create(
      builder, ArrayRef<int64_t>{schedule.getCopyWarps(), warps},
      ArrayRef<int64_t>{pipeline->getCopyThreads(), warps * kWarp},
      builder.getDenseI64ArrayAttr(getRegisters(schedule)),
      /*rolesCount=*/2);
  auto enter = [&](unsigned role) {
    builder.createBlock(&roles.getRoles()[role]);
  };
  enter(0);
  buildOverTiles([&](Value place, Value at, Value turn) {
    putNumbers(place, turn);
    if (stored)
      awaitStored(turn);
    return pipeline->copy(at, turn);
  });
  enter(1);
  if (split)
    tile::AwaitBlocksOp::create(builder);
  buildOverTiles([&](Value place, Value at, Value turn) {
    return computeTile(place, at, turn);
  });
  BoxStores::wait(builder, /*pending=*/0);
  builder.setInsertionPointAfter(roles);
  // A block must not end while another may still arrive at its barriers. Those
  // of split sums have been awaited.
  synchronize();
  tile::ReturnOp::create(builder, ValueRange());
  return program;
}

tile::ProgramOp bastile::buildSpecializedProgram(tile::KernelOp kernel,
                                                 tile::MatmulAttr schedule,
                                                 StringRef name,
                                                 int64_t mostRows) {
  return SpecializedBuilder(kernel, schedule, mostRows).build(name);
}
