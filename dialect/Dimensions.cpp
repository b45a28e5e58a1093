//===- Dimensions.cpp - Which dimensions of values are one ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/Dimensions.h"

#include "dialect/Rows.h"

using namespace mlir;
using namespace bastile;

static RankedTensorType getTensor(Value value) {
  return dyn_cast_if_present<RankedTensorType>(value.getType());
}

static unsigned getRank(Value value) {
  return static_cast<unsigned>(getTensor(value).getRank());
}

ValueDimensions::ValueDimensions(Block &block) {
  for (BlockArgument argument : block.getArguments())
    addValue(argument);
  for (Operation &op : block)
    for (Value result : op.getResults())
      addValue(result);
  dimensions.grow(numPlaces);
  joinNamed(block);
  for (Operation &op : block)
    visit(op);
  joinGroups();
}

void ValueDimensions::addValue(Value value) {
  if (!getTensor(value))
    return;
  places[value] = numPlaces;
  numPlaces += getRank(value);
}

std::optional<ValueDimensions::Dimension>
ValueDimensions::get(Value value, unsigned place) const {
  RankedTensorType type = getTensor(value);
  if (!type || type.getDimSize(place) == 1)
    return std::nullopt;
  return dimensions.findLeader(places.at(value) + place);
}

std::optional<ValueDimensions::Dimension>
ValueDimensions::getColumns(Value value) const {
  RankedTensorType type = getTensor(value);
  return type && type.getRank() > 0 ? get(value, type.getRank() - 1)
                                    : std::nullopt;
}

bool ValueDimensions::isOfGroups(Dimension coarse, Dimension fine) const {
  // Groups may be groups of groups.
  SmallVector<Dimension> pending{coarse};
  DenseSet<Dimension> visited;
  while (!pending.empty()) {
    Dimension dimension = pending.pop_back_val();
    if (!visited.insert(dimension).second)
      continue;
    for (const Groups &group : groups) {
      if (dimensions.findLeader(group.statistics) != dimension)
        continue;
      pending.push_back(dimensions.findLeader(group.columns));
      if (pending.back() == fine)
        return true;
    }
  }
  return false;
}

/// Makes one dimension of the places of arguments that have the same name.
void ValueDimensions::joinNamed(Block &block) {
  auto function = dyn_cast<FunctionOpInterface>(block.getParentOp());
  if (!function)
    return;
  DenseMap<Attribute, std::pair<Value, unsigned>> named;
  for (BlockArgument argument : block.getArguments()) {
    auto names = function.getArgAttrOfType<ArrayAttr>(
        argument.getArgNumber(), tile::ProgramOp::kDimensionsAttrName);
    if (!names)
      continue;
    for (auto [place, name] : llvm::enumerate(names)) {
      if (!isa<StringAttr>(name))
        continue;
      auto [it, isNew] = named.try_emplace(name, argument, place);
      if (!isNew)
        join(it->second.first, it->second.second, argument, place);
    }
  }
}

/// Makes one dimension of two places, unless one of them has nothing to go
/// along.
void ValueDimensions::join(Value lhs, unsigned left, Value rhs,
                           unsigned right) {
  if (getTensor(lhs).getDimSize(left) != 1 &&
      getTensor(rhs).getDimSize(right) != 1)
    dimensions.join(places.at(lhs) + left, places.at(rhs) + right);
}

void ValueDimensions::joinLeading(Value lhs, Value rhs) {
  if (getRank(lhs) == getRank(rhs))
    for (unsigned place = 0; place + 1 < getRank(lhs); ++place)
      join(lhs, place, rhs, place);
}

void ValueDimensions::joinColumns(Value lhs, Value rhs) {
  join(lhs, getRank(lhs) - 1, rhs, getRank(rhs) - 1);
}

void ValueDimensions::visitBroadcast(tile::BroadcastOp broadcast) {
  Value source = broadcast.getSource(), result = broadcast.getResult();
  RankedTensorType type = getTensor(source);
  if (!type || type.getRank() == 0)
    return;
  joinLeading(source, result);
  int64_t length = type.getShape().back();
  if (length == broadcast.getType().getShape().back())
    joinColumns(source, result);
  else if (length != 1)
    addGroups(source, result);
}

/// Pieces have their columns in common with each other and their rows with the
/// whole.
void ValueDimensions::visitPieces(Value whole, ValueRange pieces) {
  for (Value piece : pieces) {
    joinLeading(whole, piece);
    joinColumns(pieces.front(), piece);
  }
}

/// Notes that each column of `statistics` stands for a group of `rows`.
void ValueDimensions::addGroups(Value statistics, Value rows) {
  auto getLast = [&](Value value) {
    return places.at(value) + getRank(value) - 1;
  };
  auto getLength = [](Value value) {
    return getTensor(value).getShape().back();
  };
  groups.push_back({getLast(statistics), getLast(rows),
                    getLength(rows) / getLength(statistics)});
}

/// Makes one dimension of those that have the same groups in common, each of as
/// many columns: the groups and the places in them are the same.
void ValueDimensions::joinGroups() {
  bool isChanged = true;
  while (isChanged) {
    isChanged = false;
    DenseMap<std::pair<Dimension, int64_t>, Dimension> found;
    for (const Groups &group : groups) {
      Dimension columns = dimensions.findLeader(group.columns);
      auto [it, isNew] = found.try_emplace(
          {dimensions.findLeader(group.statistics), group.size}, columns);
      if (isNew || dimensions.findLeader(it->second) == columns)
        continue;
      dimensions.join(it->second, columns);
      isChanged = true;
    }
  }
}

void ValueDimensions::visit(Operation &op) {
  if (OpOperand *size = getSizeOperand(&op)) {
    joinLeading(size->get(), op.getResult(0));
    if (getTensor(size->get()).getShape().back() ==
        getTensor(op.getResult(0)).getShape().back())
      joinColumns(size->get(), op.getResult(0));
  }
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
    return visitBroadcast(broadcast);
  if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
    Value input = reduce.getInput(), result = reduce.getResult();
    joinLeading(input, result);
    if (reduce.isOfGroups())
      addGroups(result, input);
    return;
  }
  if (auto reduce = dyn_cast<tile::ReduceRowsOp>(op)) {
    joinColumns(reduce.getInput(), reduce.getResult());
    if (reduce.keepsRows())
      joinLeading(reduce.getInput(), reduce.getResult());
    return;
  }
  if (auto split = dyn_cast<tile::SplitOp>(op))
    return visitPieces(split.getInput(), split.getPieces());
  if (auto merge = dyn_cast<tile::JoinOp>(op))
    return visitPieces(merge.getResult(), merge.getPieces());
  // A band's rows and the row that stands for them are two dimensions.
  if (auto pack = dyn_cast<tile::PackBandsOp>(op))
    return joinColumns(pack.getInput(), pack.getResult());
  if (auto repeat = dyn_cast<tile::RepeatBandsOp>(op))
    return joinColumns(repeat.getSource(), repeat.getResult());
  // All other ops compute each element from those at the same place.
  for (Value result : op.getResults()) {
    if (!getTensor(result))
      continue;
    for (Value operand : getValueOperands(&op))
      if (RankedTensorType type = getTensor(operand);
          type && type.getRank() == getTensor(result).getRank())
        for (unsigned place = 0; place < getRank(result); ++place)
          join(operand, place, result, place);
  }
}
