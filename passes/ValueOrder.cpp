//===- ValueOrder.cpp - Values are defined before their uses --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/ValueOrder.h"

#include "mlir/IR/Dominance.h"

using namespace mlir;

/// Whether `definition` stands before `op`, or before an op that holds it. An
/// op of another block does: dominance is checked in all blocks that something
/// branches to.
static bool isBefore(Operation *definition, Operation *op) {
  Operation *user = definition->getBlock()->findAncestorOpInBlock(*op);
  return !user || definition->isBeforeInBlock(user);
}

LogicalResult bastile::verifyOrder(ModuleOp module) {
  DominanceInfo dominance;
  auto result = module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (!block.empty() && !dominance.isReachableFromEntry(&block)) {
          block.front().emitOpError(
              "is in a block that nothing branches to; remove the block");
          return WalkResult::interrupt();
        }
    for (Value operand : op->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      if (!definition || isBefore(definition, op))
        continue;
      InFlightDiagnostic error =
          op->emitOpError("reads a value that is not computed yet");
      if (definition != op)
        error.attachNote(definition->getLoc()) << "it is computed here";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}
