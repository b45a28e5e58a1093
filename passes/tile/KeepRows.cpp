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

  /// The loads of rows that several sweeps read, each with the loads that
  /// repeat it: `tile` has said which these are.
  static SmallVector<Loads> findRepeated(tile::ProgramOp program) {
    llvm::MapVector<Attribute, Loads> loads;
    program.walk([&](tile::LoadOp load) {
      Attribute tiles = load->removeAttr(kRowTilesAttrName);
      if (scf::ForOp loop = getLoop(load); tiles && loop && getTripCount(loop))
        loads[tiles].push_back(load);
    });
    SmallVector<Loads> groups;
    for (auto &[tiles, group] : loads)
      if (group.size() > 1)
        groups.push_back(std::move(group));
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
