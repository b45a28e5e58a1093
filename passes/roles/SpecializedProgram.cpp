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
// common: each copies a part of the right factors, to all of them.
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
  void buildOverTiles(llvm::function_ref<Value(Value at, Value turn)> body);
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
  Value first, programs, tiles, blockRow;
  /// Where sums wait in the stages' memory: a barrier whose phases are tiles
  /// that all blocks of the cluster have stored. Null elsewhere.
  Value stored;
};

} // namespace

/// Builds `body`, which carries a number of steps, for each tile of the
/// program, the first of which has the number 0 as its `turn`.
void SpecializedBuilder::buildOverTiles(
    llvm::function_ref<Value(Value at, Value turn)> body) {
  auto loop =
      scf::ForOp::create(builder, first, tiles, programs, frame.constant(0));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value turn =
      arith::DivUIOp::create(builder, loop.getInductionVar(), programs);
  pipeline->findPlace(getTile(loop.getInductionVar()), blockRow);
  scf::YieldOp::create(builder, body(loop.getRegionIterArgs().front(), turn));
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
  Value next = pipeline->compute(at, turn);
  // No warpgroup reads the factors any more where sums wait in their place.
  if (stored)
    tile::SynchronizeOp::create(builder, /*cluster=*/false);
  BoxStores stores(frame, epilogue.columns, pipeline->getBytes());
  int64_t keptBytes = 0;
  Epilogue(frame, keptBytes, [&](unsigned result, Value tile) {
    stores.store(result, tile);
  }).emit();
  if (stored) {
    // What copies write next comes behind what threads have written.
    tile::FenceSharedOp::create(builder);
    tile::SynchronizeOp::create(builder, /*cluster=*/false);
    tile::ArriveOp::create(builder, stored, frame.constant(0),
                           /*cluster=*/frame.schedule.getBlocks() > 1);
  }
  return next;
}

tile::ProgramOp SpecializedBuilder::build(StringRef name) {
  tile::ProgramOp program = frame.create(name);
  const tile::MatmulAttr schedule = frame.schedule;
  constexpr int64_t warp = 32;
  const int64_t warps = schedule.getDotWarps();
  Value rank;
  if (schedule.getBlocks() > 1) {
    rank = tile::BlockRankOp::create(builder);
    blockRow = arith::MulIOp::create(builder, rank,
                                     frame.constant(frame.extents.rows));
  }
  if (frame.space.hasComputedLeft())
    pipeline = std::make_unique<StreamPipeline>(frame);
  else
    pipeline = std::make_unique<FactorPipeline>(frame, rank);
  if (epilogue.isLoop)
    stored = tile::MakeBarriersOp::create(
        builder, tile::BarriersType::get(builder.getContext(), 1),
        BoxStages::getReaders(schedule));
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
  buildOverTiles([&](Value at, Value turn) {
    if (stored)
      tile::AwaitOp::create(
          builder, TypeRange(), stored, frame.constant(0),
          arith::RemUIOp::create(
              builder, arith::AddIOp::create(builder, turn, frame.constant(1)),
              frame.constant(2)),
          ValueRange());
    return pipeline->copy(at, turn);
  });
  enter(1);
  buildOverTiles([&](Value at, Value turn) { return computeTile(at, turn); });
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
