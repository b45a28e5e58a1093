//===- ExpandDivisions.cpp - Divisions of integers without a trap ---------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What a division by 0 gives is not defined, nor what the least integer divided
// by -1 does. A processor ends the process over either, and whether an element
// is 0 only data say. So such elements are divided by 1.
//
//===----------------------------------------------------------------------===//

#include "passes/math/ExpandMath.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace bastile;

namespace {

bool isSignedDivision(Operation *op) {
  return isa<arith::DivSIOp, arith::RemSIOp, arith::CeilDivSIOp,
             arith::FloorDivSIOp>(op);
}

/// Whether `op` divides elements; divisions for addresses have the type index.
bool dividesElements(Operation *op) {
  return (isSignedDivision(op) ||
          isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp>(op)) &&
         !getElementTypeOrSelf(op->getResult(0).getType()).isIndex();
}

void guardDivision(Operation *op) {
  Value dividend = op->getOperand(0), divisor = op->getOperand(1);
  Type type = divisor.getType();
  unsigned width = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  APInt known;
  if (matchPattern(divisor, m_ConstantInt(&known)) && !known.isZero() &&
      !known.isAllOnes())
    return;
  ImplicitLocOpBuilder builder(op->getLoc(), op);
  auto constant = [&](const APInt &number) -> Value {
    TypedAttr attribute =
        builder.getIntegerAttr(getElementTypeOrSelf(type), number);
    if (auto vector = dyn_cast<VectorType>(type))
      attribute = DenseElementsAttr::get(vector, Attribute(attribute));
    return arith::ConstantOp::create(builder, attribute);
  };
  auto isEqual = [&](Value value, const APInt &number) -> Value {
    return arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, value,
                                 constant(number));
  };
  Value isUndefined = isEqual(divisor, APInt::getZero(width));
  if (isSignedDivision(op)) {
    Value overflows = arith::AndIOp::create(
        builder, isEqual(dividend, APInt::getSignedMinValue(width)),
        isEqual(divisor, APInt::getAllOnes(width)));
    isUndefined = arith::OrIOp::create(builder, isUndefined, overflows);
  }
  op->setOperand(1,
                 arith::SelectOp::create(builder, isUndefined,
                                         constant(APInt(width, 1)), divisor));
}

} // namespace

void bastile::guardDivisions(Operation *module) {
  SmallVector<Operation *> divisions;
  module->walk([&](Operation *op) {
    if (dividesElements(op))
      divisions.push_back(op);
  });
  llvm::for_each(divisions, guardDivision);
}
