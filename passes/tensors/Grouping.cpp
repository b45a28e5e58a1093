//===- Grouping.cpp - Which ops become one kernel -------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tensors/Grouping.h"

#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/tensors/Conditions.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace bastile;

namespace {

/// The length of the rows that `op` computes: that of its longest row tensor,
/// or that of the pieces where it splits or joins rows.
int64_t getRowLength(Operation *op) {
  ValueRange values = op->getResults();
  if (isa<tile::JoinOp>(op))
    values = op->getOperands();
  int64_t length = 0;
  auto visit = [&](Value value) {
    if (isRowTensor(value))
      length = std::max(
          length, cast<RankedTensorType>(value.getType()).getShape().back());
  };
  llvm::for_each(values, visit);
  if (isa<tile::ReduceOp, tile::ReduceRowsOp>(op))
    visit(op->getOperand(0));
  return length;
}

/// Whether `operand` has a row for each band, which is read from memory.
bool readsBands(OpOperand &operand) {
  return isa<tile::RepeatBandsOp>(operand.getOwner()) &&
         operand.getOperandNumber() == 0;
}

/// Whether `operand` has a row for each band, which another kernel has to leave
/// in memory: no program computes the rows of several bands.
bool waitsForBands(OpOperand &operand) {
  return readsBands(operand) && operand.get().getDefiningOp();
}

/// Whether `op` combines all rows to a vector, which ends a kernel.
bool combinesAllRows(Operation *op) {
  auto reduce = dyn_cast<tile::ReduceRowsOp>(op);
  return reduce && !reduce.keepsRows();
}

/// Whether `op` combines rows over some leading dimensions to fewer rows.
bool combinesSomeRows(Operation *op) {
  auto reduce = dyn_cast<tile::ReduceRowsOp>(op);
  return reduce && reduce.keepsRows();
}

/// Whether the rows of `operand` are not the rows that its owner computes, but
/// fewer rows, each read for several, or more rows, to be combined.
bool readsOtherRows(OpOperand &operand) {
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(operand.getOwner()))
    return operand.getOperandNumber() == 0 && broadcast.repeatsRows();
  return readsBands(operand) || combinesSomeRows(operand.getOwner());
}

/// Whether `op` computes nothing: a piece of an argument is an address.
bool isPieceOfArgument(Operation *op) {
  auto split = dyn_cast<tile::SplitOp>(op);
  return split && isa<BlockArgument>(split.getInput());
}

/// Whether `op` repeats a number or a vector for each row.
bool repeatsVector(Operation *op) {
  auto broadcast = dyn_cast<tile::BroadcastOp>(op);
  return broadcast && !isRowTensor(broadcast.getSource());
}

/// Whether `op` can be computed, element by element, on the one row that is
/// left where a program combines rows over some dimensions.
bool fitsCombinedRow(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) || isa<tile::CopyOp>(op) ||
         repeatsVector(op);
}

/// The combinations of rows to fewer rows that an op on rows waits for: how
/// many, one after the other, and the last of them, if the op follows it
/// element by element and waits for nothing else.
struct CombinedRows {
  int64_t depth = 0;
  Operation *reduce = nullptr;

  bool operator==(const CombinedRows &other) const {
    return depth == other.depth && reduce == other.reduce;
  }
};

/// The rows of a kernel of some ops.
struct RowClass {
  /// The length of the rows; 1 as long as there are only statistics.
  int64_t length = 1;
  /// The lengths of group statistics among the values.
  SmallVector<int64_t, 1> groups;
  /// Whether rows of this length may turn out to be group statistics.
  bool mayBeGroups = true;
  /// The rows of a band where bands are reduced, otherwise 0, and whether
  /// anything is reduced that the tile of a band does not hold.
  int64_t band = 0;
  bool reducesMore = false;

  static RowClass get(Operation *op);

