//===- Rounds.cpp - When the ops of a function run ------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/Rounds.h"

#include "dialect/Rows.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/analysis/RowClass.h"

using namespace mlir;
using namespace bastile;

Rounds::Rounds(func::FuncOp func) {
  findCombinedRows(func.front());
  findRounds(func.front());
}

static ArrayRef<int64_t> getShape(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getShape() : ArrayRef<int64_t>();
}

/// Whether the results of `op` and of `reduce`, which may be null, have one
/// shape.
static bool haveOneShape(Operation *op, Operation *reduce) {
  return reduce && getShape(op->getResult(0)) == getShape(reduce->getResult(0));
}

void Rounds::findCombinedRows(Block &block) {
  for (Operation &op : block.without_terminator()) {
    CombinedRows found;
    SmallVector<CombinedRows> operands;
    // An op that takes only its sizes from rows runs where its other operands
    // are.
    ValueRange values =
        repeatsVector(&op) ? op.getOperands() : getValueOperands(&op);
    for (Value operand : values)
      if (Operation *producer = operand.getDefiningOp()) {
        operands.push_back(combinedRows.lookup(producer));
        found.depth = std::max(found.depth, operands.back().depth);
      }
    if (combinesSomeRows(&op)) {
      found = {found.depth + 1, &op};
    } else if (fitsCombinedRow(&op)) {
      // The op waits for the operands of the greatest depth alone.
      llvm::erase_if(operands, [&](const CombinedRows &rows) {
        return rows.depth < found.depth;
      });
      // Numbers of the rows that are left are other rows' as well.
      if (!operands.empty() && llvm::all_equal(operands) &&
          haveOneShape(&op, operands.front().reduce))
        found.reduce = operands.front().reduce;
    }
    combinedRows[&op] = found;
  }
}

/// Finds the round of each op: first the earliest in which it could run and
/// then, from the last op to the first, the latest in which it may. An op that
/// reduces bands runs in a round after the reductions of rows that it depends
/// on: sweeping whole rows, a band at a time, would leave most of the machine
/// idle.
void Rounds::findRounds(Block &block) {
  // The round in which each value is computed, and the round after the
  // reductions of rows that it waits for.
  DenseMap<Value, int64_t> earliest, reduced;
  int64_t last = 0;
  for (Operation &op : block.without_terminator()) {
    int64_t round = 0, afterRows = 0;
    bool combined = combinesAllRows(&op);
    for (OpOperand &use : op.getOpOperands()) {
      Value operand = use.get();
      round = std::max(round, earliest.lookup(operand) + waitsForBands(use));
      afterRows = std::max(afterRows, reduced.lookup(operand));
      combined |= isCombined(operand);
    }
    if (isa<tile::ReduceBandsOp>(op))
      round = std::max(round, afterRows);
    if (isRowReduction(&op))
      afterRows = std::max(afterRows, round + 1);
    bool onRows =
        !isa<tile::PieceOp>(op) && llvm::any_of(op.getResults(), isRowTensor);
    if (onRows || combinesAllRows(&op)) {
      rounds[&op] = 0;
      last = std::max(last, round);
    }
    for (Value result : op.getResults()) {
      earliest[result] = round + combinesAllRows(&op);
      reduced[result] = afterRows;
      if (combined && !onRows)
        combinedValues.insert(result);
    }
  }

  // The latest round in which each value may be computed, and the latest in
  // which rows may be reduced for it. Row vectors are ready between rounds.
  DenseMap<Value, int64_t> needed, neededReduced;
  auto lower = [](DenseMap<Value, int64_t> &latest, Value value,
                  int64_t round) {
    auto [it, isNew] = latest.try_emplace(value, round);
    it->second = std::min(it->second, round);
  };
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    int64_t round = isRowOp(&op) && !combinesAllRows(&op) ? last : last + 1;
    std::optional<int64_t> lastReduction;
    for (Value result : op.getResults()) {
      if (auto it = needed.find(result); it != needed.end())
        round = std::min(round, it->second);
      if (auto it = neededReduced.find(result); it != neededReduced.end())
        lastReduction = std::min(lastReduction.value_or(last), it->second);
    }
    if (combinesAllRows(&op))
      --round;
    if (isRowReduction(&op) && lastReduction)
      round = std::min(round, *lastReduction);
    if (isa<tile::ReduceBandsOp>(op))
      lastReduction = std::min(lastReduction.value_or(last), round - 1);
    if (isRowOp(&op))
      rounds[&op] = round;
    for (OpOperand &use : op.getOpOperands()) {
      lower(needed, use.get(), round - waitsForBands(use));
      if (lastReduction)
        lower(neededReduced, use.get(), *lastReduction);
    }
  }
}
