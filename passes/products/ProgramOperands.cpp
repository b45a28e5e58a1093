//===- ProgramOperands.cpp - What a program over dimensions takes ---------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/products/ProgramOperands.h"

#include "dialect/Rows.h"

using namespace mlir;
using namespace bastile;

std::string bastile::getBatchName(unsigned ahead) {
  return "b" + std::to_string(ahead);
}

/// The axis that a projection names, `otherwise` for a number.
static Axis getAxis(Attribute place, Axis otherwise) {
  auto name = dyn_cast<StringAttr>(place);
  if (!name)
    return otherwise;
  if (name.getValue() == "m")
    return Axis::Rows;
  if (name.getValue() == "n")
    return Axis::Columns;
  if (name.getValue() == "k")
    return Axis::Streamed;
  return name.getValue().starts_with("d") ? Axis::Whole : Axis::None;
}

/// The operand that has `projection`.
static Operand getOperand(Type type, unsigned index, ArrayAttr projection,
                          bool isRead) {
  ArrayRef<Attribute> places = projection.getValue();
  return {cast<RankedTensorType>(type),
          places.size() < 2 ? Axis::Rows
                            : getAxis(places[places.size() - 2], Axis::Rows),
          isRead ? getAxis(places.back(), Axis::Columns) : Axis::None,
          index,
          /*isResult=*/false,
          /*isFactor=*/false,
          projection};
}

ProgramOperands::ProgramOperands(tile::KernelOp kernel,
                                 const KernelSpace &space)
    : kernel(kernel), space(space) {
  Block &body = kernel.getBody().front();
  const tile::SpaceAttr attribute = kernel.getSpaceAttr();
  auto add = [&](BlockArgument argument, Attribute projection) {
    operands.push_back(getOperand(argument.getType(), argument.getArgNumber(),
                                  cast<ArrayAttr>(projection),
                                  isRead(argument)));
  };
  for (BlockArgument argument : body.getArguments())
    add(argument, attribute.getOfArgument(argument.getArgNumber()).front());
  for (BlockArgument argument : body.getArguments())
    for (Attribute projection :
         attribute.getOfArgument(argument.getArgNumber()).drop_front()) {
      add(argument, projection);
      repeated.push_back(argument);
    }
  numInputs = operands.size();
  for (auto dot : body.getOps<tile::DotOp>())
    for (unsigned index : {0, 1})
      if (isa<BlockArgument>(dot.getOperand(index)))
        operands[findFactor(dot, index)].isFactor = true;
  for (auto [index, type] : llvm::enumerate(kernel.getResultTypes())) {
    operands.push_back(getOperand(type, index, attribute.getOfResult(index),
                                  /*isRead=*/true));
    operands.back().isResult = true;
  }
}

/// The axes of the matrices of a factor of `dot`.
ProgramOperands::Axes ProgramOperands::getAxes(tile::DotOp dot,
                                               unsigned index) const {
  const bool isInner = space.isInner(dot);
  const Axis contracted = isInner ? Axis::Whole : Axis::Streamed;
  const bool hasRows = index == space.getRowFactor(dot);
  const Axis free = hasRows   ? Axis::Rows
                    : isInner ? Axis::Streamed
                              : Axis::Columns;
  return dot.getContract()[index] == 1 ? Axes(free, contracted)
                                       : Axes(contracted, free);
}

/// The axes of what ops read element by element.
ProgramOperands::Axes ProgramOperands::getAxes(Value value,
                                               bool ofFactor) const {
  if (ofFactor && space.isTransposed())
    return {Axis::Streamed, Axis::Rows};
  const bool isStreamed = ofFactor && KernelSpace::hasColumns(value);
  return {Axis::Rows, isStreamed ? Axis::Streamed : Axis::Columns};
}

/// Whether `projection` may be along `axis` in its place `ahead` of the last
/// one: what has the size 1 there is the same along every axis.
static bool isAlong(ArrayAttr projection, size_t ahead, Axis axis) {
  return ahead >= projection.size() ||
         getAxis(projection[projection.size() - 1 - ahead], axis) == axis;
}

unsigned ProgramOperands::find(Value argument, Axes axes) const {
  const unsigned index = cast<BlockArgument>(argument).getArgNumber();
  const auto *it = llvm::find_if(operands, [&](const Operand &operand) {
    return !operand.isResult && operand.index == index &&
           isAlong(operand.projection, /*ahead=*/1, axes.first) &&
           isAlong(operand.projection, /*ahead=*/0, axes.second);
  });
  assert(it != operands.end() && "every use of an argument has an operand");
  return it - operands.begin();
}

unsigned ProgramOperands::find(Value argument, bool ofFactor) const {
  return find(argument, getAxes(argument, ofFactor));
}

unsigned ProgramOperands::findFactor(tile::DotOp dot, unsigned index) const {
  return find(dot.getOperand(index), getAxes(dot, index));
}

/// A dimension that a program has as a whole has no name where its size is
/// static.
Attribute ProgramOperands::getDimension(const Operand &operand,
                                        unsigned place) const {
  const unsigned ahead = operand.type.getRank() - 1 - place;
  const int64_t size = operand.type.getDimSize(place);
  if (ahead < 2 && (ahead == 0 ? operand.column : operand.row) == Axis::Whole &&
      !ShapedType::isDynamic(size))
    return Builder(operand.type.getContext()).getI64IntegerAttr(size);
  return operand.projection[place];
}

llvm::SetVector<Attribute> ProgramOperands::getNames() const {
  llvm::SetVector<Attribute> names;
  for (const Operand &operand : operands)
    for (unsigned place = 0; place < operand.type.getRank(); ++place)
      if (Attribute name = getDimension(operand, place); isa<StringAttr>(name))
        names.insert(name);
  return names;
}
