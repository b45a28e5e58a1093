//===- ProductFollowers.cpp - What a product's kernel computes ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tensors/ProductFollowers.h"

#include "dialect/ElementBytes.h"
#include "dialect/Rows.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/analysis/RowClass.h"

using namespace mlir;
using namespace bastile;

ProductFollowers::ProductFollowers(func::FuncOp func, const Rounds &rounds,
                                   const ValueDimensions &dimensions)
    : rounds(rounds) {
  Block &block = func.front();
  findFollowers(block, dimensions);
  for (auto join : block.getOps<tile::JoinOp>())
    if (isPlace(join, func))
      places.insert(join);
  // What users of an op are to do is known before the op.
  for (Operation &op : llvm::reverse(block.without_terminator()))
    if (belongsToRows(&op))
      ofRows.insert(&op);
}

/// Finds products and the ops that follow one through nothing but such ops. An
/// op that waits for a kernel on rows, which waits for the product itself, does
/// not.
void ProductFollowers::findFollowers(Block &block,
                                     const ValueDimensions &dimensions) {
  // The ops that wait for a product through something that does not follow it.
  DenseSet<Operation *> later;
  for (Operation &op : block.without_terminator()) {
    if (!rounds.isRowOp(&op))
      continue;
    if (isa<tile::DotOp>(op)) {
      followers.insert(&op);
      continue;
    }
    const RowClass own = RowClass::get(&op, dimensions);
    bool follows = false, waits = false, fits = own.fitsProduct && own.shape;
    for (Value operand : op.getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (!producer)
        continue;
      waits |= later.contains(producer);
      if (!followers.contains(producer))
        continue;
      follows = true;
      auto type = cast<RankedTensorType>(operand.getType());
      fits &= type.getShape() == *own.shape;
    }
    if (follows && fits && !waits)
      followers.insert(&op);
    else if (follows || waits)
      later.insert(&op);
  }
}

/// Whether kernels of products compute the pieces of `join`, neighbours in its
/// rows, and the function needs no other tensor of one of them.
bool ProductFollowers::isPlace(tile::JoinOp join, func::FuncOp func) const {
  DenseSet<Value> distinct;
  for (Value piece : join.getPieces()) {
    if (!distinct.insert(piece).second ||
        !followers.contains(piece.getDefiningOp()))
      return false;
    for (Operation *user : piece.getUsers())
      if (user->hasTrait<OpTrait::IsTerminator>() || isa<tile::SplitOp>(user) ||
          (user != join && places.contains(user)))
        return false;
  }
  // A result that takes an argument's memory is one kernel's.
  return join.getStrands() == 1 &&
         llvm::none_of(join->getUses(), [&](OpOperand &use) {
           return use.getOwner()->hasTrait<OpTrait::IsTerminator>() &&
                  func.getResultAttr(use.getOperandNumber(),
                                     tile::TileDialect::kInPlaceAttrName);
         });
}

/// Whether `value` is left in memory anyway, whatever `reader` does: for the
/// caller, as a factor, or for a kernel on rows.
bool ProductFollowers::isLeft(Value value, Operation *reader) const {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    return user != reader && (isa<tile::DotOp>(user) || !stays(user));
  });
}

/// Whether kernels on rows alone need the result of `op`, and leaving what it
/// reads of the product's kernel takes no more bytes than the result.
bool ProductFollowers::belongsToRows(Operation *op) const {
  if (!followers.contains(op) || isa<tile::DotOp>(op) || op->use_empty())
    return false;
  for (Operation *user : op->getUsers())
    if (isa<tile::DotOp, tile::SplitOp>(user) ||
        user->hasTrait<OpTrait::IsTerminator>() || places.contains(user) ||
        stays(user) || !rounds.isRowOp(user) ||
        rounds.get(user) != rounds.get(op))
      return false;
  int64_t bytes = 0;
  for (Value result : op->getResults())
    bytes += getElementBytes(result.getType());
  DenseSet<Value> seen;
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (producer && followers.contains(producer) &&
        seen.insert(operand).second && !isLeft(operand, op))
      bytes -= getElementBytes(operand.getType());
  }
  return bytes >= 0;
}
