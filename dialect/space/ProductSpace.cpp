//===- ProductSpace.cpp - The space of a kernel over m, n and k -----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/KernelSpace.h"
#include "dialect/Rows.h"
#include "dialect/space/DimensionList.h"

using namespace mlir;
using namespace bastile;

namespace {

/// Finds the space of a kernel that goes along m, n and k.
class ProductSpace {
public:
  explicit ProductSpace(tile::KernelOp kernel)
      : kernel(kernel), body(kernel.getBody().front()),
        builder(kernel.getContext()), factors(body), list(kernel.getContext()) {
  }

  tile::SpaceAttr find();

private:
  /// One way in which an argument is read: the dimensions of its matrices, null
  /// where only the number of columns is of use.
  struct Reading {
    StringAttr row, column;
    bool isFactor = false;
  };

  Reading getComputed(Operation *op);
  Reading getReading(OpOperand &use);
  Reading getSizesReading(BlockArgument argument);
  StringAttr getWholeName(tile::DotOp dot);
  Reading getReading(tile::DotOp dot, unsigned index);
  void addReading(BlockArgument argument, const Reading &reading);
  void collectReadings();
  Attribute getName(StringAttr name, int64_t size) {
    list.noteSize(name, size);
    return name;
  }
  StringAttr name(const Twine &text) { return builder.getStringAttr(text); }
  Attribute projectPlace(RankedTensorType type, int64_t place, StringAttr row,
                         StringAttr column, unsigned argument = 0);
  ArrayAttr project(Value value, bool isResult);
  ArrayAttr projectArgument(BlockArgument argument, const Reading &reading);
  void markReductions(ArrayRef<Attribute> arguments);

  tile::KernelOp kernel;
  Block &body;
  Builder builder;
  const FactorOps factors;
  /// By argument, in the order in which ops read it.
  SmallVector<SmallVector<Reading>> readings;
  std::optional<ValueDimensions> dimensions;
  /// The names of what inner products sum over.
  DenseMap<Operation *, StringAttr> wholeNames;
  DimensionList list;
};

} // namespace

/// The name of the dimension that `dot`, an inner product, sums over.
StringAttr ProductSpace::getWholeName(tile::DotOp dot) {
  StringAttr &whole = wholeNames[dot];
  if (whole)
    return whole;
  if (!dimensions)
    dimensions.emplace(body);
  auto getDimension = [&](tile::DotOp dot) {
    return dimensions->get(dot.getA(), dot.getContractedDimension(0));
  };
  // Another product may sum over the same dimension.
  for (auto &[other, name] : wholeNames)
    if (name && getDimension(dot) &&
        getDimension(dot) == getDimension(cast<tile::DotOp>(other)))
      return whole = name;
  return whole = list.createName("d");
}

ProductSpace::Reading ProductSpace::getReading(tile::DotOp dot,
                                               unsigned index) {
  const bool isInner = factors.contains(dot);
  StringAttr contracted = isInner ? getWholeName(dot) : name("k");
  const bool hasRows = index == factors.getRowFactor(dot);
  StringAttr free = name(hasRows ? "m" : isInner ? "k" : "n");
  return dot.getContract()[index] == 1
             ? Reading{free, contracted, /*isFactor=*/true}
             : Reading{contracted, free, /*isFactor=*/true};
}

/// The dimensions of the matrices that `op` computes.
ProductSpace::Reading ProductSpace::getComputed(Operation *op) {
  const bool isStreamed = op && factors.contains(op);
  if (isStreamed && factors.isTransposed())
    return {name("k"), name("m")};
  return {name("m"), name(isStreamed ? "k" : "n")};
}

/// How an argument is read that gives nothing but sizes. Its columns are those
/// of what has as many as only it knows.
ProductSpace::Reading ProductSpace::getSizesReading(BlockArgument argument) {
  Reading reading{name("m"), StringAttr()};
  for (Operation *user : argument.getUsers()) {
    const Reading computed = getComputed(user);
    if (factors.contains(user))
      reading.row = computed.row;
    // The argument may itself be a result of the kernel.
    const Value result =
        user == body.getTerminator() ? argument : Value(user->getResult(0));
    auto type = cast<RankedTensorType>(result.getType());
    if (ShapedType::isDynamic(type.getShape().back()))
      reading.column = computed.column;
  }
  return reading;
}

/// How an op that is no product reads an argument.
ProductSpace::Reading ProductSpace::getReading(OpOperand &use) {
  if (factors.isTransposed() && factors.contains(use.getOwner()))
    return {name("k"), name("m")};
  return {name("m"), name(factors.readsStream(use) ? "k" : "n")};
}

void ProductSpace::addReading(BlockArgument argument, const Reading &reading) {
  SmallVector<Reading> &all = readings[argument.getArgNumber()];
  for (Reading &known : all)
    if (known.row == reading.row && known.column == reading.column) {
      known.isFactor |= reading.isFactor;
      return;
    }
  all.push_back(reading);
}

