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

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/products/Boxes.h"
#include "passes/products/Epilogue.h"
#include "passes/products/FactorPipeline.h"
#include "passes/products/ProductProgram.h"
#include "passes/products/StagedTiles.h"
#include <map>

using namespace mlir;
using namespace bastile;

/// The registers of each thread that copies, and of each that multiplies.
static constexpr int64_t kRegisters[] = {40, 232};

namespace {

/// Writes tiles of results by copies of boxes, each warp the rows that it
/// holds. A slot of shared memory is written once the copy out of it has read
/// it.
class BoxStores {
public:
  BoxStores(ProgramFrame &frame, int64_t offset);

  void store(unsigned result, Value tile);
  /// Waits until all slots have been read.
  void finish() { wait(0); }

private:
  /// A slot, and the number of the last store out of it.
  struct Slot {
    int64_t offset;
    std::optional<int64_t> last;
  };
  void wait(int64_t pending) {
    tile::WaitStoresOp::create(builder, static_cast<uint64_t>(pending),
                               /*warp=*/true);
  }
  int64_t getRowBytes(Type element) const {
    return columns * getElementBytes(element);
  }

  ProgramFrame &frame;
  ImplicitLocOpBuilder &builder;
  const int64_t columns;
  /// By the bytes of a row: where rows have other lengths, warps have other
  /// bytes of a slot.
  std::map<int64_t, SmallVector<Slot, 2>> slots;
  int64_t count = 0;
};

class SpecializedBuilder {
public:
  SpecializedBuilder(tile::KernelOp kernel, tile::MatmulAttr schedule)
      : frame(kernel, schedule, /*onHost=*/false), builder(frame.builder) {}

  tile::ProgramOp build(StringRef name);

private:
  void buildOverTiles(llvm::function_ref<Value(Value at, Value turn)> body);
  Value computeTile(FactorPipeline &pipeline, Value at);
  void synchronize() {
    tile::SynchronizeOp::create(builder,
                                /*cluster=*/frame.schedule.getBlocks() > 1);
  }

  ProgramFrame frame;
  ImplicitLocOpBuilder &builder;
  Value first, programs, tiles, blockRow;
  /// Where sums wait in the stages' memory: a barrier whose phases are tiles
  /// that all blocks of the cluster have stored. Null elsewhere.
  Value stored;
};

} // namespace

BoxStores::BoxStores(ProgramFrame &frame, int64_t offset)
    : frame(frame), builder(frame.builder),
      columns(EpilogueShape::get(frame).columns) {
  for (const Operand &operand : frame.operands.getAll())
    if (frame.isStoredStaged(operand))
      slots[getRowBytes(operand.type.getElementType())];
  // All of the slots take as much memory as two with the longest rows.
  constexpr int64_t longest = 128, count = 2;
  int64_t left = count * longest;
  for (auto &[rowBytes, own] : slots)
    for (int64_t number = 0,
                 most = slots.size() == 1 || rowBytes < longest ? count : 1;
         number < most && rowBytes <= left; ++number) {
      own.push_back({offset, std::nullopt});
      offset += rowBytes * frame.extents.rows;
      left -= rowBytes;
    }
}

void BoxStores::store(unsigned result, Value tile) {
  const unsigned operand = frame.operands.getResult(result);
  if (!frame.isStoredStaged(frame.operands.getAll()[operand]))
    return frame.emitter.emitStore(operand, tile);
  auto type = cast<RankedTensorType>(tile.getType());
  // The slot of which the last copy is longest ago.
  Slot &slot = *llvm::min_element(
      slots.at(getRowBytes(type.getElementType())),
      [](const Slot &lhs, const Slot &rhs) { return lhs.last < rhs.last; });
  // The slots of the last tile, or of the last turn of a loop, were copied
  // before all stores of this one.
  wait(slot.last ? count - 1 - *slot.last : count);
  slot.last = count++;
  Value memory = tile::BufferOp::create(
      builder,
      getSlotsType(builder.getContext(), /*slots=*/1, type.getDimSize(0),
                   type.getDimSize(1), type.getElementType()),
      builder.getI64IntegerAttr(slot.offset));
  Value zero = frame.constant(0);
  tile::KeepOp::create(builder, tile, memory, zero);
  tile::FenceSharedOp::create(builder);
  tile::StoreBoxOp::create(builder, memory, zero,
                           frame.emitter.getMemory(operand),
                           frame.emitter.getIndices(operand), /*warp=*/true);
}

/// Builds `body`, which carries a number of steps, for each tile of the
/// program, the first of which has the number 0 as its `turn`.
void SpecializedBuilder::buildOverTiles(
    llvm::function_ref<Value(Value at, Value turn)> body) {
  auto loop =
      scf::ForOp::create(builder, first, tiles, programs, frame.constant(0));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  frame.findPlace(loop.getInductionVar(), blockRow);
  Value turn =
      arith::DivUIOp::create(builder, loop.getInductionVar(), programs);
  scf::YieldOp::create(builder, body(loop.getRegionIterArgs().front(), turn));
}

/// Computes a tile of each result. `at` steps were multiplied before, and as
/// many behind it are the result.
Value SpecializedBuilder::computeTile(FactorPipeline &pipeline, Value at) {
  FactorPipeline::Sums sums = pipeline.multiply(at);
  for (auto [dot, tile] : llvm::zip_equal(frame.space.getDots(), sums.tiles))
    frame.emitter.map(tile::DotOp(dot).getResult(), tile);
  // No warpgroup reads the factors any more where sums wait in their place.
  if (stored)
    tile::SynchronizeOp::create(builder, /*cluster=*/false);
  BoxStores stores(frame, pipeline.getBytes());
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
  return sums.next;
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
  FactorPipeline pipeline(frame, rank);
  if (EpilogueShape::get(frame).isLoop)
    stored = tile::MakeBarriersOp::create(
        builder, tile::BarriersType::get(builder.getContext(), 1),
        pipeline.getReaders());
  synchronize();
  first = tile::ProgramIdOp::create(builder);
  programs = tile::ProgramCountOp::create(builder);
  frame.countTiles();
  tiles = frame.getAllTiles();

  auto roles = tile::RolesOp::create(
      builder, ArrayRef<int64_t>{schedule.getCopyWarps(), warps},
      ArrayRef<int64_t>{1, warps * warp},
      builder.getDenseI64ArrayAttr(kRegisters),
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
    return pipeline.copy(at);
  });
  enter(1);
  buildOverTiles([&](Value at, Value) { return computeTile(pipeline, at); });
  BoxStores(frame, /*offset=*/0).finish();
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
