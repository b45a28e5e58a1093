//===- Grouping.cpp - Which ops become one kernel -------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tensors/Grouping.h"

#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/analysis/Rounds.h"
#include "passes/analysis/RowClass.h"
#include "passes/analysis/StreamedFactors.h"
#include "passes/tensors/Conditions.h"
#include "passes/tensors/ProductFollowers.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include <map>

using namespace mlir;
using namespace bastile;

namespace {

class Grouper {
public:
  Grouper(func::FuncOp func, const ValueDimensions &dimensions)
      : func(func), rounds(func), dimensions(dimensions),
        followers(func, rounds, dimensions), streamed(func, rounds),
        hasProducts(!func.front().getOps<tile::DotOp>().empty()) {}

  FailureOr<SmallVector<Group>> run();

private:
  LogicalResult verifyCombinedRows() const;
  LogicalResult verifyBands() const;
  LogicalResult formRowGroups();
  void formVectorGroups();
  void formSharedGroups();
  bool needsForeignCondition(Operation *op, const RowClass &own) const;
  bool isPlace(Operation *op) const;
  void addOutput(Value value);
  bool isRepeated(OpOperand &use, int64_t round, const RowClass &rows) const;
  void addInputs(Group &group, Operation *op, int64_t round,
                 const RowClass &rows = {});
  LogicalResult collectOutputs();

