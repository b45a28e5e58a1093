//===- RowClass.cpp - Which rows ops compute and read ---------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/RowClass.h"

#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bastile;

/// The dimension along the rows that `op` computes or reduces: the finest,
/// where it has groups of others. Where an op joins rows, it is that of the
/// pieces.
static std::optional<ValueDimensions::Dimension>
getColumns(Operation *op, const ValueDimensions &dimensions) {
  SmallVector<Value> values(op->getResults());
  if (isa<tile::JoinOp>(op))
    values.assign(op->operand_begin(), op->operand_end());
  if (isa<tile::ReduceOp, tile::ReduceRowsOp>(op))
    values.push_back(op->getOperand(0));
  std::optional<ValueDimensions::Dimension> columns;
  for (Value value : values) {
    if (!isRowTensor(value))
      continue;
    auto found = dimensions.getColumns(value);
    if (found && (!columns || dimensions.isOfGroups(*columns, *found)))
      columns = found;
  }
  return columns;
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
  return readsBands(operand) || combinesSomeRows(operand.getOwner()) ||
         isa<tile::DotOp>(operand.getOwner());
}

bool bastile::isPieceInMemory(Operation *op) { return isa<tile::SplitOp>(op); }

Value bastile::getWholeInMemory(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto piece = dyn_cast_if_present<tile::PieceOp>(op))
    return piece.getSource();
  auto split = dyn_cast_if_present<tile::SplitOp>(op);
  return split && split.getStrands() == 1 ? split.getInput() : Value();
}

bool bastile::repeatsVector(Operation *op) {
  auto broadcast = dyn_cast<tile::BroadcastOp>(op);
  return broadcast && !isRowTensor(broadcast.getSource());
}

bool bastile::fitsCombinedRow(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) || isa<tile::CopyOp>(op) ||
         repeatsVector(op);
}

/// Whether `value` has rows of a length that only a call knows.
static bool isOfAnyLength(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isRowTensor(value) &&
         ShapedType::isDynamic(type.getShape().back());
}

RowClass RowClass::get(Operation *op, const ValueDimensions &dimensions) {
  RowClass rows;
  rows.columns = getColumns(op, dimensions);
  rows.fitGroups = OpTrait::hasElementwiseMappableTraits(op) ||
                   isa<tile::CopyOp, arith::ConstantOp, tile::ReduceBandsOp,
                       tile::PackBandsOp, tile::RepeatBandsOp>(op);
  if (auto reduce = dyn_cast<tile::ReduceBandsOp>(op))
    rows.band = reduce.getBand();
  if (auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType()))
    rows.shape = type.getShape();
  if (auto dot = dyn_cast<tile::DotOp>(op)) {
    rows.multiplies = true;
    rows.dots.push_back(dot);
  }
  rows.fitsProduct = rows.multiplies || mayFollowDot(op);
  rows.readsRows = llvm::any_of(getValueOperands(op), isRowTensor);
  rows.combines = combinesAllRows(op);
  rows.hasAnyLength = llvm::any_of(getValueOperands(op), isOfAnyLength) ||
                      llvm::any_of(op->getResults(), isOfAnyLength);
  rows.reducesMore = isRowReduction(op) || isa<tile::ReduceRowsOp>(op);
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op)) {
    auto source = dyn_cast<RankedTensorType>(broadcast.getSource().getType());
    rows.fitGroups = !source || source.getShape().back() == 1;
  }
  return rows;
}

/// Whether the products of both classes, one of each, read one left factor in
/// the same way, such as those of a gated layer: a program of both reads it
/// once.
bool RowClass::sharesLeftFactor(const RowClass &other) const {
  if (dots.size() != 1 || other.dots.size() != 1)
    return false;
  tile::DotOp own = dots.front(), others = other.dots.front();
  return own.getA() == others.getA() &&
         own.getContract() == others.getContract() &&
         own.getB().getType() == others.getB().getType();
}

bool RowClass::areStatisticsOf(const RowClass &other) const {
  return readsRows && fitsProduct && !multiplies && !columns && shape &&
         other.shape && shape->size() > 1 && shape->back() == 1 &&
         shape->drop_back() == other.shape->drop_back();
}

bool RowClass::haveCommonColumns(const RowClass &other) const {
  return !columns || !other.columns || columns == other.columns ||
         llvm::is_contained(otherColumns, *other.columns) ||
         llvm::is_contained(other.otherColumns, *columns);
}

bool RowClass::fits(const RowClass &other,
                    const ValueDimensions &dimensions) const {
  if (!fitsBands(other) || !other.fitsBands(*this))
    return false;
  if (!fitsBehindProduct(other) || !other.fitsBehindProduct(*this))
    return false;
  if (!fitsLength(other) || !other.fitsLength(*this))
    return false;
  return haveCommonColumns(other) || areGroupsOf(other, dimensions) ||
         other.areGroupsOf(*this, dimensions);
}

void RowClass::merge(const RowClass &other, const ValueDimensions &dimensions) {
  if (areStatisticsOf(other))
    shape = other.shape;
  else if (!other.areStatisticsOf(*this) && shape != other.shape)
    shape = std::nullopt;
  if (columns == other.columns || (columns && haveCommonColumns(other))) {
    fitGroups &= other.fitGroups;
  } else if (!columns || areGroupsOf(other, dimensions)) {
    columns = other.columns;
    fitGroups = other.fitGroups;
  }
  otherColumns.append(other.otherColumns);
  if (columns && other.columns && haveCommonColumns(other))
    otherColumns.push_back(*other.columns);
  band = std::max(band, other.band);
  reducesMore |= other.reducesMore;
  combines |= other.combines;
  readsRows |= other.readsRows;
  hasAnyLength |= other.hasAnyLength;
  multiplies |= other.multiplies;
  dots.append(other.dots);
  fitsProduct &= other.fitsProduct;
}
