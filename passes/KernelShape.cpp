//===- KernelShape.cpp - What scheduling needs of a kernel ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/KernelShape.h"

using namespace mlir;

namespace bastile {

int64_t getReductionDepth(Value value, DenseMap<Value, int64_t> &depths) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return 0;
  auto it = depths.find(value);
  if (it != depths.end())
    return it->second;
  int64_t depth = 0;
  // The tensor a broadcast is like lends its sizes, not its values.
  ValueRange operands = op->getOperands();
  if (isa<tile::BroadcastOp>(op))
    operands = operands.take_front(1);
  for (Value operand : operands)
    depth = std::max(depth, getReductionDepth(operand, depths));
  depth += isa<tile::ReduceOp>(op);
  depths[value] = depth;
  return depth;
}

KernelShape KernelShape::get(tile::KernelOp kernel) {
  KernelShape shape;
  DenseMap<Value, int64_t> depths;
  auto visitValue = [&](Value value) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    if (tensor && tensor.getRank() >= 2) {
      shape.leading = tensor.getRank() - 1;
      shape.rowLength = std::max(shape.rowLength, tensor.getShape().back());
    }
    shape.reductionDepth =
        std::max(shape.reductionDepth, getReductionDepth(value, depths));
    shape.usesFloat64 |= getElementTypeOrSelf(value.getType()).isF64();
  };
  for (BlockArgument argument : kernel.getArguments())
    visitValue(argument);
  for (Operation &op : kernel.getBody().front()) {
    for (Value result : op.getResults())
      visitValue(result);
    shape.numReductions += isa<tile::ReduceOp>(op);
  }

  auto visitOperand = [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getShape().back() != shape.rowLength)
      return;
    int64_t bytes = tensor.getElementTypeBitWidth() / 8;
    shape.minElementBytes = std::min(shape.minElementBytes, bytes);
    shape.rowOperands += tensor.getRank() >= 2;
  };
  for (Type type : kernel.getArgumentTypes())
    visitOperand(type);
  for (Type type : kernel.getResultTypes())
    visitOperand(type);
  return shape;
}

int64_t KernelShape::getVector(int64_t bytes) const {
  int64_t vector = std::max<int64_t>(1, bytes / minElementBytes);
  while (rowLength % vector != 0)
    vector /= 2;
  return vector;
}

} // namespace bastile
