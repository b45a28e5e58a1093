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

ProgramOperands::ProgramOperands(tile::KernelOp kernel,
                                 const KernelSpace &space)
    : kernel(kernel), space(space) {
  Block &body = kernel.getBody().front();
  for (BlockArgument argument : body.getArguments()) {
    const bool isOfFactor =
        llvm::any_of(argument.getUsers(),
                     [&](Operation *user) { return space.isOfFactor(user); });
    operands.push_back(
        {cast<RankedTensorType>(argument.getType()),
         space.isTransposed() && isOfFactor ? Axis::Streamed : Axis::Rows,
         Axis::None, argument.getArgNumber()});
  }
  for (Operation &op : body.without_terminator()) {
    auto dot = dyn_cast<tile::DotOp>(op);
    OpOperand *sizes = getSizeOperand(&op);
    for (OpOperand &use : op.getOpOperands()) {
      auto argument = dyn_cast<BlockArgument>(use.get());
      if (!argument || &use == sizes)
        continue;
      if (dot) {
        add(argument, getAxes(dot, use.getOperandNumber()), /*isFactor=*/true);
        continue;
      }
      add(argument, getAxes(argument, space.isOfFactor(&op)),
          /*isFactor=*/false);
    }
  }
  numInputs = operands.size();
  for (auto [index, value] :
       llvm::enumerate(body.getTerminator()->getOperands()))
    operands.push_back(
        {cast<RankedTensorType>(value.getType()), Axis::Rows,
         space.isStreamed(value) ? Axis::Streamed : Axis::Columns,
         static_cast<unsigned>(index), /*isResult=*/true});
}

/// The axes of the matrices of a factor of `dot`.
ProgramOperands::Axes ProgramOperands::getAxes(tile::DotOp dot,
                                               unsigned index) const {
  const bool isInner = space.isInner(dot);
  const Axis contracted = isInner ? Axis::Whole : Axis::Streamed;
  const bool hasRows =
      isInner && space.isTransposed() ? index == 1 : index == 0;
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

void ProgramOperands::add(BlockArgument argument, Axes axes, bool isFactor) {
  auto [row, column] = axes;
  for (Operand &operand : operands)
    if (operand.index == argument.getArgNumber() && operand.row == row &&
        operand.column == column) {
      operand.isFactor |= isFactor;
      return;
    }
  // The kernel's own operand takes the first axes.
  const Operand operand{cast<RankedTensorType>(argument.getType()),
                        row,
                        column,
                        argument.getArgNumber(),
                        /*isResult=*/false,
                        isFactor};
  if (Operand &own = operands[operand.index]; own.column == Axis::None) {
    own = operand;
    return;
  }
  operands.push_back(operand);
  repeated.push_back(argument);
}

unsigned ProgramOperands::find(Value argument, Axes axes) const {
  const Axis row = axes.first, column = axes.second;
  const unsigned index = cast<BlockArgument>(argument).getArgNumber();
  const auto *it = llvm::find_if(operands, [&](const Operand &operand) {
    return !operand.isResult && operand.index == index && operand.row == row &&
           operand.column == column;
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

/// A size of 1 has no name, unless other tensors may have the dimension with a
/// size that only a call knows.
Attribute ProgramOperands::getDimension(const Operand &operand,
                                        unsigned place) const {
  Builder builder(operand.type.getContext());
  const unsigned ahead = operand.type.getRank() - 1 - place;
  const int64_t size = operand.type.getDimSize(place);
  if (size == 1 && !(operand.isFactor && ahead < 2))
    return builder.getI64IntegerAttr(1);
  if (ahead >= 2)
    return builder.getStringAttr(getBatchName(ahead - 2));
  switch (ahead == 0 ? operand.column : operand.row) {
  case Axis::Rows:
    return builder.getStringAttr("m");
  case Axis::Columns:
    return builder.getStringAttr("n");
  case Axis::Streamed:
    return builder.getStringAttr("k");
  case Axis::Whole:
    if (!ShapedType::isDynamic(size))
      return builder.getI64IntegerAttr(size);
    return builder.getStringAttr("d");
  case Axis::None:
    break;
  }
  return ShapedType::isDynamic(size) ? Attribute(builder.getStringAttr(
                                           "s" + std::to_string(operand.index)))
                                     : builder.getI64IntegerAttr(size);
}

llvm::SetVector<Attribute> ProgramOperands::getNames() const {
  llvm::SetVector<Attribute> names;
  for (const Operand &operand : operands)
    for (unsigned place = 0; place < operand.type.getRank(); ++place)
      if (Attribute name = getDimension(operand, place); isa<StringAttr>(name))
        names.insert(name);
  return names;
}
