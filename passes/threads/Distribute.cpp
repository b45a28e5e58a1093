//===- Distribute.cpp - Choose the layout of tiles ------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/TargetLookup.h"
#include "passes/schedule/ScheduleFields.h"
#include "passes/schedule/ThreadGrid.h"

namespace bastile {
#define GEN_PASS_DEF_DISTRIBUTE
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

namespace {

/// Every tile of a program has the shape of its schedule's tile or of one of
/// that tile's edges, so one layout serves all tiles, and only reductions move
/// elements between threads. A tile with n times as many columns holds n
/// interleaved pieces, and vectors n times as wide give each thread its
/// elements of all of them. A tile with n times fewer columns has an element
/// for each group of n columns.
struct DistributePass : public bastile::impl::DistributeBase<DistributePass> {
  using DistributeBase::DistributeBase;

  void runOnOperation() override {
    const Target *target = lookupTarget(getOperation(), this->target);
    if (!target)
      return signalPassFailure();
    for (auto program : getOperation().getOps<tile::ProgramOp>())
      if (failed(distribute(program, target->isHost())))
        return signalPassFailure();
  }

  /// Checks that each tile of a program has at least one element, and no more
  /// than a schedule can ask for.
  static LogicalResult verifyTiles(tile::ProgramOp program) {
    // Some tiles are larger than the schedule's, such as those of joined rows.
    constexpr int64_t maxTiles = 64, maxElements = 1 << 24;
    auto multiply = [&](int64_t x, int64_t y, int64_t z) {
      return std::min(x * std::min(y, maxElements) * std::min(z, maxElements),
                      maxElements);
    };
    tile::RowsAttr schedule = program.getRowsSchedule();
    const int64_t most =
        multiply(maxTiles, schedule.getRows(), schedule.getColumns());
    auto isTile = [most](Type type) {
      auto tile = dyn_cast<RankedTensorType>(type);
      if (!tile || !tile.hasStaticShape())
        return true;
      int64_t elements = 1;
      for (int64_t size : tile.getShape())
        if (size > most || size < 1 || (elements *= size) > most)
          return false;
      return true;
    };
    auto result = program.walk([&](Operation *op) {
      if (llvm::all_of(op->getResultTypes(), isTile))
        return WalkResult::advance();
      op->emitOpError("computes a tile that does not have 1 to ")
          << most << " elements, as many as schedule " << schedule << " is for";
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult distribute(tile::ProgramOp program, bool onHost) {
    // The tiles of a program over named dimensions have layouts of their own.
    if (program.getDimensions())
      return success();
    if (failed(verifyTiles(program)))
      return failure();
    ThreadGrid grid{1, 1, 1};
    tile::RowsAttr schedule = program.getRowsSchedule();
    if (!onHost) {
      FailureOr<ThreadGrid> found = ThreadGrid::get(schedule);
      if (failed(found))
        return program.emitError("schedule ")
               << schedule << " does not divide evenly among its threads";
      grid = *found;
    }
    auto result = program.walk([&](Operation *op) {
      return failed(layOutTiles(op, schedule, grid)) ? WalkResult::interrupt()
                                                     : WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// Gives a layout to all tiles that `op` computes or carries through a loop.
  static LogicalResult layOutTiles(Operation *op, tile::RowsAttr schedule,
                                   const ThreadGrid &grid) {
    auto layOut = [&](Value value) {
      FailureOr<Type> type = getLaidOut(op, value.getType(), schedule, grid);
      if (failed(type))
        return false;
      value.setType(*type);
      return true;
    };
    if (!llvm::all_of(op->getResults(), layOut))
      return failure();
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (!llvm::all_of(block.getArguments(), layOut))
          return failure();
    if (auto copy = dyn_cast<tile::CopyAheadOp>(op)) {
      FailureOr<Type> type = getLaidOut(op, copy.getTile(), schedule, grid);
      if (failed(type))
        return failure();
      copy.setTile(cast<RankedTensorType>(*type));
    }
    if (auto constant = dyn_cast<arith::ConstantOp>(op))
      if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
        constant.setValueAttr(splat.resizeSplat(
            cast<ShapedType>(constant.getResult().getType())));
    return success();
  }

  /// The type of a value of `op` whose type is `before`: with its layout, if it
  /// is a tile.
  static FailureOr<Type> getLaidOut(Operation *op, Type before,
                                    tile::RowsAttr schedule,
                                    const ThreadGrid &grid) {
    auto type = dyn_cast<RankedTensorType>(before);
    // A tile of what each thread combines by itself got its layout when it was
    // made.
    if (!type || !type.hasStaticShape() ||
        isa_and_present<tile::BlockedAttr>(type.getEncoding()))
      return before;
    auto createError = [&]() -> InFlightDiagnostic {
      return op->emitOpError("has a tile of type ")
             << type << ", which " << schedule << " cannot deal to threads: ";
    };
    llvm::function_ref<InFlightDiagnostic()> emitError = createError;
    if (type.getRank() != 2)
      return emitError() << "tiles have two dimensions";
    int64_t columns = type.getDimSize(1);
    int64_t interleaved = std::max<int64_t>(1, columns / schedule.getColumns());
    int64_t group = columns == 1 ? 1 : schedule.getColumns() / columns;
    auto layout = tile::BlockedAttr::getChecked(
        emitError, op->getContext(), interleaved * schedule.getVector(),
        grid.rows, grid.columns, grid.blocks, std::max<int64_t>(1, group));
    if (!layout || failed(layout.verifyEncoding(
                       type.getShape(), type.getElementType(), emitError)))
      return failure();
    // Each piece becomes an op, so that more would take minutes to compile.
    constexpr int64_t maxPieces = 16384;
    if (int64_t pieces = layout.getNumPieces(type.getShape());
        pieces > maxPieces)
      return emitError() << "each would hold " << pieces
                         << " vectors, and at most " << maxPieces
                         << " are compiled";
    return RankedTensorType::get(type.getShape(), type.getElementType(),
                                 layout);
  }
};

} // namespace