  func::FuncOp func;
  const Rounds rounds;
  const ValueDimensions &dimensions;
  const ProductFollowers followers;
  const StreamedFactors streamed;
  const bool hasProducts;
  SmallVector<Group> groups;
  /// The group that an op belongs to, which may not be the only one that
  /// computes it.
  DenseMap<Operation *, size_t> owners;
  /// The groups that read no rows, each with one of its ops.
  llvm::MapVector<size_t, Operation *> withoutRows;
  /// The ops on rows that cannot follow a product: they need a condition that
  /// the product's kernel cannot compute.
  DenseSet<Operation *> needForeignConditions;
};

/// Checks that a group that combines rows to fewer rows has no other rows than
/// those and the rows that are left.
LogicalResult Grouper::verifyCombinedRows() const {
  for (const Group &group : groups) {
    const auto *it = llvm::find_if(group.ops, combinesSomeRows);
    if (it == group.ops.end())
      continue;
    auto reduce = cast<tile::ReduceRowsOp>(*it);
    auto fits = [&](Operation *op) {
      if (op == reduce || !isRowTensor(op->getResult(0)) || isPieceInMemory(op))
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

using OpClasses = llvm::EquivalenceClasses<Operation *>;

/// The ops that compute `value`, what it is a piece of, or what it consists of.
SmallVector<Operation *> getComputed(Value value) {
  SmallVector<Operation *> ops;
  auto add = [&](Value computed) {
    if (Operation *op = computed ? computed.getDefiningOp() : nullptr)
      ops.push_back(op);
  };
  add(value);
  add(getWholeInMemory(value));
  for (size_t next = 0; next < ops.size(); ++next)
    if (isa<tile::JoinOp>(ops[next]))
      llvm::for_each(ops[next]->getOperands(), add);
  return ops;
}

/// The products ahead of `dot` with the same left factor and other pieces of
/// one right factor: those of one product that was taken apart.
SmallVector<tile::DotOp> getPiecesBefore(tile::DotOp dot) {
  SmallVector<tile::DotOp> dots;
  auto own = dot.getB().getDefiningOp<tile::PieceOp>();
  if (!own)
    return dots;
  for (Operation *user : own.getSource().getUsers()) {
    auto piece = dyn_cast<tile::PieceOp>(user);
    if (!piece || piece == own || piece.getDimension() != own.getDimension() ||
        piece.getType() != own.getType() ||
        piece.getInterleaved() != own.getInterleaved())
      continue;
    for (Operation *reader : piece->getUsers())
      if (auto other = dyn_cast<tile::DotOp>(reader);
          other && other->isBeforeInBlock(dot) && other.getA() == dot.getA() &&
          other.getContract() == dot.getContract())
        dots.push_back(other);
  }
  return dots;
}

/// Whether `lhs` and `rhs`, of two of `classes`, need each other's values
/// through another class: joined, they would have to run both before and after
/// that one. A class needs no value that it computes again, as `isRepeated`
/// says, but what that is computed from.
bool needEachOtherThroughOthers(const OpClasses &classes, Operation *lhs,
                                Operation *rhs,
                                function_ref<bool(OpOperand &)> isRepeated) {
  // The classes that the two need, those first that they need themselves.
  SmallVector<Operation *> pending;
  DenseSet<Operation *> visited;
  auto isJoined = [&](Operation *op) {
    return classes.isEquivalent(op, lhs) || classes.isEquivalent(op, rhs);
  };
  // Visits the classes that the class of `op` needs. Returns whether one of the
  // two is among them.
  auto visit = [&](Operation *op) {
    bool needsJoined = false;
    llvm::SetVector<Operation *> readers;
    for (Operation *member : classes.members(op))
      readers.insert(member);
    for (size_t next = 0; next < readers.size(); ++next)
      for (OpOperand &operand : readers[next]->getOpOperands()) {
        if (isRepeated(operand)) {
          readers.insert(operand.get().getDefiningOp());
          continue;
        }
        for (Operation *producer : getComputed(operand.get())) {
          if (!classes.contains(producer))
            continue;
          if (isJoined(producer))
            needsJoined = true;
          else if (visited.insert(classes.getLeaderValue(producer)).second)
            pending.push_back(producer);
        }
      }
    return needsJoined;
  };
  visit(lhs);
  visit(rhs);
  while (!pending.empty())
    if (visit(pending.pop_back_val()))
      return true;
  return false;
}

/// Whether a product multiplies `value`.
bool isFactor(Value value) {
  return llvm::any_of(value.getUsers(), llvm::IsaPred<tile::DotOp>);
}

/// Whether a product of the class of `lhs` multiplies a value of the class of
/// `rhs`: then the product needs all rows of it, and cannot share its kernel.
bool multipliesValueOf(const OpClasses &classes, Operation *lhs,
                       Operation *rhs) {
  for (Operation *member : classes.members(lhs)) {
    auto dot = dyn_cast<tile::DotOp>(member);
    if (!dot)
      continue;
    for (Value factor : {dot.getA(), dot.getB()})
      for (Operation *producer : getComputed(factor))
        if (classes.contains(producer) && classes.isEquivalent(producer, rhs))
          return true;
  }
  return false;
}

/// Whether `op`, whose class is `own`, needs a condition that the kernel of a
/// product of its shape could not compute: no kernel leaves it for another.
bool Grouper::needsForeignCondition(Operation *op, const RowClass &own) const {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    Operation *producer = operand.getDefiningOp();
    if (!producer || canBeStored(producer) || !rounds.isRowOp(producer) ||
        streamed.contains(producer))
      return false;
    const RowClass rows = RowClass::get(producer, dimensions);
    return !rows.fitsProduct || rows.shape != own.shape ||
           needForeignConditions.contains(producer);
  });
}

/// Whether `op` is none of a kernel's: it says where an operand or a result
/// lies. What kernels on rows alone read is one of theirs.
bool Grouper::isPlace(Operation *op) const {
  return followers.isPlace(op) || (hasProducts && op->getNumResults() > 0 &&
                                   getWholeInMemory(op->getResult(0)));
}

LogicalResult Grouper::formRowGroups() {
  // The rows of a kernel go along one dimension, statistics aside.
  OpClasses classes;
  DenseMap<Operation *, RowClass> rows;
  bool isDivided = false;
  auto join = [&](Operation *lhs, Operation *rhs) {
    if (rounds.get(lhs) != rounds.get(rhs) ||
        !(rounds.getCombinedRows(lhs) == rounds.getCombinedRows(rhs)))
      return;
    if (classes.isEquivalent(lhs, rhs))
      return;
    RowClass left = rows.lookup(classes.getLeaderValue(lhs));
    RowClass right = rows.lookup(classes.getLeaderValue(rhs));
    if (!left.fits(right, dimensions)) {
      isDivided = true;
      return;
    }
    if (multipliesValueOf(classes, lhs, rhs) ||
        multipliesValueOf(classes, rhs, lhs)) {
      isDivided = true;
      return;
    }
    // What the kernel of a product computes again is known only when all that
    // it computes is.
    auto isComputedAgain = [&](OpOperand &use) {
      Operation *reader = use.getOwner();
      return !hasProducts && rounds.isRowOp(reader) &&
             isRepeated(use, rounds.get(reader), {});
    };
    if ((isDivided || left.multiplies || right.multiplies) &&
        needEachOtherThroughOthers(classes, lhs, rhs, isComputedAgain))
      return;
    left.merge(right, dimensions);
    classes.unionSets(lhs, rhs);
    rows[classes.getLeaderValue(lhs)] = left;
  };
  for (auto &[dot, ops] : streamed.getProducts())
    for (Operation *op : ops)
      classes.unionSets(dot, op);
  for (auto &[dot, ops] : streamed.getProducts()) {
    RowClass own = RowClass::get(dot, dimensions);
    own.dots.clear();
    auto [it, isFirst] = rows.try_emplace(classes.getLeaderValue(dot), own);
    if (!isFirst && own.columns)
      it->second.otherColumns.push_back(*own.columns);
  }
  // One op of each class that reads a value.
  DenseMap<Value, SmallVector<Operation *>> readers;
  for (Operation &op : func.front().without_terminator()) {
    if (!rounds.isRowOp(&op))
      continue;
    if (isPlace(&op)) {
      isDivided = true;
      continue;
    }
    if (streamed.contains(&op) || streamed.getProducts().contains(&op)) {
      // Its kernel computes what it needs, or reads it as a factor.
      isDivided = true;
      continue;
    }
    classes.insert(&op);
    RowClass &own = rows[&op] = RowClass::get(&op, dimensions);
    if (needsForeignCondition(&op, own)) {
      needForeignConditions.insert(&op);
      own.fitsProduct = false;
    }
    own.fitsProduct &= !followers.isOfRows(&op);
    if (auto dot = dyn_cast<tile::DotOp>(op))
      for (tile::DotOp other : getPiecesBefore(dot))
        join(dot, other);
    for (OpOperand &operand : op.getOpOperands()) {
      if (!isRowTensor(operand.get()))
        continue;
      if (readsOtherRows(operand)) {
        // Ops of the producer's class that need this op's class, too, are to
        // stay out of that one.
        isDivided |= operand.get().getDefiningOp() != nullptr;
        continue;
      }
      // An op that packs bands has the rows that it packs, its users have the
      // packed ones.
      Operation *producer = operand.get().getDefiningOp();
      const bool isPiece = producer && isPlace(producer);
      if (producer && isPieceInMemory(&op))
        isDivided = true;
      else if (producer && !isPiece && !isa<tile::PackBandsOp>(producer))
        join(&op, producer);
      SmallVector<Operation *> &others =
          readers[isPiece ? getWholeInMemory(operand.get()) : operand.get()];
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
    if (rounds.isRowOp(&op) && !isPlace(&op))
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
      addInputs(group, op, rounds.get(op), rows.lookup(entry.first));
      if (combinesAllRows(op)) {
        group.partials.push_back(cast<tile::ReduceRowsOp>(op));
        group.ops.remove(op);
      }
    }
    if (llvm::none_of(group.inputs, isRowTensor))
      withoutRows[owners.lookup(entry.first)] = entry.first;
  }
  return success();
}

/// Whether a group of `round` computes the value that `use` reads again rather
/// than reading it from memory: row vectors and scalars, pieces of what is in
/// memory, widened and repeated values and those of earlier rounds, down to
/// arguments and row statistics, as that costs less than storing them; and
/// conditions, which cannot be stored. `rows` are those of the group.
bool Grouper::isRepeated(OpOperand &use, int64_t round,
                         const RowClass &rows) const {
  Operation *producer = use.get().getDefiningOp();
  if (!producer)
    return false;
  if (!canBeStored(producer))
    return true;
  if (isPieceInMemory(use.getOwner()))
    return false;
  // Factors are in memory anyway, and the kernel of a product cannot multiply
  // what it computes.
  if (isFactor(use.get()))
    return false;
  if (rounds.isCombined(use.get()) || followers.isPlace(producer))
    return false;
  // A product's kernel takes no rows apart.
  if (rows.multiplies && getWholeInMemory(use.get()))
    return false;
  if (!rounds.isRowOp(producer))
    return true;
  // The kernel of a product computes nothing but what may follow it.
  if (rows.multiplies &&
      !rows.fits(RowClass::get(producer, dimensions), dimensions))
    return false;
  if (isPieceInMemory(producer))
    return !readsBands(use);
  if (readsOtherRows(use))
    return false;
  // Behind a combination to fewer rows nothing goes along their columns.
  if (rounds.getCombinedRows(use.getOwner()).reduce &&
      !fitsCombinedRow(producer))
    return false;
  // The narrow value has fewer bytes.
  if (isa<arith::ExtFOp>(producer))
    return true;
  // So do the vector, the statistic or the number that are repeated.
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(producer);
      broadcast &&
      (!broadcast.getLike() || isa<BlockArgument>(broadcast.getLike())))
    return true;
  // Reading the rows that others are combined from costs more than reading the
  // result that is repeated for them.
  if ((repeatsVector(producer) || isa<arith::ConstantOp>(producer)) &&
      !(rounds.getCombinedRows(producer) ==
        rounds.getCombinedRows(use.getOwner())))
    return true;
  return rounds.get(producer) < round &&
         !isa<tile::ReduceOp, tile::ReduceRowsOp, tile::ReduceBandsOp,
              tile::PackBandsOp, tile::DotOp>(producer);
}

/// Adds to `group` the values that `op` reads from outside of it, and the ops
/// that it computes again for them.
void Grouper::addInputs(Group &group, Operation *op, int64_t round,
                        const RowClass &rows) {
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
    if (!isRepeated(use, round, rows)) {
      group.inputs.insert(operand);
      continue;
    }
    group.ops.insert(producer);
    pending.push_back({producer, 0});
  }
}

