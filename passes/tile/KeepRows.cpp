//===- KeepRows.cpp - Keep in shared memory what is read again ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/tile/CopyAhead.h"
#include "llvm/ADT/MapVector.h"

namespace bastile {
#define GEN_PASS_DEF_KEEPROWS
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

namespace {

/// Loads of the same tiles in loops that run one after the other.
using Loads = SmallVector<tile::LoadOp>;

/// Whether two values follow in the same way from the variables of their loops.
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
         lhs.getMisalignment() == rhs.getMisalignment() &&
         lhs->getAttrDictionary() == rhs->getAttrDictionary() &&
         getConstantIntValue(left.getStep()) ==
             getConstantIntValue(right.getStep()) &&
         getConstantIntValue(left.getUpperBound()) ==
             getConstantIntValue(right.getUpperBound()) &&
         llvm::all_of(llvm::zip(lhs.getIndices(), rhs.getIndices()), isAlike);
}

struct KeepRowsPass : public bastile::impl::KeepRowsBase<KeepRowsPass> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<tile::ProgramOp>()) {
      if (program.getDimensions())
        continue;
      tile::RowsAttr schedule = program.getRowsSchedule();
      if (schedule.getReread() == tile::Reread::Shared)
        keepRows(program);
      if (schedule.getStages() > 2)
        copyRowsAhead(program);
    }
  }

  /// The loads of operands that the kernel does not write, each with the loads
  /// that repeat it. Loads of statistics are left out, because each number is
  /// held by several threads.
  static SmallVector<Loads> findRepeated(tile::ProgramOp program) {
    DenseSet<Value> written;
    program.walk(
        [&](tile::StoreOp store) { written.insert(store.getMemref()); });
    int64_t columns = program.getRowsSchedule().getColumns();
    SmallVector<Loads> groups;
    program.walk([&](tile::LoadOp load) {
      scf::ForOp loop = getLoop(load);
      if (!loop || !getTripCount(loop) || written.contains(load.getMemref()) ||
          cast<MemRefType>(load.getMemref().getType()).getRank() < 2 ||
          cast<RankedTensorType>(load.getType()).getDimSize(1) < columns)
        return;
      auto *same = llvm::find_if(groups, [&](const Loads &group) {
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

  static void takeFrom(tile::LoadOp load, Value buffer) {
    OpBuilder builder(load);
    replaceByTake(load, buffer, createSlot(builder, getLoop(load)));
  }

  void keepRows(tile::ProgramOp program) {
    int64_t offset = 0;
    llvm::MapVector<Operation *, SmallVector<CopiedTile>> copied;
    for (Loads &group : findRepeated(program)) {
      tile::LoadOp first = group.front();
      tile::BufferOp buffer =
          createBuffer(first, *getTripCount(getLoop(first)), offset);
      for (tile::LoadOp load : llvm::drop_begin(group))
        takeFrom(load, buffer);
      if (canCopyAhead(first)) {
        copied[getLoop(first)].push_back({first, buffer});
        continue;
      }
      OpBuilder builder(&getContext());
      builder.setInsertionPointAfter(first);
      tile::KeepOp::create(builder, first.getLoc(), first, buffer,
                           createSlot(builder, getLoop(first)));
    }
    for (auto &[loop, tiles] : copied) {
      copyNextTiles(cast<scf::ForOp>(loop), tiles);
      for (CopiedTile tile : tiles)
        takeFrom(tile.load, tile.buffer);
    }
  }
};

} // namespace