  /// Whether the rows of this class are group statistics of the other's.
  bool areGroupsOf(const RowClass &other) const {
    return mayBeGroups && llvm::is_contained(other.groups, length);
  }
  /// A program that holds a band goes on neither along its rows nor to more
  /// rows.
  bool fitsBands(const RowClass &other) const {
    return !band || (!other.reducesMore && (!other.band || other.band == band));
  }
  bool fits(const RowClass &other) const {
    if (!fitsBands(other) || !other.fitsBands(*this))
      return false;
    return length == other.length || length == 1 || other.length == 1 ||
           areGroupsOf(other) || other.areGroupsOf(*this);
  }
  void merge(const RowClass &other) {
    if (other.length == length)
      mayBeGroups &= other.mayBeGroups;
    else if (other.length > length)
      mayBeGroups = other.mayBeGroups;
    length = std::max(length, other.length);
    band = std::max(band, other.band);
    reducesMore |= other.reducesMore;
    for (int64_t group : other.groups)
      if (!llvm::is_contained(groups, group))
        groups.push_back(group);
  }
};

RowClass RowClass::get(Operation *op) {
  RowClass rows;
  rows.length = getRowLength(op);
  rows.mayBeGroups = OpTrait::hasElementwiseMappableTraits(op) ||
                     isa<tile::CopyOp, arith::ConstantOp, tile::ReduceBandsOp,
                         tile::PackBandsOp, tile::RepeatBandsOp>(op);
  if (auto reduce = dyn_cast<tile::ReduceBandsOp>(op))
    rows.band = reduce.getBand();
  rows.reducesMore = isRowReduction(op) || isa<tile::ReduceRowsOp>(op);
  auto visitGroups = [&](Type longer, Value shorter) {
    if (isRowTensor(shorter)) {
      int64_t length =
          cast<RankedTensorType>(shorter.getType()).getShape().back();
      if (length != 1 &&
          length != cast<RankedTensorType>(longer).getShape().back())
        rows.groups.push_back(length);
    }
  };
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    visitGroups(reduce.getInput().getType(), reduce.getResult());
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op)) {
    visitGroups(broadcast.getType(), broadcast.getSource());
    auto source = dyn_cast<RankedTensorType>(broadcast.getSource().getType());
    rows.mayBeGroups = !source || source.getShape().back() == 1;
  }
  return rows;
}

class Grouper {
public:
  explicit Grouper(func::FuncOp func) : func(func) {}

  FailureOr<SmallVector<Group>> run();

private:
  void findCombinedRows();
  LogicalResult verifyCombinedRows() const;
  LogicalResult verifyBands() const;
  void findRounds();
  LogicalResult formRowGroups();
  void formVectorGroups();
  void formSharedGroups();
  bool isRepeated(OpOperand &use, int64_t round) const;
  void addInputs(Group &group, Operation *op, int64_t round);
  void collectOutputs();

  /// Whether `value` is a row vector that depends on all rows of something.
  bool isCombined(Value value) const { return combinedValues.contains(value); }
  bool isRowOp(Operation *op) const { return rowRounds.contains(op); }

  func::FuncOp func;
  DenseSet<Value> combinedValues;
  /// The round in which an op on rows runs. A round may read what earlier
  /// rounds combine.
  DenseMap<Operation *, int64_t> rowRounds;
  /// The combinations that an op on rows waits for; all ops of a kernel wait
  /// for the same.
  DenseMap<Operation *, CombinedRows> combinedRows;
  SmallVector<Group> groups;
  /// The group that an op belongs to, which may not be the only one that
  /// computes it.
  DenseMap<Operation *, size_t> owners;
};

void Grouper::findCombinedRows() {
  for (Operation &op : func.front().without_terminator()) {
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
      if (!operands.empty() && llvm::all_equal(operands))
        found.reduce = operands.front().reduce;
    }
    combinedRows[&op] = found;
  }
}

