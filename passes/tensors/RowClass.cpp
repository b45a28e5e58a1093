//===- RowClass.cpp - Which rows ops compute and read ---------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tensors/RowClass.h"

#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bastile;

/// The length of the rows that `op` computes: that of its longest row tensor,
/// or that of the pieces where it splits or joins rows.
static int64_t getRowLength(Operation *op) {
  ValueRange values = op->getResults();
  if (isa<tile::JoinOp>(op))
    values = op->getOperands();
  int64_t length = 0;
  auto visit = [&](Value value) {
    if (isRowTensor(value))
      length = std::max(
          length, cast<RankedTensorType>(value.getType()).getShape().back());
  };
  llvm::for_each(values, visit);
  if (isa<tile::ReduceOp, tile::ReduceRowsOp>(op))
    visit(op->getOperand(0));
  return length;
}

bool bastile::readsBands(OpOperand &operand) {
  return isa<tile::RepeatBandsOp>(operand.getOwner()) &&
         operand.getOperandNumber() == 0;
}

bool bastile::waitsForBands(OpOperand &operand) {
  return readsBands(operand) && operand.get().getDefiningOp();
}

bool bastile::combinesAllRows(Operation *op) {
  auto reduce = dyn_cast<tile::ReduceRowsOp>(op);
  return reduce && !reduce.keepsRows();
}

bool bastile::combinesSomeRows(Operation *op) {
  auto reduce = dyn_cast<tile::ReduceRowsOp>(op);
  return reduce && reduce.keepsRows();
}

bool bastile::readsOtherRows(OpOperand &operand) {
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(operand.getOwner()))
    return operand.getOperandNumber() == 0 && broadcast.repeatsRows();
  return readsBands(operand) || combinesSomeRows(operand.getOwner());
}

bool bastile::isPieceOfArgument(Operation *op) {
  auto split = dyn_cast<tile::SplitOp>(op);
  return split && isa<BlockArgument>(split.getInput());
}

bool bastile::repeatsVector(Operation *op) {
  auto broadcast = dyn_cast<tile::BroadcastOp>(op);
  return broadcast && !isRowTensor(broadcast.getSource());
}

bool bastile::fitsCombinedRow(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) || isa<tile::CopyOp>(op) ||
         repeatsVector(op);
}

RowClass RowClass::get(Operation *op) {
  RowClass rows;
  rows.length = getRowLength(op);
  rows.mayBeGroups = OpTrait::hasElementwiseMappableTraits(op) ||
                     isa<tile::CopyOp, arith::ConstantOp, tile::ReduceBandsOp,
                         tile::PackBandsOp, tile::RepeatBandsOp>(op);
  if (auto reduce = dyn_cast<tile::ReduceBandsOp>(op))
    rows.band = reduce.getBand();
  rows.reducesMore = isRowReduction(op) || isa<tile::ReduceRowsOp>(op);
  auto visitGroups = [&](Type longer, Value shorter) {
    if (isRowTensor(shorter)) {
      int64_t length =
          cast<RankedTensorType>(shorter.getType()).getShape().back();
      if (length != 1 &&
          length != cast<RankedTensorType>(longer).getShape().back())
        rows.groups.push_back(length);
    }
  };
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    visitGroups(reduce.getInput().getType(), reduce.getResult());
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op)) {
    visitGroups(broadcast.getType(), broadcast.getSource());
    auto source = dyn_cast<RankedTensorType>(broadcast.getSource().getType());
    rows.mayBeGroups = !source || source.getShape().back() == 1;
  }
  return rows;
}
