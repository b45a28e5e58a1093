//===- StreamedFactors.cpp - Factors that no memory holds -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/StreamedFactors.h"

#include "dialect/KernelSpace.h"
#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/analysis/FollowingSums.h"
#include "passes/analysis/Rounds.h"

using namespace mlir;
using namespace bastile;

/// The most columns that a program has of a product, and the most elements that
/// it sums at once.
static constexpr int64_t kMostWhole = 256;

static bool isWhole(int64_t size) { return size > 1 && size <= kMostWhole; }

static int64_t getDepth(tile::DotOp dot) {
  for (unsigned index : {0, 1}) {
    auto type = cast<RankedTensorType>(dot.getOperand(index).getType());
    if (int64_t size = type.getDimSize(dot.getContractedDimension(index));
        !ShapedType::isDynamic(size))
      return size;
  }
  return ShapedType::kDynamic;
}

StreamedFactors::StreamedFactors(func::FuncOp func, const Rounds &rounds)
    : rounds(rounds) {
  Block &block = func.front();
  for (auto dot : block.getOps<tile::DotOp>()) {
    Ops ops = getComputedFactor(dot);
    ops.remove_if([&](Operation *op) { return !rounds.isRowOp(op); });
    if (isStreamed(dot, ops))
      products.insert({dot, std::move(ops)});
  }
  // A product's factor may be computed of what another one's is.
  bool isChanged = true;
  while (isChanged) {
    streamed.clear();
    for (auto &[dot, ops] : products)
      streamed.insert(ops.begin(), ops.end());
    const size_t before = products.size();
    products.remove_if([&](auto &product) {
      return streamed.contains(product.first) ||
             isNeededOutside(product.second) || isAmongOthers(product.first);
    });
    isChanged = products.size() != before;
  }
  addStatistics(block);
}

/// Whether the kernel of `dot` can compute `ops` for its left factor, as far as
/// others do not need them.
bool StreamedFactors::isStreamed(tile::DotOp dot, const Ops &ops) const {
  auto left = cast<RankedTensorType>(dot.getA().getType());
  ArrayRef<int64_t> shape = dot.getSumType().getShape();
  if (ops.empty() || dot.getContract()[0] != 1 || !isWhole(shape.back()) ||
      left.getShape().back() == 1 || shape[shape.size() - 2] == 1 ||
      left.getShape().drop_back() != shape.drop_back() ||
      !(dot.getFactorType().isF32() || dot.getFactorType().isF64() ||
        left.getElementType().isF32()))
    return false;
  bool multiplies = false;
  for (Operation *op : ops) {
    if (rounds.get(op) != rounds.get(dot) ||
        !(rounds.getCombinedRows(op) == rounds.getCombinedRows(dot)))
      return false;
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    if (type.getShape().drop_back() != left.getShape().drop_back() ||
        (type.getShape().back() != 1 &&
         type.getShape().back() != left.getShape().back()))
      return false;
    if (auto inner = dyn_cast<tile::DotOp>(op)) {
      multiplies = true;
      if (!isWhole(getDepth(inner)) || inner.getContract()[0] != 1 ||
          inner.getContract()[1] != 1 ||
          inner.getFactorType() != dot.getFactorType())
        return false;
      continue;
    }
    if (!mayFollowDot(op) && !isa<tile::IotaOp>(op) && !isRowReduction(op))
      return false;
  }
  // What the kernel reads does not wait for the kernel itself.
  Ops before;
  auto add = [&](Value value) {
    if (Operation *op = value.getDefiningOp(); op && !ops.contains(op))
      before.insert(op);
  };
  add(dot.getB());
  for (Operation *op : ops)
    llvm::for_each(op->getOperands(), add);
  for (size_t next = 0; next < before.size(); ++next)
    for (Value operand : before[next]->getOperands()) {
      if (ops.contains(operand.getDefiningOp()))
        return false;
      add(operand);
    }
  return multiplies && computesOnce(dot, ops);
}

