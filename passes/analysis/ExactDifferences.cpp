//===- ExactDifferences.cpp - Where a product is to be rounded ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/ExactDifferences.h"

#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace bastile;

namespace {

constexpr StringLiteral kExactAttrName = "tile.exact";
/// How many ops a number is compared by, and how many a choice looks through.
constexpr unsigned kMostDepth = 6, kMostValues = 32;

bool isSame(Value lhs, Value rhs, unsigned depth = 0) {
  if (lhs == rhs)
    return true;
  Operation *one = lhs.getDefiningOp(), *other = rhs.getDefiningOp();
  return one && other && depth < kMostDepth && isPure(one) &&
         one->getNumResults() == 1 && one->getName() == other->getName() &&
         lhs.getType() == rhs.getType() && one->getNumRegions() == 0 &&
         one->getAttrDictionary() == other->getAttrDictionary() &&
         one->getNumOperands() == other->getNumOperands() &&
         llvm::all_of(
             llvm::zip(one->getOperands(), other->getOperands()),
             [&](auto pair) {
               auto [of, with] = pair;
               return isSame(of, with, depth + 1);
             });
}

/// The numbers of which `op` gives one, but for its sign.
ValueRange getChoices(Operation *op) {
  using Kind = tile::ReduceKind;
  auto chooses = [](Kind kind) {
    return kind == Kind::Max || kind == Kind::Min;
  };
  if (auto reduction = dyn_cast<tile::ReduceOp>(op))
    return chooses(reduction.getKind()) ? op->getOperands() : ValueRange();
  if (auto reduction = dyn_cast<tile::ReduceRowsOp>(op))
    return chooses(reduction.getKind()) ? op->getOperands().take_front(1)
                                        : ValueRange();
  if (isa<arith::SelectOp>(op))
    return op->getOperands().drop_front();
  if (isa<tile::BroadcastOp>(op))
    return op->getOperands().take_front(1);
  if (isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
          arith::MinNumFOp, arith::NegFOp, math::AbsFOp, tile::StopGradientOp>(
          op))
    return op->getOperands();
  return {};
}

bool isChosenFrom(Value chosen, Value number) {
  llvm::SetVector<Value> reached;
  reached.insert(chosen);
  for (size_t next = 0; next < reached.size() && next < kMostValues; ++next) {
    if (isSame(reached[next], number))
      return true;
    if (Operation *op = reached[next].getDefiningOp())
      for (Value choice : getChoices(op))
        reached.insert(choice);
  }
  return false;
}

} // namespace

void bastile::markExactDifferences(Operation *root) {
  root->walk([](Operation *op) {
    if (isa<arith::AddFOp, arith::SubFOp>(op) &&
        (isChosenFrom(op->getOperand(0), op->getOperand(1)) ||
         isChosenFrom(op->getOperand(1), op->getOperand(0))))
      setExactDifference(op);
  });
}

bool bastile::isExactDifference(Operation *op) {
  return op->hasAttr(kExactAttrName);
}

void bastile::setExactDifference(Operation *op) {
  op->setAttr(kExactAttrName, UnitAttr::get(op->getContext()));
}