/// Checks that a group that combines rows to fewer rows has no other rows than
/// those and the rows that are left.
LogicalResult Grouper::verifyCombinedRows() const {
  for (const Group &group : groups) {
    const auto *it = llvm::find_if(group.ops, combinesSomeRows);
    if (it == group.ops.end())
      continue;
    auto reduce = cast<tile::ReduceRowsOp>(*it);
    auto fits = [&](Operation *op) {
      if (op == reduce || !isRowTensor(op->getResult(0)) ||
          isPieceOfArgument(op))
        return true;
      auto type = cast<RankedTensorType>(op->getResult(0).getType());
      return fitsCombinedRow(op) &&
             type.getShape() == reduce.getType().getShape();
    };
    for (Operation *op : group.ops)
      if (!fits(op))
        return op->emitOpError("follows a combination to rows of type ")
               << reduce.getType()
               << ", but is not computed element by element on these; split "
                  "the function";
  }
  return success();
}

/// Checks that no group reads a row of a tensor for each of its bands, and
/// another for each of its rows.
LogicalResult Grouper::verifyBands() const {
  for (const Group &group : groups)
    for (Value input : group.inputs) {
      Operation *ofBands = nullptr, *ofRows = nullptr;
      for (OpOperand &use : input.getUses())
        if (group.ops.contains(use.getOwner()))
          (readsBands(use) ? ofBands : ofRows) = use.getOwner();
      if (!ofBands || !ofRows)
        continue;
      InFlightDiagnostic error =
          ofBands->emitOpError("repeats each row of a tensor for a band, "
                               "but the tensor has as many rows as the result");
      error.attachNote(ofRows->getLoc()) << "it is read row by row here";
      return error;
    }
  return success();
}

