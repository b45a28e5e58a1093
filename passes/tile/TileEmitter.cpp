//===- TileEmitter.cpp - The tiles of values, in a program's loops --------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tile/TileEmitter.h"

#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/building/ElementOps.h"
#include "passes/tile/ColumnReductions.h"
#include "passes/tile/RowMask.h"
#include "passes/tile/RowNumbers.h"
#include "passes/tile/RowReductions.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace bastile;

Value TileEmitter::constantIndex(int64_t value) {
  return arith::ConstantIndexOp::create(builder, value);
}

//===----------------------------------------------------------------------===//
// The current place
//===----------------------------------------------------------------------===//

void TileEmitter::setRow(Value newRow) {
  row = newRow;
  if (!tiling.isMisaligned())
    return;
  // The misalignment is that of any operand, since all agree.
  auto find = [&](auto values) {
    return llvm::find_if(values,
                         [&](Value value) { return tiling.hasPhase(value); }) -
           values.begin();
  };
  auto arguments = tiling.getBody().getArguments();
  size_t index = find(arguments);
  Value memory = index < arguments.size()
                     ? getMemory(index)
                     : getResultMemory(find(tiling.getReturn()->getOperands()));
  misalignment = tile::MisalignmentOp::create(
      builder,
      RankedTensorType::get({tiling.schedule.getRows(), 1},
                            builder.getI32Type()),
      memory, row, tiling.schedule.getVector(), /*space=*/0);
}

Value TileEmitter::getRowEnd() { return rowEnd ? rowEnd : getRowCount(); }

Value TileEmitter::getRowCount() {
  return buildRowCount(builder, builder.getLoc(), program);
}

void TileEmitter::enterColumnLoop(Operation *loop, Value newColumn) {
  tiles.enter(loop);
  column = newColumn;
  builder.setInsertionPointToStart(&loop->getRegion(0).front());
}

void TileEmitter::leaveColumnLoop(Value newColumn) {
  builder.setInsertionPointAfter(tiles.getLoop());
  tiles.leave();
  column = newColumn;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

Value TileEmitter::mask(tile::ReduceOp reduce, Value tile) {
  // Elements of groups need no mask, as a group lies inside or outside of the
  // row as a whole.
  const int64_t rowLength = tiling.shape.rowLength;
  if (reduce.isOfGroups() ||
      (!tiling.isMisaligned() && rowLength % tiling.schedule.getColumns() == 0))
    return tile;
  // Statistics of groups have one column for each group.
  const int64_t group = tiling.space.getGroup(reduce.getInput());
  Value first = column;
  if (group > 1)
    first = arith::DivUIOp::create(builder, reduce.getLoc(), column,
                                   constantIndex(group));
  return maskBeyondRow(builder, reduce, tile,
                       {first, rowLength / group, misalignment});
}

Value TileEmitter::emitRowMasked(Value value, tile::ReduceKind kind) {
  Value tile = emit(value);
  if (tiling.schedule.getRows() == 1)
    return tile;
  return tile::MaskRowsOp::create(
      builder, value.getLoc(), tile, row, getRowEnd(),
      tile::ReduceOp::getNeutral(kind, getElementTypeOrSelf(tile)));
}

void TileEmitter::emitResult(unsigned index) {
  Value value = tiling.getReturn()->getOperand(index);
  if (auto join = value.getDefiningOp<tile::JoinOp>())
    for (Value piece : join.getPieces())
      emit(piece);
  else
    emit(value);
}

Value TileEmitter::emit(Value value) {
  if (Value tile = bandTiles.lookupOrNull(value))
    return tile;
  return tiles.get(builder, value, tiling.hasColumns(value), [&] {
    if (auto argument = dyn_cast<BlockArgument>(value))
      return emitLoad(argument);
    return emitOp(value.getDefiningOp(), cast<OpResult>(value));
  });
}

Value TileEmitter::emitOp(Operation *op, OpResult result) {
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return reduceColumns(builder, tiling, reduce, emitMasked(reduce));
  if (auto reduce = dyn_cast<tile::ReduceBandsOp>(op))
    return combineBand(builder, tiling, reduce,
                       emitRowMasked(reduce.getInput(), reduce.getKind()));
  if (auto repeat = dyn_cast<tile::RepeatBandsOp>(op))
    return emitLoad(cast<BlockArgument>(repeat.getSource()), /*piece=*/0,
                    /*pieces=*/1, repeat.getBand());
  if (auto split = dyn_cast<tile::SplitOp>(op))
    return emitSplit(split, result.getResultNumber());
  if (auto iota = dyn_cast<tile::IotaOp>(op))
    return emitIota(iota);
  return emitElements(
      builder, result, [&](Value operand) { return emit(operand); },
      [&](RankedTensorType tensor) {
        return tiling.getTileType(result).clone(tensor.getElementType());
      });
}

Value TileEmitter::emitIota(tile::IotaOp iota) {
  RankedTensorType type = tiling.getTileType(iota);
  if (iota.getOver())
    return numberRows(builder, tiling, program, iota, row);
  // The only element of a row of length 1 has the number 0, wherever the
  // program is along longer rows.
  const bool hasColumns = tiling.hasColumns(iota);
  return tile::IotaOp::create(builder, iota.getLoc(), type, /*like=*/Value(),
                              hasColumns ? column : constantIndex(0),
                              hasColumns ? misalignment : Value(),
                              /*over=*/nullptr);
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

void TileEmitter::emitArguments() {
  for (BlockArgument argument : tiling.getBody().getArguments()) {
    // Rows that are left after a combination are read behind the loop that
    // combines.
    if (tiling.isKept(argument))
      continue;
    bool isRead = false;
    for (OpOperand &use : argument.getUses()) {
      Operation *user = use.getOwner();
      if (auto split = dyn_cast<tile::SplitOp>(user))
        for (Value piece : split.getPieces())
          emit(piece);
      else if (isa<tile::RepeatBandsOp>(user) && getSizeOperand(user) != &use)
        emit(user->getResult(0));
      else if (getSizeOperand(user) != &use)
        isRead = true;
    }
    if (isRead)
      emit(argument);
  }
}

SmallVector<Value> TileEmitter::emitLoadsAhead(Value first) {
  SmallVector<Value> loads;
  clear();
  setRow(first);
  llvm::SaveAndRestore saved(collected, &loads);
  emitArguments();
  clear();
  return loads;
}
