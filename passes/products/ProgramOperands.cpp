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
  for (BlockArgument argument : body.getArguments())
    operands.push_back({cast<RankedTensorType>(argument.getType()), Axis::Rows,
                        Axis::None, argument.getArgNumber()});
  for (Operation &op : body.without_terminator()) {
    auto dot = dyn_cast<tile::DotOp>(op);
    OpOperand *sizes = getSizeOperand(&op);
    for (OpOperand &use : op.getOpOperands()) {
      auto argument = dyn_cast<BlockArgument>(use.get());
      if (!argument || &use == sizes)
        continue;
      if (dot) {
        auto [row, column] = getAxes(dot, use.getOperandNumber());
        add(argument, row, column, /*isFactor=*/true);
        continue;
      }
      add(argument, Axis::Rows,
          space.readsStream(use) ? Axis::Streamed : Axis::Columns,
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
std::pair<Axis, Axis> ProgramOperands::getAxes(tile::DotOp dot,
                                               unsigned index) const {
  const bool isInner = space.isInner(dot);
  const Axis contracted = isInner ? Axis::Whole : Axis::Streamed;
  const Axis free = index == 0 ? Axis::Rows
                    : isInner  ? Axis::Streamed
                               : Axis::Columns;
  return dot.getContract()[index] == 1 ? std::pair(free, contracted)
                                       : std::pair(contracted, free);
}

void ProgramOperands::add(BlockArgument argument, Axis row, Axis column,
                          bool isFactor) {
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

unsigned ProgramOperands::find(Value argument, Axis row, Axis column) const {
  const unsigned index = cast<BlockArgument>(argument).getArgNumber();
  const auto *it = llvm::find_if(operands, [&](const Operand &operand) {
    return !operand.isResult && operand.index == index && operand.row == row &&
           operand.column == column;
  });
  assert(it != operands.end() && "every use of an argument has an operand");
  return it - operands.begin();
}

unsigned ProgramOperands::findFactor(tile::DotOp dot, unsigned index) const {
  auto [row, column] = getAxes(dot, index);
  return find(dot.getOperand(index), row, column);
}

/// A size of 1 has no name, unless other tensors may have the dimension with a
/// size that only a call knows.
Attribute ProgramOperands::getDimension(const Operand &operand,
                                        unsigned place) const {
  Builder builder(operand.type.getContext());
  const unsigned ahead = operand.type.getRank() - 1 - place;
  const int64_t size = operand.type.getDimSize(place);
  if (operand.isFactor && ahead < 2) {
    switch (ahead == 0 ? operand.column : operand.row) {
    case Axis::Rows:
      return builder.getStringAttr("m");
    case Axis::Columns:
      return builder.getStringAttr("n");
    case Axis::Whole:
      if (!ShapedType::isDynamic(size))
        return builder.getI64IntegerAttr(size);
      return builder.getStringAttr("d");
    default:
      return builder.getStringAttr("k");
    }
  }
  if (size == 1)
    return builder.getI64IntegerAttr(1);
  if (ahead >= 2)
    return builder.getStringAttr(getBatchName(ahead - 2));
  if (ahead == 1)
    return builder.getStringAttr("m");
  if (operand.column == Axis::None)
    return ShapedType::isDynamic(size)
               ? Attribute(
                     builder.getStringAttr("s" + std::to_string(operand.index)))
               : builder.getI64IntegerAttr(size);
  return builder.getStringAttr(operand.column == Axis::Streamed ? "k" : "n");
}

llvm::SetVector<Attribute> ProgramOperands::getNames() const {
  llvm::SetVector<Attribute> names;
  for (const Operand &operand : operands)
    for (unsigned place = 0; place < operand.type.getRank(); ++place)
      if (Attribute name = getDimension(operand, place); isa<StringAttr>(name))
        names.insert(name);
  return names;
}