/// Finds the round of each op: first the earliest in which it could run and
/// then, from the last op to the first, the latest in which it may. An op that
/// reduces bands runs in a round after the reductions of rows that it depends
/// on: sweeping whole rows, a band at a time, would leave most of the machine
/// idle.
void Grouper::findRounds() {
  // The round in which each value is computed, and the round after the
  // reductions of rows that it waits for.
  DenseMap<Value, int64_t> earliest, reduced;
  int64_t last = 0;
  for (Operation &op : func.front().without_terminator()) {
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
    bool onRows = llvm::any_of(op.getResults(), isRowTensor);
    if (onRows || combinesAllRows(&op)) {
      rowRounds[&op] = 0;
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
  auto lower = [](DenseMap<Value, int64_t> &rounds, Value value,
                  int64_t round) {
    auto [it, isNew] = rounds.try_emplace(value, round);
    it->second = std::min(it->second, round);
  };
  for (Operation &op : llvm::reverse(func.front().without_terminator())) {
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
      rowRounds[&op] = round;
    for (OpOperand &use : op.getOpOperands()) {
      lower(needed, use.get(), round - waitsForBands(use));
      if (lastReduction)
        lower(neededReduced, use.get(), *lastReduction);
    }
  }
}

/// Removes the conditions that only other groups need.
void dropForeignConditions(SmallVectorImpl<Operation *> &ops) {
  DenseSet<Operation *> kept;
  for (Operation *op : llvm::reverse(ops))
    if (canBeStored(op) || llvm::any_of(op->getUsers(), [&](Operation *user) {
          return kept.contains(user);
        }))
      kept.insert(op);
  llvm::erase_if(ops, [&](Operation *op) { return !kept.contains(op); });
}

LogicalResult Grouper::formRowGroups() {
  // The rows of a kernel have one length, statistics aside.
  llvm::EquivalenceClasses<Operation *> classes;
  DenseMap<Operation *, RowClass> rows;
  auto join = [&](Operation *lhs, Operation *rhs) {
    if (rowRounds.lookup(lhs) != rowRounds.lookup(rhs) ||
        !(combinedRows.lookup(lhs) == combinedRows.lookup(rhs)))
      return;
    if (classes.isEquivalent(lhs, rhs))
      return;
    RowClass left = rows.lookup(classes.getLeaderValue(lhs));
    RowClass right = rows.lookup(classes.getLeaderValue(rhs));
    if (!left.fits(right))
      return;
    left.merge(right);
    classes.unionSets(lhs, rhs);
    rows[classes.getLeaderValue(lhs)] = left;
  };
  // One op of each class that reads a value.
  DenseMap<Value, SmallVector<Operation *>> readers;
  for (Operation &op : func.front().without_terminator()) {
    if (!isRowOp(&op))
      continue;
    classes.insert(&op);
    rows[&op] = RowClass::get(&op);
    for (OpOperand &operand : op.getOpOperands()) {
      if (!isRowTensor(operand.get()))
        continue;
      if (readsOtherRows(operand))
        continue;
      // An op that packs bands has the rows that it packs, its users have the
      // packed ones.
      if (Operation *producer = operand.get().getDefiningOp();
          producer && !isa<tile::PackBandsOp>(producer))
        join(&op, producer);
      SmallVector<Operation *> &others = readers[operand.get()];
      bool isFirst = true;
      for (Operation *other : others) {
        join(&op, other);
        isFirst &= !classes.isEquivalent(&op, other);
      }
      if (isFirst)
        others.push_back(&op);
    }
  }

  llvm::MapVector<Operation *, SmallVector<Operation *>> byLeader;
  for (Operation &op : func.front().without_terminator())
    if (isRowOp(&op))
      byLeader[classes.getLeaderValue(&op)].push_back(&op);
  for (auto &entry : byLeader) {
    dropForeignConditions(entry.second);
    if (entry.second.empty())
      continue;
    for (Operation *op : entry.second)
      owners[op] = groups.size();
    Group &group = groups.emplace_back();
    group.ops.insert(entry.second.begin(), entry.second.end());
    for (Operation *op : entry.second) {
      addInputs(group, op, rowRounds.lookup(op));
      if (combinesAllRows(op)) {
        group.partials.push_back(cast<tile::ReduceRowsOp>(op));
        group.ops.remove(op);
      }
    }
    if (llvm::none_of(group.inputs, isRowTensor))
      return entry.first->emitOpError("depends on no row tensor among the "
                                      "arguments, so its rows are unknown");
  }
  return success();
}

/// Whether a group of `round` computes the value that `use` reads again rather
/// than reading it from memory: row vectors and scalars, pieces of arguments
/// and values of earlier rounds, down to arguments and row statistics, as that
/// costs less than storing them; and conditions, which cannot be stored.
bool Grouper::isRepeated(OpOperand &use, int64_t round) const {
  Operation *producer = use.get().getDefiningOp();
  if (!producer)
    return false;
  if (!canBeStored(producer))
    return true;
  if (isCombined(use.get()))
    return false;
  if (!isRowOp(producer))
    return true;
  if (isPieceOfArgument(producer))
    return !readsBands(use);
  if (readsOtherRows(use))
    return false;
  // Reading the rows that others are combined from costs more than reading the
  // result that is repeated for them.
  if (repeatsVector(producer) &&
      !(combinedRows.lookup(producer) == combinedRows.lookup(use.getOwner())))
    return true;
  return rowRounds.lookup(producer) < round &&
         !isa<tile::ReduceOp, tile::ReduceRowsOp, tile::ReduceBandsOp,
              tile::PackBandsOp>(producer);
}

/// Adds to `group` the values that `op` reads from outside of it, and the ops
/// that it computes again for them.
void Grouper::addInputs(Group &group, Operation *op, int64_t round) {
  // A list of ops to visit instead of recursion: chains of ops may be longer
  // than calls could be deep.
  SmallVector<std::pair<Operation *, unsigned>> pending{{op, 0}};
  while (!pending.empty()) {
    auto &[reader, position] = pending.back();
    if (position == reader->getNumOperands()) {
      pending.pop_back();
      continue;
    }
    OpOperand &use = reader->getOpOperand(position++);
    Value operand = use.get();
    Operation *producer = operand.getDefiningOp();
    if (producer && group.ops.contains(producer))
      continue;
    if (!isRepeated(use, round)) {
      group.inputs.insert(operand);
      continue;
    }
    group.ops.insert(producer);
    pending.push_back({producer, 0});
  }
}

/// Makes a vector group of the rows of one length that one row group combines,
/// and adds each op on the results to the last group whose values it needs.
void Grouper::formVectorGroups() {
  DenseMap<std::pair<size_t, int64_t>, size_t> byRows;
  size_t firstGroup = groups.size();
  auto getOrder = [&](size_t group) {
    int64_t round = rowRounds.lookup(groups[group].combined.front());
    return std::make_pair(round, group);
  };
  for (Operation &op : func.front().without_terminator()) {
    if (combinesAllRows(&op)) {
      auto reduce = cast<tile::ReduceRowsOp>(op);
      int64_t length = reduce.getType().getShape().back();
      auto [it, isNew] = byRows.try_emplace(
          std::make_pair(owners.lookup(&op), length), groups.size());
      if (isNew)
        groups.emplace_back();
      owners[&op] = it->second;
      groups[it->second].combined.push_back(reduce);
      continue;
    }
    if (isRowOp(&op) || llvm::none_of(op.getResults(), [&](Value result) {
          return isCombined(result);
        }))
      continue;
    std::optional<size_t> owner;
    for (Value operand : op.getOperands()) {
      if (!isCombined(operand))
        continue;
      size_t candidate = owners.lookup(operand.getDefiningOp());
      if (!owner || getOrder(*owner) < getOrder(candidate))
        owner = candidate;
    }
    owners[&op] = *owner;
    groups[*owner].ops.insert(&op);
  }

  for (Group &group : MutableArrayRef(groups).drop_front(firstGroup)) {
    SmallVector<Operation *> ops = llvm::to_vector(group.ops);
    dropForeignConditions(ops);
    group.ops.clear();
    group.ops.insert(ops.begin(), ops.end());
    for (Operation *op : ops)
      addInputs(group, op, /*round=*/0);
    for (tile::ReduceRowsOp reduce : group.combined)
      group.inputs.remove(reduce.getResult());
  }
}

/// Makes a group for each length of row vectors that the function returns and
/// that depend on no rows: a kernel of a single row.
void Grouper::formSharedGroups() {
  DenseMap<int64_t, size_t> byLength;
  for (Value value : func.front().getTerminator()->getOperands()) {
    if (isRowTensor(value) || isCombined(value))
      continue;
    Operation *op = value.getDefiningOp();
    // A joined vector is computed as pieces.
    Value computed = isa<tile::JoinOp>(op) ? op->getOperand(0) : value;
    auto [it, isNew] = byLength.try_emplace(
        cast<RankedTensorType>(computed.getType()).getShape().back(),
        groups.size());
    if (isNew)
      groups.emplace_back();
    owners[op] = it->second;
    groups[it->second].ops.insert(op);
    addInputs(groups[it->second], op, /*round=*/0);
  }
}

/// Makes every value that a group reads or the function returns an output of
/// the group that it belongs to.
void Grouper::collectOutputs() {
  auto addOutput = [&](Value value) {
    if (Operation *producer = value.getDefiningOp())
      groups[owners.lookup(producer)].outputs.insert(value);
  };
  for (Group &group : groups)
    llvm::for_each(group.inputs, addOutput);
  llvm::for_each(func.front().getTerminator()->getOperands(), addOutput);
  llvm::erase_if(groups, [](const Group &group) {
    return group.outputs.empty() && group.partials.empty();
  });
}

FailureOr<SmallVector<Group>> Grouper::run() {
  for (Operation &op : func.front().without_terminator()) {
    if (combinesAllRows(&op))
      continue;
    for (Value result : op.getResults())
      if (isa<RankedTensorType>(result.getType()) && !isRowTensor(result) &&
          llvm::any_of(op.getOperands(), isRowTensor))
        return op.emitOpError("turns a row tensor into ")
               << result.getType() << ", which kernels cannot do";
  }
  findCombinedRows();
  findRounds();
  if (failed(formRowGroups()) || failed(verifyCombinedRows()) ||
      failed(verifyBands()))
    return failure();
  formVectorGroups();
  formSharedGroups();
  collectOutputs();
  return std::move(groups);
}

} // namespace

FailureOr<SmallVector<Group>> bastile::collectGroups(func::FuncOp func) {
  return Grouper(func).run();
}
