//===- CopyAhead.cpp - Tiles on their way to shared memory ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tile/CopyAhead.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

/// Tiles whose copies are under way while the program computes on one tile.
static constexpr int64_t kTilesAhead = 3;

scf::ForOp bastile::getLoop(tile::LoadOp load) {
  return dyn_cast<scf::ForOp>(load->getParentOp());
}

std::optional<int64_t> bastile::getTripCount(scf::ForOp loop) {
  std::optional<int64_t> first = getConstantIntValue(loop.getLowerBound()),
                         end = getConstantIntValue(loop.getUpperBound()),
                         step = getConstantIntValue(loop.getStep());
  if (!first || *first != 0 || !end || !step)
    return std::nullopt;
  return llvm::divideCeil(*end, *step);
}

Value bastile::createSlot(OpBuilder &builder, scf::ForOp loop) {
  return arith::DivUIOp::create(builder, loop.getLoc(), loop.getInductionVar(),
                                loop.getStep());
}

/// Whether a thread's pieces of the loaded tile are as wide as an access of the
/// memory system.
static bool hasWidePieces(tile::LoadOp load) {
  auto program = load->getParentOfType<tile::ProgramOp>();
  tile::RowsAttr schedule = program.getRowsSchedule();
  RankedTensorType type = load.getType();
  int64_t bytes = schedule.getVector() * getElementBytes(type);
  return type.getDimSize(1) == schedule.getColumns() &&
         (bytes == 4 || bytes == 8 || bytes == 16) &&
         load.getAlignment().value_or(1) >= static_cast<uint64_t>(bytes);
}

bool bastile::canCopyAhead(tile::LoadOp load) {
  scf::ForOp loop = getLoop(load);
  return hasWidePieces(load) &&
         load.getIndices().back() == loop.getInductionVar() &&
         (!load.getMisalignment() ||
          loop.isDefinedOutsideOfLoop(load.getMisalignment())) &&
         llvm::all_of(load.getIndices().drop_back(), [&](Value index) {
           return loop.isDefinedOutsideOfLoop(index);
         });
}

tile::BufferOp bastile::createBuffer(tile::LoadOp load, int64_t slots,
                                     int64_t &offset) {
  auto program = load->getParentOfType<tile::ProgramOp>();
  OpBuilder builder(program.getContext());
  builder.setInsertionPointToStart(&program.getBody().front());
  RankedTensorType type = load.getType();
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin(), slots);
  auto space = gpu::AddressSpaceAttr::get(program.getContext(),
                                          gpu::AddressSpace::Workgroup);
  auto buffer = tile::BufferOp::create(
      builder, load.getLoc(),
      MemRefType::get(shape, type.getElementType(), AffineMap(), space),
      builder.getI64IntegerAttr(offset));
  offset = llvm::alignTo(buffer.getEnd(program.getSchedule().getBlocks()), 16);
  return buffer;
}

void bastile::replaceByTake(tile::LoadOp load, Value buffer, Value slot) {
  OpBuilder builder(load);
  load.replaceAllUsesWith(tile::TakeOp::create(builder, load.getLoc(),
                                               load.getType(), buffer, slot,
                                               /*transposed=*/false)
                              .getResult());
  load.erase();
}

/// Creates a copy of the tile that `load` would load from `indices`.
static void createCopy(OpBuilder &builder, tile::LoadOp load, Value buffer,
                       ValueRange indices, Value slot) {
  tile::CopyAheadOp::create(builder, load.getLoc(), load.getMemref(), indices,
                            buffer, slot, load.getMisalignment(),
                            TypeAttr::get(load.getType()), load.getOffsetAttr(),
                            load.getLengthAttr(), load.getSpaceAttr(),
                            load.getBandAttr());
}

void bastile::copyNextTiles(scf::ForOp loop, ArrayRef<CopiedTile> tiles) {
  Location loc = loop.getLoc();
  int64_t count = *getTripCount(loop);
  int64_t step = *getConstantIntValue(loop.getStep());
  int64_t ahead = std::min(kTilesAhead, count - 1);
  OpBuilder builder(loop);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto copy = [&](Value column, Value slot) {
    for (auto [load, buffer] : tiles) {
      SmallVector<Value> indices(load.getIndices());
      indices.back() = column;
      createCopy(builder, load, buffer, indices, slot);
    }
  };
  for (int64_t slot = 0; slot < ahead; ++slot) {
    copy(constant(slot * step), constant(slot));
    tile::CommitCopiesOp::create(builder, loc);
  }

  builder.setInsertionPointToStart(loop.getBody());
  Value column = arith::AddIOp::create(builder, loc, loop.getInductionVar(),
                                       constant(ahead * step));
  Value isTile = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                       column, constant(count * step));
  auto branch =
      scf::IfOp::create(builder, loc, isTile, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(branch.thenBlock());
  copy(
      column,
      arith::DivUIOp::create(builder, loc, column, constant(step)).getResult());
  builder.setInsertionPointAfter(branch);
  tile::CommitCopiesOp::create(builder, loc);
  tile::WaitCopiesOp::create(builder, loc, ahead);
}

/// Whether `value`, an index inside the loop `rows`, follows from the loop's
/// variable and from values outside of the loop alone.
static bool followsFrom(Value value, scf::ForOp rows) {
  if (value == rows.getInductionVar() || rows.isDefinedOutsideOfLoop(value))
    return true;
  Operation *op = value.getDefiningOp();
  return op && isPure(op) && op->getNumRegions() == 0 &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return followsFrom(operand, rows);
         });
}