/// Whether one loop over the columns of the left factor of `dot` is enough.
bool StreamedFactors::computesOnce(tile::DotOp dot, const Ops &ops) const {
  const FollowingSums following(*dot->getBlock());
  // What waits for a reduction, and for one that follows no other.
  DenseSet<Operation *> waiting;
  for (Operation &op : *dot->getBlock()) {
    if (!ops.contains(&op) && &op != dot)
      continue;
    const bool waits = llvm::any_of(getValueOperands(&op), [&](Value value) {
      return waiting.contains(value.getDefiningOp());
    });
    const bool isSum = isRowReduction(&op) || &op == dot;
    if (isSum && waits && !following.lookup(&op))
      return false;
    if (isSum || waits)
      waiting.insert(&op);
  }
  return true;
}

/// Whether something else needs one of `ops` for each column.
bool StreamedFactors::isNeededOutside(const Ops &ops) const {
  return llvm::any_of(ops, [&](Operation *op) {
    return !isa<arith::ConstantOp>(op) &&
           KernelSpace::hasColumns(op->getResult(0)) &&
           llvm::any_of(op->getUses(), [&](OpOperand &use) {
             Operation *user = use.getOwner();
             if (getSizeOperand(user) == &use)
               return false;
             return !streamed.contains(user) && !products.contains(user);
           });
  });
}

/// Whether `dot` has ops in common with another product that one program cannot
/// compute beside it.
bool StreamedFactors::isAmongOthers(Operation *dot) const {
  auto own = cast<tile::DotOp>(dot);
  const Ops &ops = products.find(dot)->second;
  return llvm::any_of(products, [&](const auto &product) {
    auto other = cast<tile::DotOp>(product.first);
    const bool fits =
        own.getSumType().getShape() == other.getSumType().getShape() &&
        own.getB().getType() == other.getB().getType() &&
        own.getContract() == other.getContract();
    return !fits && llvm::any_of(ops, [&](Operation *op) {
      return product.second.contains(op);
    });
  });
}

/// Adds ops on row statistics that follow from a streamed factor's to the
/// product of that factor.
void StreamedFactors::addStatistics(Block &block) {
  for (auto &[dot, own] : products) {
    Ops &ops = own;
    for (Operation &op : block.without_terminator()) {
      if (ops.contains(&op) || !rounds.isRowOp(&op) || !mayFollowDot(&op) ||
          KernelSpace::hasColumns(op.getResult(0)) ||
          isa<tile::BroadcastOp, arith::ConstantOp>(op) ||
          rounds.get(&op) != rounds.get(dot))
        continue;
      bool follows = false, fits = true;
      for (Value operand : getValueOperands(&op)) {
        Operation *producer = operand.getDefiningOp();
        const bool isOwn = producer && ops.contains(producer);
        follows |= isOwn;
        fits &= isOwn || (producer && !rounds.isRowOp(producer));
      }
      if (follows && fits)
        ops.insert(&op);
    }
    streamed.insert(ops.begin(), ops.end());
  }
}

DenseSet<Operation *> bastile::findStreamedOps(func::FuncOp func) {
  DenseSet<Operation *> found;
  if (func.front().getOps<tile::DotOp>().empty())
    return found;
  // Where gradients stop has no meaning for values, but would hide what a sum
  // follows.
  IRMapping mapping;
  OwningOpRef<func::FuncOp> copy(cast<func::FuncOp>(func->clone(mapping)));
  for (Operation &op : llvm::make_early_inc_range(copy->front()))
    if (isa<tile::StopGradientOp>(op)) {
      op.replaceAllUsesWith(op.getOperands());
      op.erase();
    }
  const Rounds rounds(*copy);
  const StreamedFactors streamed(*copy, rounds);
  for (Operation &op : func.front().without_terminator()) {
    if (isa<tile::StopGradientOp>(op))
      continue;
    Operation *copied = mapping.lookup(&op);
    if (streamed.contains(copied) || streamed.getProducts().contains(copied))
      found.insert(&op);
  }
  return found;
}
