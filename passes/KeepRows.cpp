//===- KeepRows.cpp - Keep in shared memory what is read again ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/TargetLookup.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace bastile {
#define GEN_PASS_DEF_KEEPROWS
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

namespace {

/// Loads of the same tiles, by loops that run one after the other.
using Loads = SmallVector<tile::LoadOp>;

scf::ForOp getLoop(tile::LoadOp load) {
  return dyn_cast<scf::ForOp>(load->getParentOp());
}

/// Whether two values follow in the same way from the loops' variables.
bool areAlike(Value lhs, scf::ForOp left, Value rhs, scf::ForOp right) {
  if (lhs == rhs)
    return true;
  if (lhs == left.getInductionVar() || rhs == right.getInductionVar())
    return lhs == left.getInductionVar() && rhs == right.getInductionVar();
  std::optional<int64_t> constant = getConstantIntValue(lhs);
  if (constant)
    return constant == getConstantIntValue(rhs);
  Operation *one = lhs.getDefiningOp(), *other = rhs.getDefiningOp();
  return one && other && isPure(one) && one->getNumRegions() == 0 &&
         one->getName() == other->getName() &&
         one->getAttrDictionary() == other->getAttrDictionary() &&
         one->getNumResults() == 1 &&
         one->getNumOperands() == other->getNumOperands() &&
         llvm::all_of(llvm::zip(one->getOperands(), other->getOperands()),
                      [&](auto pair) {
                        return areAlike(std::get<0>(pair), left,
                                        std::get<1>(pair), right);
                      });
}

bool areSameTiles(tile::LoadOp lhs, tile::LoadOp rhs) {
  scf::ForOp left = getLoop(lhs), right = getLoop(rhs);
  auto isAlike = [&](auto pair) {
    return areAlike(std::get<0>(pair), left, std::get<1>(pair), right);
  };
  return left != right && left->getBlock() == right->getBlock() &&
         lhs.getMemref() == rhs.getMemref() && lhs.getType() == rhs.getType() &&
         lhs->getAttrDictionary() == rhs->getAttrDictionary() &&
         getConstantIntValue(left.getStep()) ==
             getConstantIntValue(right.getStep()) &&
         getConstantIntValue(left.getUpperBound()) ==
             getConstantIntValue(right.getUpperBound()) &&
         llvm::all_of(llvm::zip(lhs.getIndices(), rhs.getIndices()), isAlike);
}

/// How often a loop over the columns of a row runs; nothing for other loops.
std::optional<int64_t> getTripCount(scf::ForOp loop) {
  std::optional<int64_t> first = getConstantIntValue(loop.getLowerBound()),
                         end = getConstantIntValue(loop.getUpperBound()),
                         step = getConstantIntValue(loop.getStep());
  if (!first || *first != 0 || !end || !step)
    return std::nullopt;
  return llvm::divideCeil(*end, *step);
}

struct KeepRowsPass : public bastile::impl::KeepRowsBase<KeepRowsPass> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<tile::KernelOp>())
      if (kernel.isTiled() && kernel.getSchedule() &&
          kernel.getSchedule()->getReread() == tile::Reread::Shared)
        keepRows(kernel);
  }

  /// Loads of what the kernel does not write, each with those that repeat it,
  /// but for statistics: several threads hold each of those.
  static SmallVector<Loads> findRepeated(tile::KernelOp kernel) {
    DenseSet<Value> written;
    kernel.walk(
        [&](tile::StoreOp store) { written.insert(store.getMemref()); });
    int64_t columns = kernel.getSchedule()->getColumns();
    SmallVector<Loads> groups;
    kernel.walk([&](tile::LoadOp load) {
      scf::ForOp loop = getLoop(load);
      if (!loop || !getTripCount(loop) || written.contains(load.getMemref()) ||
          cast<MemRefType>(load.getMemref().getType()).getRank() < 2 ||
          cast<RankedTensorType>(load.getType()).getDimSize(1) < columns)
        return;
      auto same = llvm::find_if(groups, [&](const Loads &group) {
        return areSameTiles(group.front(), load);
      });
      if (same == groups.end())
        groups.push_back({load});
      else
        same->push_back(load);
    });
    llvm::erase_if(groups, [](const Loads &group) { return group.size() < 2; });
    return groups;
  }

  /// How many tiles are being copied while one is computed on.
  static constexpr int64_t kTilesAhead = 3;

  /// Whether a thread's pieces can be copied by the memory system: as wide as
  /// one of its accesses, at addresses that follow from the loop alone.
  static bool canCopyAhead(tile::LoadOp load) {
    scf::ForOp loop = getLoop(load);
    auto kernel = load->getParentOfType<tile::KernelOp>();
    tile::ScheduleAttr schedule = *kernel.getSchedule();
    RankedTensorType type = load.getType();
    int64_t bytes = schedule.getVector() * type.getElementTypeBitWidth() / 8;
    return type.getDimSize(1) == schedule.getColumns() &&
           (bytes == 4 || bytes == 8 || bytes == 16) &&
           load.getAlignment().value_or(1) >= static_cast<uint64_t>(bytes) &&
           load.getIndices().back() == loop.getInductionVar() &&
           llvm::all_of(load.getIndices().drop_back(), [&](Value index) {
             return loop.isDefinedOutsideOfLoop(index);
           });
  }

  static void createCopy(OpBuilder &builder, tile::LoadOp load, Value buffer,
                         Value column, Value slot) {
    SmallVector<Value> indices(load.getIndices());
    indices.back() = column;
    tile::CopyAheadOp::create(builder, load.getLoc(), load.getMemref(), indices,
                              buffer, slot, TypeAttr::get(load.getType()),
                              load.getOffsetAttr(), load.getLengthAttr(),
                              load.getSpaceAttr(), load.getBandAttr());
  }

  /// Has `loop` copy tiles ahead for `loads`, which then read the buffers.
  static void
  copyAhead(scf::ForOp loop,
            ArrayRef<std::pair<tile::LoadOp, tile::BufferOp>> loads) {
    Location loc = loop.getLoc();
    int64_t count = *getTripCount(loop);
    int64_t step = *getConstantIntValue(loop.getStep());
    int64_t ahead = std::min(kTilesAhead, count - 1);
    OpBuilder builder(loop);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    for (int64_t slot = 0; slot < ahead; ++slot) {
      for (auto [load, buffer] : loads)
        createCopy(builder, load, buffer, constant(slot * step),
                   constant(slot));
      tile::CommitCopiesOp::create(builder, loc);
    }

    builder.setInsertionPointToStart(loop.getBody());
    Value column = arith::AddIOp::create(builder, loc, loop.getInductionVar(),
                                         constant(ahead * step));
    Value isTile =
        arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, column,
                              constant(count * step));
    auto branch =
        scf::IfOp::create(builder, loc, isTile, /*withElseRegion=*/false);
    builder.setInsertionPointToStart(branch.thenBlock());
    Value slot = arith::DivUIOp::create(builder, loc, column, constant(step));
    for (auto [load, buffer] : loads)
      createCopy(builder, load, buffer, column, slot);
    builder.setInsertionPointAfter(branch);
    tile::CommitCopiesOp::create(builder, loc);
    tile::WaitCopiesOp::create(builder, loc, ahead);
  }

  static void replaceByTake(tile::LoadOp load, Value buffer) {
    OpBuilder builder(load);
    load.replaceAllUsesWith(
        tile::TakeOp::create(builder, load.getLoc(), load.getType(), buffer,
                             createSlot(builder, getLoop(load)))
            .getResult());
    load.erase();
  }

  void keepRows(tile::KernelOp kernel) {
    int64_t blocks = kernel.getSchedule()->getBlocks();
    int64_t offset = 0;
    llvm::MapVector<Operation *,
                    SmallVector<std::pair<tile::LoadOp, tile::BufferOp>>>
        copied;
    for (Loads &group : findRepeated(kernel)) {
      tile::LoadOp first = group.front();
      RankedTensorType type = first.getType();
      SmallVector<int64_t> shape(type.getShape());
      shape.insert(shape.begin(), *getTripCount(getLoop(first)));
      OpBuilder builder(&getContext());
      builder.setInsertionPointToStart(&kernel.getBody().front());
      auto space = gpu::AddressSpaceAttr::get(&getContext(),
                                              gpu::AddressSpace::Workgroup);
      auto buffer = tile::BufferOp::create(
          builder, first.getLoc(),
          MemRefType::get(shape, type.getElementType(), AffineMap(), space),
          builder.getI64IntegerAttr(offset));
      offset = llvm::alignTo(buffer.getEnd(blocks), 16);
      for (tile::LoadOp load : llvm::drop_begin(group))
        replaceByTake(load, buffer);
      if (canCopyAhead(first)) {
        copied[getLoop(first)].push_back({first, buffer});
        continue;
      }
      builder.setInsertionPointAfter(first);
      tile::KeepOp::create(builder, first.getLoc(), first, buffer,
                           createSlot(builder, getLoop(first)));
    }
    for (auto &[loop, loads] : copied) {
      copyAhead(cast<scf::ForOp>(loop), loads);
      for (auto [load, buffer] : loads)
        replaceByTake(load, buffer);
    }
  }

  static Value createSlot(OpBuilder &builder, scf::ForOp loop) {
    return arith::DivUIOp::create(builder, loop.getLoc(),
                                  loop.getInductionVar(), loop.getStep());
  }
};

} // namespace