/// Computes such a value for the loop variable that `mapping` has.
static Value createAgain(OpBuilder &builder, Value value, scf::ForOp rows,
                         IRMapping &mapping) {
  if (mapping.contains(value) || rows.isDefinedOutsideOfLoop(value))
    return mapping.lookupOrDefault(value);
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    createAgain(builder, operand, rows, mapping);
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

/// The loads in the loop `rows` that copies can replace: loads of tiles that
/// differ from turn to turn by the row alone. The misalignment of a row is
/// known only in its turn, so loads of misaligned rows stay.
static SmallVector<tile::LoadOp> findCopied(scf::ForOp rows) {
  return llvm::to_vector(llvm::make_filter_range(
      rows.getOps<tile::LoadOp>(), [&](tile::LoadOp load) {
        return !load->use_empty() && !load.getMisalignment() &&
               hasWidePieces(load) &&
               rows.isDefinedOutsideOfLoop(load.getIndices().back()) &&
               llvm::all_of(load.getIndices().drop_back(),
                            [&](Value index) {
                              return followsFrom(index, rows) &&
                                     !rows.isDefinedOutsideOfLoop(index);
                            }) &&
               load.getIndices().size() > 1;
      }));
}

namespace {

/// A loop over rows whose tiles are copied ahead into a few slots, which take
/// turns.
class RowCopies {
public:
  RowCopies(scf::ForOp rows, ArrayRef<tile::LoadOp> loads, int64_t slots)
      : rows(rows), loads(loads), slots(slots), builder(rows) {}

  /// Creates the buffers behind `offset` and advances it.
  void run(int64_t &offset) {
    for (tile::LoadOp load : loads)
      buffers.push_back(createBuffer(load, slots, offset));
    copyFirstRows();
    Value slot = countSlots();
    builder.setInsertionPointToStart(rows.getBody());
    Value distance = multiply(rows.getStep(), slots - 1);
    // The next copy goes to the slot of the row before, which nothing reads any
    // more.
    Value isFirst = arith::CmpIOp::create(
        builder, getLoc(), arith::CmpIPredicate::eq, slot, constant(0));
    Value before = arith::SubIOp::create(builder, getLoc(), slot, constant(1));
    Value freed = arith::SelectOp::create(builder, getLoc(), isFirst,
                                          constant(slots - 1), before);
    copyRow(add(rows.getInductionVar(), distance), freed);
    tile::WaitCopiesOp::create(builder, getLoc(), slots - 1);
    for (auto [load, buffer] : llvm::zip_equal(loads, buffers))
      replaceByTake(load, buffer, slot);
  }

private:
  Location getLoc() { return rows.getLoc(); }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, getLoc(), value);
  }
  Value add(Value lhs, Value rhs) {
    return arith::AddIOp::create(builder, getLoc(), lhs, rhs);
  }
  Value multiply(Value value, int64_t factor) {
    return arith::MulIOp::create(builder, getLoc(), value, constant(factor));
  }

  void copyFirstRows() {
    for (int64_t slot = 0; slot < slots - 1; ++slot)
      copyRow(add(rows.getLowerBound(), multiply(rows.getStep(), slot)),
              constant(slot));
  }

  /// Starts to copy the tiles of the turn at `position`, if there is such a
  /// turn. Begins a group of copies in any case, so that the group to wait for
  /// is always as many groups back.
  void copyRow(Value position, Value slot) {
    Value isRow =
        arith::CmpIOp::create(builder, getLoc(), arith::CmpIPredicate::ult,
                              position, rows.getUpperBound());
    auto branch =
        scf::IfOp::create(builder, getLoc(), isRow, /*withElseRegion=*/false);
    builder.setInsertionPointToStart(branch.thenBlock());
    IRMapping mapping;
    mapping.map(rows.getInductionVar(), position);
    for (auto [load, buffer] : llvm::zip_equal(loads, buffers)) {
      SmallVector<Value> indices =
          llvm::map_to_vector(load.getIndices(), [&](Value index) {
            return createAgain(builder, index, rows, mapping);
          });
      createCopy(builder, load, buffer, indices, slot);
    }
    builder.setInsertionPointAfter(branch);
    tile::CommitCopiesOp::create(builder, getLoc());
  }

  /// Adds a loop variable that is the slot of the current turn.
  Value countSlots() {
    IRRewriter rewriter(builder);
    auto advance = [&](OpBuilder &inside, Location loc,
                       ArrayRef<BlockArgument> added) -> SmallVector<Value> {
      Value one = arith::ConstantIndexOp::create(inside, loc, 1);
      Value end = arith::ConstantIndexOp::create(inside, loc, slots);
      Value zero = arith::ConstantIndexOp::create(inside, loc, 0);
      Value next = arith::AddIOp::create(inside, loc, added.front(), one);
      Value wraps = arith::CmpIOp::create(inside, loc, arith::CmpIPredicate::eq,
                                          next, end);
      return {arith::SelectOp::create(inside, loc, wraps, zero, next)};
    };
    rows = cast<scf::ForOp>(*rows.replaceWithAdditionalYields(
        rewriter, {constant(0)}, /*replaceInitOperandUsesInLoop=*/false,
        advance));
    return rows.getRegionIterArgs().back();
  }

  scf::ForOp rows;
  SmallVector<tile::LoadOp> loads;
  int64_t slots;
  OpBuilder builder;
  SmallVector<Value> buffers;
};

} // namespace

void bastile::copyRowsAhead(tile::ProgramOp program) {
  SmallVector<scf::ForOp> loops;
  program.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  int64_t offset = 0;
  for (scf::ForOp rows : loops)
    if (SmallVector<tile::LoadOp> loads = findCopied(rows); !loads.empty())
      RowCopies(rows, loads, program.getRowsSchedule().getStages()).run(offset);
}
