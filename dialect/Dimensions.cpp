//===- Dimensions.cpp - Which dimensions of values are one ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/Dimensions.h"

#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <map>

using namespace mlir;
using namespace bastile;

static RankedTensorType getTensor(Value value) {
  return dyn_cast_if_present<RankedTensorType>(value.getType());
}

static unsigned getRank(Value value) {
  return static_cast<unsigned>(getTensor(value).getRank());
}

ValueDimensions::ValueDimensions(Block &block, ArrayRef<Numbers> known) {
  for (BlockArgument argument : block.getArguments())
    addValue(argument);
  for (Operation &op : block)
    for (Value result : op.getResults())
      addValue(result);
  dimensions.grow(numPlaces);
  joinNamed(block);
  joinKnown(block, known);
  for (Operation &op : block)
    visit(op);
  joinParts();
  joinColumnsOfPieces(block);
  for (auto &[name, place] : named)
    if (auto dimension = get(place.first, place.second))
      names.try_emplace(*dimension, name);
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

/// Makes one dimension of the places of arguments and results that have the
/// same name.
void ValueDimensions::joinNamed(Block &block) {
  auto function = dyn_cast_if_present<FunctionOpInterface>(block.getParentOp());
  if (!function)
    return;
  StringRef attribute = tile::ProgramOp::kDimensionsAttrName;
  for (BlockArgument argument : block.getArguments())
    joinNamed(argument, function.getArgAttrOfType<ArrayAttr>(
                            argument.getArgNumber(), attribute));
  if (!block.mightHaveTerminator())
    return;
  for (auto [index, value] :
       llvm::enumerate(block.getTerminator()->getOperands()))
    if (index < function.getNumResults())
      joinNamed(value,
                function.getResultAttrOfType<ArrayAttr>(index, attribute));
}

void ValueDimensions::joinNamed(Value value, ArrayAttr given) {
  if (!given || !getTensor(value) || getRank(value) != given.size())
    return;
  for (auto [place, attribute] : llvm::enumerate(given)) {
    auto name = dyn_cast<StringAttr>(attribute);
    if (!name)
      continue;
    auto [it, isNew] = named.try_emplace(name, value, place);
    if (!isNew)
      join(it->second.first, it->second.second, value, place);
  }
}

/// Makes one dimension of the places of arguments and results that have the
/// same number elsewhere.
void ValueDimensions::joinKnown(Block &block, ArrayRef<Numbers> known) {
  if (known.empty())
    return;
  SmallVector<Value> values(block.getArguments());
  llvm::append_range(values, block.getTerminator()->getOperands());
  DenseMap<Dimension, std::pair<Value, unsigned>> first;
  for (auto [value, numbers] : llvm::zip_equal(values, known))
    for (auto [place, number] : llvm::enumerate(numbers)) {
      if (!number || !get(value, place))
        continue;
      auto [it, isNew] = first.try_emplace(*number, value, place);
      if (!isNew)
        join(it->second.first, it->second.second, value, place);
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

/// Makes one dimension of the columns of two tensors that have as many.
void ValueDimensions::joinSameColumns(Value lhs, Value rhs) {
  if (getTensor(lhs).getShape().back() == getTensor(rhs).getShape().back())
    joinColumns(lhs, rhs);
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
/// whole, which lies in memory in runs of `strands` interleaved pieces.
void ValueDimensions::visitPieces(Value whole, ValueRange given,
                                  int64_t strands) {
  for (Value piece : given) {
    joinLeading(whole, piece);
    joinColumns(given.front(), piece);
  }
  Value piece = given.front();
  pieces.push_back({places.at(piece) + getRank(piece) - 1,
                    places.at(whole) + getRank(whole) - 1,
                    static_cast<int64_t>(given.size()), strands});
}

/// The pieces of one tensor have the dimension in common that it is cut along.
void ValueDimensions::visitPiece(tile::PieceOp piece) {
  Value source = piece.getSource(), result = piece.getResult();
  const auto cut = static_cast<unsigned>(piece.getDimension());
  for (unsigned place = 0; place < getRank(source); ++place)
    if (place != cut)
      join(source, place, result, place);
  const int64_t count = piece.getCount();
  pieces.push_back({places.at(result) + cut, places.at(source) + cut, count,
                    piece.getInterleaved() ? count : 1});
}

/// The result's rows are those of one operand and its columns those of the
/// other one. Of the batch, whose dimensions count from the last one on, each
/// has what it does not add up over.
void ValueDimensions::visitDot(tile::DotOp dot) {
  Value a = dot.getA(), b = dot.getB(), result = dot.getResult();
  auto getPlace = [](Value value, unsigned ahead) -> std::optional<unsigned> {
    const unsigned last = getRank(value) - 1;
    return ahead <= last ? std::optional(last - ahead) : std::nullopt;
  };
  auto joinPlaces = [&](Value lhs, std::optional<unsigned> left, Value rhs,
                        std::optional<unsigned> right) {
    if (left && right)
      join(lhs, *left, rhs, *right);
  };
  join(a, dot.getContractedDimension(0), b, dot.getContractedDimension(1));
  join(a, dot.getFreeDimension(0), result, *getPlace(result, 1));
  join(b, dot.getFreeDimension(1), result, *getPlace(result, 0));
  for (unsigned ahead = 2; getPlace(a, ahead) || getPlace(b, ahead); ++ahead) {
    joinPlaces(a, getPlace(a, ahead), b, getPlace(b, ahead));
    for (Value operand : {a, b})
      joinPlaces(operand, getPlace(operand, ahead), result,
                 getPlace(result, ahead));
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
/// many columns, as the groups and the places in them are the same; of those
/// that consist of the same pieces; and of pieces of the same rows.
void ValueDimensions::joinParts() {
  using Key = std::tuple<Dimension, int64_t, int64_t>;
  bool isChanged = true;
  while (isChanged) {
    isChanged = false;
    auto joinFound = [&](std::map<Key, Dimension> &found, const Key &key,
                         unsigned place) {
      Dimension dimension = dimensions.findLeader(place);
      auto [it, isNew] = found.try_emplace(key, dimension);
      if (isNew || dimensions.findLeader(it->second) == dimension)
        return;
      dimensions.join(it->second, dimension);
      isChanged = true;
    };
    std::map<Key, Dimension> ofGroups, ofPieces, inRows;
    for (const Groups &group : groups)
      joinFound(ofGroups,
                {dimensions.findLeader(group.statistics), group.size, 0},
                group.columns);
    for (const Pieces &part : pieces) {
      joinFound(ofPieces,
                {dimensions.findLeader(part.piece), part.count, part.strands},
                part.whole);
      joinFound(inRows,
                {dimensions.findLeader(part.whole), part.count, part.strands},
                part.piece);
    }
  }
}

/// The operand that gives `op` its size if it is a piece of a row, whose length
/// others may have by chance.
static Value getPieceOfSize(Operation &op) {
  OpOperand *size = getSizeOperand(&op);
  return size && size->get().getDefiningOp<tile::SplitOp>() ? size->get()
                                                            : Value();
}

/// Whether `op` repeats groups of columns and takes its size from a row that is
/// in pieces: the groups may be the columns of a piece, so that the row has as
/// many columns as the result by chance.
static bool repeatsGroupsLikePieces(Operation &op) {
  auto broadcast = dyn_cast<tile::BroadcastOp>(op);
  RankedTensorType source =
      broadcast ? getTensor(broadcast.getSource()) : RankedTensorType();
  if (!source || source.getRank() == 0)
    return false;
  const int64_t length = source.getShape().back();
  if (length == 1 || length == broadcast.getType().getShape().back())
    return false;
  Value like = broadcast.getLike();
  return like.getDefiningOp<tile::JoinOp>() ||
         llvm::any_of(like.getUsers(), llvm::IsaPred<tile::SplitOp>);
}

/// Gives columns that belong to no tensor in memory those of the piece of a row
/// that their size is taken from.
void ValueDimensions::joinColumnsOfPieces(Block &block) {
  DenseSet<Dimension> ofTensors;
  auto add = [&](Value value) {
    if (auto columns = getTensor(value) ? getColumns(value) : std::nullopt)
      ofTensors.insert(*columns);
  };
  llvm::for_each(block.getArguments(), add);
  for (Operation &op : block)
    if (isa<tile::DotOp, tile::SplitOp, tile::PieceOp, tile::JoinOp>(op))
      llvm::for_each(op.getResults(), add);
  bool isChanged = false;
  for (Operation &op : block) {
    Value like = getPieceOfSize(op);
    auto columns = like ? getColumns(op.getResult(0)) : std::nullopt;
    if (!columns || ofTensors.contains(*columns))
      continue;
    joinSameColumns(like, op.getResult(0));
    add(op.getResult(0));
    isChanged = true;
  }
  if (isChanged)
    joinParts();
}

void ValueDimensions::visit(Operation &op) {
  if (OpOperand *size = getSizeOperand(&op)) {
    joinLeading(size->get(), op.getResult(0));
    if (!getPieceOfSize(op) && !repeatsGroupsLikePieces(op))
      joinSameColumns(size->get(), op.getResult(0));
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
    return visitPieces(split.getInput(), split.getPieces(), split.getStrands());
  if (auto merge = dyn_cast<tile::JoinOp>(op))
    return visitPieces(merge.getResult(), merge.getPieces(),
                       merge.getStrands());
  if (auto piece = dyn_cast<tile::PieceOp>(op))
    return visitPiece(piece);
  if (auto dot = dyn_cast<tile::DotOp>(op))
    return visitDot(dot);
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

//===----------------------------------------------------------------------===//
// What ops do along dimensions
//===----------------------------------------------------------------------===//

void bastile::visitReductions(Operation &op,
                              function_ref<void(Value, unsigned)> visit) {
  auto getLastPlace = [](Value value) { return getRank(value) - 1; };
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return visit(reduce.getInput(), getLastPlace(reduce.getInput()));
  if (auto reduce = dyn_cast<tile::ReduceBandsOp>(op))
    return visit(reduce.getInput(), getLastPlace(reduce.getInput()) - 1);
  if (auto reduce = dyn_cast<tile::ReduceRowsOp>(op))
    for (int64_t place : reduce.getCombinedDimensions())
      visit(reduce.getInput(), place);
}

tile::DotOp bastile::getDot(tile::KernelOp kernel) {
  auto dots = kernel.getBody().front().getOps<tile::DotOp>();
  return dots.empty() ? tile::DotOp() : *dots.begin();
}

bool bastile::mayFollowDot(Operation *op) {
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op)) {
    auto source = dyn_cast<RankedTensorType>(broadcast.getSource().getType());
    const int64_t length = source ? source.getShape().back() : 1;
    return length == 1 || length == broadcast.getType().getShape().back();
  }
  return OpTrait::hasElementwiseMappableTraits(op) ||
         isa<tile::CopyOp, arith::ConstantOp>(op);
}

int64_t bastile::getBatchSize(RankedTensorType type, int64_t ahead) {
  const int64_t dimension = type.getRank() - 3 - ahead;
  return dimension < 0 ? 1 : type.getDimSize(dimension);
}

int64_t bastile::getBatchSize(RankedTensorType a, RankedTensorType b,
                              int64_t ahead) {
  const int64_t left = getBatchSize(a, ahead), right = getBatchSize(b, ahead);
  if (left == 1)
    return right;
  return right != 1 && ShapedType::isDynamic(left) ? right : left;
}

bool bastile::sumsOverBatch(tile::DotOp dot) {
  auto a = cast<RankedTensorType>(dot.getA().getType());
  auto b = cast<RankedTensorType>(dot.getB().getType());
  const int64_t end = std::max(a.getRank(), b.getRank()) - 2;
  return llvm::any_of(llvm::seq<int64_t>(0, end), [&](int64_t ahead) {
    return getBatchSize(dot.getSumType(), ahead) == 1 &&
           getBatchSize(a, b, ahead) != 1;
  });
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

LogicalResult bastile::verifyDimensionNames(FunctionOpInterface function) {
  StringRef attributeName = tile::ProgramOp::kDimensionsAttrName;
  DenseMap<Attribute, int64_t> sizes;
  auto verify = [&](StringRef what, unsigned index, Type type,
                    Attribute attribute) -> LogicalResult {
    if (!attribute)
      return success();
    auto error = [&] {
      return function.emitOpError(what)
             << " " << index << " of type " << type << " has '" << attributeName
             << "' " << attribute;
    };
    auto tensor = dyn_cast<RankedTensorType>(type);
    auto names = dyn_cast<ArrayAttr>(attribute);
    if (!tensor || !names ||
        static_cast<int64_t>(names.size()) != tensor.getRank())
      return error() << ", not a name or 1 for each dimension";
    for (auto [name, size] : llvm::zip_equal(names, tensor.getShape())) {
      auto number = dyn_cast<IntegerAttr>(name);
      if (!isa<StringAttr>(name) && !(number && number.getInt() == 1))
        return error() << ", not a name or 1 for each dimension";
      auto [it, isNew] = sizes.try_emplace(name, number ? 1 : size);
      if (it->second != size && !ShapedType::isDynamic(it->second) &&
          !ShapedType::isDynamic(size))
        return error() << ", but " << name << " has the size " << it->second;
      if (ShapedType::isDynamic(it->second))
        it->second = size;
    }
    return success();
  };
  for (auto [index, type] : llvm::enumerate(function.getArgumentTypes()))
    if (failed(verify("argument", index, type,
                      function.getArgAttr(index, attributeName))))
      return failure();
  for (auto [index, type] : llvm::enumerate(function.getResultTypes()))
    if (failed(verify("result", index, type,
                      function.getResultAttr(index, attributeName))))
      return failure();
  return success();
}
