//===- HiddenErrors.cpp - What roundings and kernels hide -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/HiddenErrors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace bastile;

bool bastile::isNarrowFloat(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() <= 16;
}

bool bastile::asksForEqual(Operation *op) {
  using Predicate = arith::CmpFPredicate;
  auto compare = dyn_cast<arith::CmpFOp>(op);
  return compare && llvm::is_contained({Predicate::OEQ, Predicate::UEQ,
                                        Predicate::ONE, Predicate::UNE},
                                       compare.getPredicate());
}

bool bastile::hidesErrorsOf(tile::KernelOp kernel, unsigned position) {
  llvm::SetVector<Value> reached;
  reached.insert(kernel.getArgument(position));
  for (size_t next = 0; next < reached.size(); ++next)
    for (OpOperand &use : reached[next].getUses()) {
      Operation *user = use.getOwner();
      if (isa<tile::ReturnOp>(user)) {
        if (!kernel.getResultAttr(use.getOperandNumber(),
                                  tile::TileDialect::kApproximateAttrName))
          return false;
        continue;
      }
      if (asksForEqual(user) || user->getNumRegions() > 0)
        return false;
      for (Value result : user->getResults())
        if (!isNarrowFloat(result.getType()))
          reached.insert(result);
    }
  return true;
}
