//===- Sizes.cpp - Where the sizes of tensors come from -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Sizes.h"

#include "dialect/Tile.h"

using namespace mlir;

static bool isRowTensor(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() >= 2;
}

/// The operand of `op` that it takes the sizes of its result from.
static OpOperand *getSizeOperand(Operation *op) {
  if (isa<bastile::tile::BroadcastOp>(op))
    return op->getNumOperands() == 2 ? &op->getOpOperand(1) : nullptr;
  if (isa<bastile::tile::IotaOp>(op))
    return &op->getOpOperand(0);
  return nullptr;
}

Value bastile::getSizeRoot(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (OpOperand *source = getSizeOperand(op)) {
      value = source->get();
      continue;
    }
    auto source = llvm::find_if(op->getOperands(), isRowTensor);
    if (source == op->operand_end())
      return value;
    value = *source;
  }
  return value;
}

void bastile::replaceSizeSources(Block &block,
                                 llvm::function_ref<Value(Value)> choose) {
  for (Operation &op : block) {
    OpOperand *source = getSizeOperand(&op);
    if (source && isRowTensor(source->get()))
      source->set(choose(getSizeRoot(source->get())));
  }
}