/// Makes a vector group of the rows along one dimension that one row group
/// combines, and adds each op on the results to the last group whose values it
/// needs.
void Grouper::formVectorGroups() {
  std::map<std::pair<size_t, std::optional<ValueDimensions::Dimension>>, size_t>
      byRows;
  size_t firstGroup = groups.size();
  auto getOrder = [&](size_t group) {
    int64_t round = rounds.get(groups[group].combined.front());
    return std::make_pair(round, group);
  };
  for (Operation &op : func.front().without_terminator()) {
    if (combinesAllRows(&op)) {
      auto reduce = cast<tile::ReduceRowsOp>(op);
      auto [it, isNew] = byRows.try_emplace(
          {owners.lookup(&op), dimensions.getColumns(reduce)}, groups.size());
      if (isNew)
        groups.emplace_back();
      owners[&op] = it->second;
      groups[it->second].combined.push_back(reduce);
      continue;
    }
    if (rounds.isRowOp(&op) ||
        llvm::none_of(op.getResults(),
                      [&](Value result) { return rounds.isCombined(result); }))
      continue;
    std::optional<size_t> owner;
    for (Value operand : op.getOperands()) {
      if (!rounds.isCombined(operand))
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

/// Makes a group for each dimension of row vectors that the function returns
/// and that depend on no rows: a kernel of a single row.
void Grouper::formSharedGroups() {
  std::map<std::optional<ValueDimensions::Dimension>, size_t> byColumns;
  for (Value value : func.front().getTerminator()->getOperands()) {
    if (isRowTensor(value) || rounds.isCombined(value))
      continue;
    Operation *op = value.getDefiningOp();
    // A joined vector is computed as pieces.
    Value computed = isa<tile::JoinOp>(op) ? op->getOperand(0) : value;
    auto [it, isNew] =
        byColumns.try_emplace(dimensions.getColumns(computed), groups.size());
    if (isNew)
      groups.emplace_back();
    owners[op] = it->second;
    groups[it->second].ops.insert(op);
    addInputs(groups[it->second], op, /*round=*/0);
  }
}

/// Makes `value` an output of the group that it belongs to.
void Grouper::addOutput(Value value) {
  if (Value whole = getWholeInMemory(value);
      whole && isPlace(value.getDefiningOp()))
    return addOutput(whole);
  Operation *producer = value.getDefiningOp();
  if (!producer)
    return;
  if (!followers.isPlace(producer)) {
    groups[owners.lookup(producer)].outputs.insert(value);
    return;
  }
  for (Value piece : producer->getOperands())
    addOutput(piece);
}

/// Makes every value that a group reads or the function returns an output of
/// the group that it belongs to. Groups without outputs, such as one of a
/// number that others repeat for themselves, are none.
LogicalResult Grouper::collectOutputs() {
  for (Group &group : groups)
    for (Value input : group.inputs)
      addOutput(input);
  for (Value value : func.front().getTerminator()->getOperands())
    addOutput(value);
  auto isNeeded = [](const Group &group) {
    return !group.outputs.empty() || !group.partials.empty();
  };
  for (auto &[group, op] : withoutRows)
    if (isNeeded(groups[group]))
      return op->emitOpError("depends on no row tensor among the arguments, so "
                             "its rows are unknown");
  llvm::erase_if(groups, [&](const Group &group) { return !isNeeded(group); });
  return success();
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
  if (failed(formRowGroups()) || failed(verifyCombinedRows()) ||
      failed(verifyBands()))
    return failure();
  formVectorGroups();
  formSharedGroups();
  recomputeFollowers(groups);
  separateNumbers(func, groups, owners, dimensions);
  if (failed(collectOutputs()))
    return failure();
  return std::move(groups);
}

} // namespace

FailureOr<SmallVector<Group>>
bastile::collectGroups(func::FuncOp func, const ValueDimensions &dimensions) {
  return Grouper(func, dimensions).run();
}
