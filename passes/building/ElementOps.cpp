//===- ElementOps.cpp - Ops of tensors on tiles ---------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/building/ElementOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace bastile;

Value bastile::emitElements(
    OpBuilder &builder, OpResult result, llvm::function_ref<Value(Value)> emit,
    llvm::function_ref<RankedTensorType(RankedTensorType)> getTileType) {
  Operation *op = result.getOwner();
  auto type = dyn_cast<RankedTensorType>(result.getType());
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op)) {
    Value source = emit(broadcast.getSource());
    if (source.getType() == getTileType(type))
      return source;
    return tile::BroadcastOp::create(builder, op->getLoc(), getTileType(type),
                                     source, Value());
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && type) {
    auto splat = cast<SplatElementsAttr>(constant.getValue());
    return arith::ConstantOp::create(builder, op->getLoc(),
                                     splat.resizeSplat(getTileType(type)));
  }
  IRMapping operands;
  for (Value operand : op->getOperands())
    operands.map(operand, emit(operand));
  Operation *clone = builder.clone(*op, operands);
  for (Value cloned : clone->getResults())
    if (auto tensor = dyn_cast<RankedTensorType>(cloned.getType()))
      cloned.setType(getTileType(tensor));
  return clone->getResult(result.getResultNumber());
}
