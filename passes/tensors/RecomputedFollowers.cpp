//===- RecomputedFollowers.cpp - What rows compute of products ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tensors/Grouping.h"

#include "dialect/ElementBytes.h"
#include "dialect/KernelSpace.h"

using namespace mlir;
using namespace bastile;

static bool multiplies(const Group &group) {
  return llvm::any_of(group.ops, llvm::IsaPred<tile::DotOp>);
}

/// The bytes for each column that `values` take in memory; statistics and
/// vectors take next to none.
static int64_t getColumnBytes(ArrayRef<Value> values) {
  int64_t bytes = 0;
  for (Value value : values)
    if (auto type = cast<RankedTensorType>(value.getType());
        KernelSpace::hasColumns(value) && type.getRank() > 1)
      bytes += getElementBytes(type);
  return bytes;
}

/// Has `rows` compute again what it reads of `product`, but not rows that it
/// takes apart, which have to be in memory.
static void recompute(Group &rows, const Group &product) {
  SmallVector<Value> read;
  llvm::SetVector<Operation *> ops;
  for (Value input : rows.inputs)
    if (Operation *op = input.getDefiningOp();
        op && product.ops.contains(op) && !isa<tile::DotOp>(op) &&
        !llvm::any_of(op->getUsers(), llvm::IsaPred<tile::SplitOp>)) {
      read.push_back(input);
      ops.insert(op);
    }
  if (read.empty())
    return;
  llvm::SetVector<Value> needed;
  for (size_t next = 0; next < ops.size(); ++next)
    for (Value operand : ops[next]->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      if (producer && rows.ops.contains(producer))
        continue;
      if (producer && product.ops.contains(producer) &&
          !isa<tile::DotOp>(producer))
        ops.insert(producer);
      else if (!rows.inputs.contains(operand))
        needed.insert(operand);
    }
  // A row reduction would belong to the product's factor.
  if (!llvm::all_of(ops, mayFollowDot) ||
      getColumnBytes(needed.getArrayRef()) >= getColumnBytes(read))
    return;
  rows.ops.insert(ops.begin(), ops.end());
  for (Value value : read)
    rows.inputs.remove(value);
  rows.inputs.insert(needed.begin(), needed.end());
}

void bastile::recomputeFollowers(MutableArrayRef<Group> groups) {
  for (Group &rows : groups) {
    if (multiplies(rows) || !rows.combined.empty())
      continue;
    for (const Group &product : groups)
      if (multiplies(product))
        recompute(rows, product);
  }
}
