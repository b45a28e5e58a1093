//===- KernelShape.cpp - What scheduling needs of a kernel ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/KernelShape.h"

#include "passes/Sizes.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace bastile {

bool isRowReduction(Operation *op) {
  auto reduce = dyn_cast<tile::ReduceOp>(op);
  return reduce && !reduce.isOfGroups();
}

int64_t getReductionDepth(Value value, DenseMap<Value, int64_t> &depths) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return 0;
  auto it = depths.find(value);
  if (it != depths.end())
    return it->second;
  int64_t depth = 0;
  for (Value operand : getValueOperands(op))
    depth = std::max(depth, getReductionDepth(operand, depths));
  depth += isRowReduction(op);
  depths[value] = depth;
  return depth;
}

/// Whether `value` is only loaded or stored in pieces, or not at all: only its
/// sizes are of use.
static bool isOnlyPieces(Value value) {
  if (value.getDefiningOp<tile::JoinOp>())
    return true;
  return isa<BlockArgument>(value) &&
         llvm::all_of(value.getUses(), [](OpOperand &use) {
           Operation *user = use.getOwner();
           return isa<tile::SplitOp>(user) || getSizeOperand(user) == &use;
         });
}

KernelShape KernelShape::get(tile::KernelOp kernel) {
  KernelShape shape;
  DenseMap<Value, int64_t> depths;
  llvm::SetVector<int64_t> lengths;
  auto visitValue = [&](Value value) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    if (tensor && tensor.getRank() >= 2)
      shape.leading = tensor.getRank() - 1;
    if (tensor && !isOnlyPieces(value)) {
      shape.rowLength = std::max(shape.rowLength, tensor.getShape().back());
      lengths.insert(tensor.getShape().back());
    }
    shape.reductionDepth =
        std::max(shape.reductionDepth, getReductionDepth(value, depths));
    shape.usesFloat64 |= getElementTypeOrSelf(value.getType()).isF64();
  };
  for (BlockArgument argument : kernel.getArguments()) {
    visitValue(argument);
    shape.hasFactor |= bool(kernel.getArgAttr(
        argument.getArgNumber(), tile::TileDialect::kFactorAttrName));
  }
  for (Operation &op : kernel.getBody().front()) {
    if (auto reduce = dyn_cast<tile::ReduceRowsOp>(op)) {
      (reduce.getPartial() ? shape.hasPartialRows : shape.hasCombinedRows) =
          true;
      shape.hasLongPartialRows |=
          reduce.getPartial() &&
          reduce.getInput().getType().getShape().back() > 1;
      // Its rank is that of the partial results, one row a program.
      if (reduce.getPartial())
        continue;
    }
    if (auto reduce = dyn_cast<tile::ReduceBandsOp>(op))
      shape.band = reduce.getBand();
    for (Value result : op.getResults())
      visitValue(result);
    shape.numReductions += isRowReduction(&op);
    ++shape.numOps;
  }
  for (int64_t length : lengths)
    if (length != 1 && length != shape.rowLength)
      shape.groups.push_back(shape.rowLength / length);

  auto visitOperand = [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getShape().back() == 1 ||
        tensor.getShape().back() % shape.rowLength != 0)
      return;
    int64_t bytes = tensor.getElementTypeBitWidth() / 8;
    shape.minElementBytes = std::min(shape.minElementBytes, bytes);
  };
  for (Type type : kernel.getArgumentTypes())
    visitOperand(type);
  for (Type type : kernel.getResultTypes())
    visitOperand(type);
  return shape;
}

int64_t KernelShape::getVector(int64_t bytes) const {
  int64_t vector = std::max<int64_t>(1, bytes / minElementBytes);
  auto divides = [&](int64_t columns) { return columns % vector == 0; };
  while (!divides(rowLength) || !llvm::all_of(groups, divides))
    vector /= 2;
  return vector;
}

} // namespace bastile
