//===- RecomputedFollowers.cpp - What rows compute of products ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tensors/Grouping.h"

#include "dialect/ElementBytes.h"
#include "dialect/KernelSpace.h"
#include "dialect/Rows.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

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

//===----------------------------------------------------------------------===//
// Numbers of rows
//===----------------------------------------------------------------------===//

/// The product over whose rows and columns the kernel of `group` goes; null if
/// it multiplies nothing. Products ahead of it belong to its factor.
static tile::DotOp getLastDot(const Group &group) {
  tile::DotOp last;
  for (Operation *op : group.ops)
    if (auto dot = dyn_cast<tile::DotOp>(op);
        dot && (!last || last->isBeforeInBlock(dot)))
      last = dot;
  return last;
}

namespace {

/// Takes numbers of rows out of the group of a product.
class NumberSeparator {
public:
  NumberSeparator(func::FuncOp func, ArrayRef<Group> groups,
                  DenseMap<Operation *, size_t> &owners,
                  const ValueDimensions &dimensions)
      : func(func), groups(groups), owners(owners), dimensions(dimensions) {}

  /// The group of the numbers that group `index` would leave; it has no ops if
  /// there are none.
  Group separate(size_t index);
  /// Removes what `group` computed for others alone.
  void prune(Group &group, size_t index);

private:
  bool isLeft(Operation *op, size_t index);
  void addInput(Group &numbers, Value input, tile::DotOp dot) const;

  func::FuncOp func;
  ArrayRef<Group> groups;
  DenseMap<Operation *, size_t> &owners;
  const ValueDimensions &dimensions;
};

} // namespace

/// Whether group `index` leaves a result of `op` for others.
bool NumberSeparator::isLeft(Operation *op, size_t index) {
  if (owners.lookup(op) != index)
    return false;
  return llvm::any_of(op->getResults(), [&](Value result) {
    return llvm::is_contained(func.front().getTerminator()->getOperands(),
                              result) ||
           llvm::any_of(groups, [&](const Group &group) {
             return group.inputs.contains(result);
           });
  });
}

/// Adds `input` to the inputs of `numbers`. Of a product, a number of its rows
/// needs nothing but sizes, which the product's left factor may have as well.
void NumberSeparator::addInput(Group &numbers, Value input,
                               tile::DotOp dot) const {
  const Value factor = dot.getA();
  const unsigned leading = dot.getSumType().getRank() - 1;
  auto hasSize = [&](unsigned place) {
    return dimensions.get(input, place) == dimensions.get(factor, place);
  };
  if (input != dot.getResult() || !llvm::all_of(llvm::seq(leading), hasSize)) {
    numbers.inputs.insert(input);
    return;
  }
  numbers.inputs.insert(factor);
  numbers.sizeSources.push_back({input, factor});
}

Group NumberSeparator::separate(size_t index) {
  const Group &group = groups[index];
  Group numbers;
  tile::DotOp dot = getLastDot(group);
  if (!dot || !ShapedType::isDynamic(dot.getSumType().getShape().back()))
    return numbers;
  for (Operation *op : group.ops)
    if (isRowTensor(op->getResult(0)) && isLeft(op, index) &&
        !KernelSpace::hasColumns(op->getResult(0)))
      numbers.ops.insert(op);
  for (size_t next = 0; next < numbers.ops.size(); ++next)
    for (OpOperand &use : numbers.ops[next]->getOpOperands()) {
      Operation *producer = use.get().getDefiningOp();
      const bool isOwn = producer && group.ops.contains(producer);
      const bool isProduct = isOwn && isa<tile::DotOp>(producer);
      // A sum of a product's columns is its kernel's.
      if (isProduct && getSizeOperand(use.getOwner()) != &use)
        return Group();
      if (isOwn && !isProduct)
        numbers.ops.insert(producer);
      else
        addInput(numbers, use.get(), dot);
    }
  return numbers;
}

void NumberSeparator::prune(Group &group, size_t index) {
  SmallVector<Operation *> ops(group.ops.getArrayRef());
  llvm::sort(ops, [](Operation *lhs, Operation *rhs) {
    return rhs->isBeforeInBlock(lhs);
  });
  for (Operation *op : ops)
    if (!isLeft(op, index) &&
        llvm::none_of(op->getUsers(), [&](Operation *user) {
          return group.ops.contains(user);
        }))
      group.ops.remove(op);
  group.inputs.remove_if([&](Value input) {
    return llvm::none_of(input.getUsers(), [&](Operation *user) {
      return group.ops.contains(user);
    });
  });
}

void bastile::separateNumbers(func::FuncOp func, SmallVectorImpl<Group> &groups,
                              DenseMap<Operation *, size_t> &owners,
                              const ValueDimensions &dimensions) {
  for (size_t index = 0, end = groups.size(); index < end; ++index) {
    NumberSeparator separator(func, groups, owners, dimensions);
    Group numbers = separator.separate(index);
    if (numbers.ops.empty())
      continue;
    for (Operation *op : numbers.ops)
      if (isRowTensor(op->getResult(0)) && owners.lookup(op) == index)
        owners[op] = groups.size();
    separator.prune(groups[index], index);
    groups.push_back(std::move(numbers));
  }
}