void ProductSpace::collectReadings() {
  readings.resize(body.getNumArguments());
  for (Operation &op : body.without_terminator()) {
    auto dot = dyn_cast<tile::DotOp>(op);
    OpOperand *sizes = getSizeOperand(&op);
    for (OpOperand &use : op.getOpOperands()) {
      auto argument = dyn_cast<BlockArgument>(use.get());
      if (!argument || &use == sizes)
        continue;
      if (dot)
        addReading(argument, getReading(dot, use.getOperandNumber()));
      else
        addReading(argument, getReading(use));
    }
  }
  // A factor that is a result, too, is read once more to be stored.
  for (Value result : body.getTerminator()->getOperands())
    if (auto argument = dyn_cast<BlockArgument>(result);
        argument && !readings[argument.getArgNumber()].empty())
      addReading(argument, getComputed(/*op=*/nullptr));
  for (BlockArgument argument : body.getArguments())
    if (SmallVector<Reading> &all = readings[argument.getArgNumber()];
        all.empty())
      all.push_back(getSizesReading(argument));
}

/// What a projection says of a tensor of `type` that is no factor. A size of 1
/// has no name.
Attribute ProductSpace::projectPlace(RankedTensorType type, int64_t place,
                                     StringAttr row, StringAttr column,
                                     unsigned argument) {
  const int64_t ahead = type.getRank() - 1 - place;
  const int64_t size = type.getDimSize(place);
  if (size == 1)
    return builder.getI64IntegerAttr(1);
  if (ahead >= 2)
    return getName(name("b" + Twine(ahead - 2)), size);
  if (ahead == 1)
    return getName(row, size);
  if (column)
    return getName(column, size);
  return ShapedType::isDynamic(size)
             ? getName(name("s" + Twine(argument)), size)
             : Attribute(builder.getI64IntegerAttr(size));
}

/// The dimensions of a factor's matrices have names whatever their size, as
/// other tensors may have them with a size that only a call knows.
ArrayAttr ProductSpace::projectArgument(BlockArgument argument,
                                        const Reading &reading) {
  auto type = cast<RankedTensorType>(argument.getType());
  SmallVector<Attribute> places;
  for (int64_t place = 0; place < type.getRank(); ++place) {
    const int64_t ahead = type.getRank() - 1 - place;
    places.push_back(reading.isFactor && ahead < 2
                         ? getName(ahead == 0 ? reading.column : reading.row,
                                   type.getDimSize(place))
                         : projectPlace(type, place, reading.row,
                                        reading.column,
                                        argument.getArgNumber()));
  }
  return builder.getArrayAttr(places);
}

/// Of a value that an op computes, or of a result. An inner product has k for
/// its columns even where there is one.
ArrayAttr ProductSpace::project(Value value, bool isResult) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  Operation *op = value.getDefiningOp();
  SmallVector<Attribute> places;
  if (!type)
    return builder.getArrayAttr(places);
  const Reading computed = getComputed(op);
  for (int64_t place = 0; place < type.getRank(); ++place)
    places.push_back(projectPlace(type, place, computed.row, computed.column));
  if (!isResult && isa_and_present<tile::DotOp>(op) && factors.contains(op)) {
    // Of the dimensions of its tile, k has a name whatever its size.
    const int64_t place = type.getRank() - (computed.row == name("k") ? 2 : 1);
    places[place] = getName(name("k"), type.getDimSize(place));
  }
  return builder.getArrayAttr(places);
}

/// Products and reductions sum over k, and inner products over a dimension of
/// their own. Over dimensions of the batch that they do not have, products are
/// added up.
void ProductSpace::markReductions(ArrayRef<Attribute> arguments) {
  DenseSet<Attribute> kept;
  for (auto dot : body.getOps<tile::DotOp>()) {
    list.get(factors.contains(dot) ? getWholeName(dot) : name("k"))
        .isReduction = true;
    kept.insert_range(project(dot.getResult(), /*isResult=*/true));
  }
  for (Operation &op : body)
    if (isRowReduction(&op))
      list.get(name("k")).isReduction = true;
  if (kept.empty())
    return;
  for (Attribute argument : arguments)
    for (Attribute place : cast<ArrayAttr>(cast<ArrayAttr>(argument)[0]))
      if (auto batch = dyn_cast<StringAttr>(place);
          batch && batch.getValue().starts_with("b") && !kept.contains(batch))
        list.get(batch).isReduction = true;
}

tile::SpaceAttr ProductSpace::find() {
  collectReadings();
  SmallVector<Attribute> arguments;
  for (BlockArgument argument : body.getArguments()) {
    SmallVector<Attribute> projections;
    for (const Reading &reading : readings[argument.getArgNumber()])
      projections.push_back(projectArgument(argument, reading));
    arguments.push_back(builder.getArrayAttr(projections));
  }
  auto [results, values] = collectProjections(
      body, [&](Value value) { return project(value, /*isResult=*/true); },
      [&](Value value) { return project(value, /*isResult=*/false); });
  markReductions(arguments);
  return tile::SpaceAttr::get(kernel.getContext(), list.takeSorted(),
                              builder.getArrayAttr(arguments), results, values);
}

tile::SpaceAttr bastile::findProductSpace(tile::KernelOp kernel) {
  return ProductSpace(kernel).find();
}
