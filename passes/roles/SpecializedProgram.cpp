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

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/products/Epilogue.h"
#include "passes/roles/BoxStages.h"
#include "passes/roles/BoxStores.h"
#include "passes/roles/FactorPipeline.h"
#include "passes/roles/StreamPipeline.h"
#include "passes/roles/TileNumbers.h"

using namespace mlir;
using namespace bastile;

/// The registers of each thread that copies, and of each of `warps` that
/// multiply: a multiprocessor has as many for all of them.
static ArrayRef<int64_t> getRegisters(int64_t warps) {
  static constexpr int64_t few[] = {40, 232}, many[] = {32, 160};
  constexpr int64_t most = 8;
  return warps > most ? ArrayRef(many) : ArrayRef(few);
}

namespace {

class SpecializedBuilder {
public:
  SpecializedBuilder(tile::KernelOp kernel, tile::MatmulAttr schedule)
      : frame(kernel, schedule, /*onHost=*/false), builder(frame.builder),
        epilogue(EpilogueShape::get(frame)) {}

  tile::ProgramOp build(StringRef name);

private:
  void makeBarriers();
  void awaitStored(Value turn);
  std::optional<SplitSums> getSplitSums(Value turn);
  void buildOverTiles(
      llvm::function_ref<Value(Value place, Value at, Value turn)> body);
  void putNumbers(Value place, Value turn);
  void getNumbers(Value turn);
  Value computeTile(Value at, Value turn);
  Value getTile(Value place);
  void synchronize() {
    tile::SynchronizeOp::create(builder,
                                /*cluster=*/frame.schedule.getBlocks() > 1);
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
  /// Where blocks have parts of the sums: a barrier whose phases are tiles of
  /// which all blocks have their sums in that memory. Null elsewhere.
  Value summed;
  /// The bytes that sums take there.
  int64_t keptBytes = 0;
};

} // namespace

/// Makes the barriers of tiles whose sums wait in the stages' memory.
void SpecializedBuilder::makeBarriers() {
  if (!epilogue.isLoop)
    return;
  constexpr int64_t warpgroup = 4, floatBytes = 4;
  const tile::MatmulAttr schedule = frame.schedule;
  auto make = [&]() -> Value {
    return tile::MakeBarriersOp::create(
        builder, tile::BarriersType::get(builder.getContext(), 1),
        schedule.getDotWarps() / warpgroup * schedule.getBlocks());
  };
  stored = make();
  if (schedule.getSplitBlocks() > 1)
    summed = make();
  keptBytes = frame.extents.rows * frame.extents.columns * floatBytes *
              static_cast<int64_t>(frame.space.getDots().size());
}

/// Waits until all blocks have stored the tile before that of `turn`.
void SpecializedBuilder::awaitStored(Value turn) {
  tile::AwaitOp::create(
      builder, TypeRange(), stored, frame.constant(0),
      arith::RemUIOp::create(
          builder, arith::AddIOp::create(builder, turn, frame.constant(1)),
          frame.constant(2)),
      ValueRange(), /*cluster=*/bool(summed));
}

/// What the block does for the sums of the tile of `turn`, if it has only a
/// part of them.
std::optional<SplitSums> SpecializedBuilder::getSplitSums(Value turn) {
  if (!summed)
    return std::nullopt;
  auto share = [this, turn] {
    tile::SynchronizeOp::create(builder, /*cluster=*/false);
    tile::ArriveOp::create(builder, summed, frame.constant(0),
                           /*cluster=*/true, /*published=*/true,
                           /*warps=*/false);
    tile::AwaitOp::create(
        builder, TypeRange(), summed, frame.constant(0),
        arith::RemUIOp::create(builder, turn, frame.constant(2)), ValueRange(),
        /*cluster=*/true);
  };
  return SplitSums{rank, frame.schedule.getSplitBlocks(), share};
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
  pipeline->findPlace(getTile(place), blockRow);
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

/// The tile that a program computes at `place`, its own number and as many
/// times the number of programs as it has had a turn. Of uneven tiles, it takes
/// both of a pair, one turn after the other, so that all programs have the same
/// to do, and those of one matrix run at the same time, for which the cache
/// holds the matrix. In the last two turns, which have not a pair for each
/// program, the longer ones of the pairs that are left come first.
Value SpecializedBuilder::getTile(Value place) {
  if (!pipeline->isUneven())
    return place;
  Value two = frame.constant(2);
  Value length = arith::MulIOp::create(builder, programs, two);
  Value inTurns = arith::RemUIOp::create(builder, place, length);
  Value begin = arith::SubIOp::create(builder, place, inTurns);
  Value pairs = arith::CeilDivUIOp::create(
      builder,
      arith::MinUIOp::create(builder, length,
                             arith::SubIOp::create(builder, tiles, begin)),
      two);
  Value isSecond =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::uge, inTurns, pairs);
  Value pair = arith::SelectOp::create(
      builder, isSecond, arith::SubIOp::create(builder, inTurns, pairs),
      inTurns);
  Value tile = arith::AddIOp::create(builder, begin,
                                     arith::MulIOp::create(builder, pair, two));
  return arith::AddIOp::create(builder, tile,
                               arith::SelectOp::create(builder, isSecond,
                                                       frame.constant(1),
                                                       frame.constant(0)));
}

/// Computes a tile of each result. `at` steps were taken before, and as many
/// behind it are the result.
Value SpecializedBuilder::computeTile(Value at, Value turn) {
  numbers->await(turn);
  getNumbers(turn);
  Value next = pipeline->compute(at, turn);
  // They are read again, so as to take no registers from the products.
  getNumbers(turn);
  numbers->release(turn);
  // No warpgroup reads the factors any more where sums wait in their place.
  if (stored)
    tile::SynchronizeOp::create(builder, /*cluster=*/false);
  // Nor does another block read the sums of the last tile. Copies wait for that
  // as well, but a block may have no steps to copy for.
  if (summed)
    awaitStored(turn);
  BoxStores stores(frame, epilogue.columns,
                   std::max(pipeline->getBytes(), keptBytes));
  int64_t firstByte = 0;
  Epilogue(
      frame, firstByte,
      [&](unsigned result, Value tile) { stores.store(result, tile); },
      getSplitSums(turn))
      .emit();
  if (stored) {
    // What copies write next comes behind what threads have written.
    tile::FenceSharedOp::create(builder);
    tile::SynchronizeOp::create(builder, /*cluster=*/false);
    tile::ArriveOp::create(builder, stored, frame.constant(0),
                           /*cluster=*/frame.schedule.getBlocks() > 1,
                           /*published=*/bool(summed), /*warps=*/false);
  }
  return next;
}

tile::ProgramOp SpecializedBuilder::build(StringRef name) {
  tile::ProgramOp program = frame.create(name);
  const tile::MatmulAttr schedule = frame.schedule;
  constexpr int64_t warp = 32;
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
  synchronize();
  first = tile::ProgramIdOp::create(builder);
  programs = tile::ProgramCountOp::create(builder);
  frame.countTiles();
  tiles = frame.getAllTiles();

  auto roles = tile::RolesOp::create(
      builder, ArrayRef<int64_t>{schedule.getCopyWarps(), warps},
      ArrayRef<int64_t>{pipeline->getCopyThreads(), warps * warp},
      builder.getDenseI64ArrayAttr(getRegisters(warps)),
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
  buildOverTiles([&](Value /*place*/, Value at, Value turn) {
    return computeTile(at, turn);
  });
  BoxStores::wait(builder, /*pending=*/0);
  builder.setInsertionPointAfter(roles);
  // A block must not end while another may still arrive at its barriers.
  synchronize();
  tile::ReturnOp::create(builder, ValueRange());
  return program;
}

tile::ProgramOp bastile::buildSpecializedProgram(tile::KernelOp kernel,
                                                 tile::MatmulAttr schedule,
                                                 StringRef name) {
  return SpecializedBuilder(kernel, schedule).build(name);
}
