//===- MaskConditions.cpp - Which elements a mask leaves ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/MaskConditions.h"

#include "dialect/Rows.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "passes/analysis/Constants.h"
#include "passes/analysis/LeastValues.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace bastile;

//===----------------------------------------------------------------------===//
// Positions
//===----------------------------------------------------------------------===//

/// The number that all elements of `value` are; none if it is no constant.
static std::optional<int64_t> getInteger(Value value) {
  if (auto broadcast = value.getDefiningOp<tile::BroadcastOp>())
    value = broadcast.getSource();
  APInt number;
  if (!matchPattern(value, m_ConstantInt(&number)) ||
      number.getSignificantBits() > 64)
    return std::nullopt;
  return number.getSExtValue();
}

/// Whether `number` and a few like it, or numbers of rows or columns, add up to
/// an integer of 32 bits.
static bool isSmall(int64_t number) {
  constexpr int64_t most = int64_t{1} << 28;
  return -most < number && number < most;
}

void MaskCondition::add(const MaskCondition &other, int64_t factor) {
  row += factor * other.row;
  column += factor * other.column;
  constant += factor * other.constant;
  for (auto [number, times] : other.numbers) {
    auto *it = llvm::find_if(
        numbers, [&, own = number](auto &entry) { return entry.first == own; });
    if (it == numbers.end())
      it = numbers.insert(it, {number, 0});
    it->second += factor * times;
    if (it->second == 0)
      numbers.erase(it);
  }
}

/// The number in memory that is `value` for all elements of a matrix, or for
/// those of a row or column of it.
static std::optional<MaskCondition> getNumber(BlockArgument value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.getElementType().isInteger(32) || type.getRank() == 0)
    return std::nullopt;
  ArrayRef<int64_t> matrix = type.getShape().take_back(2);
  if (matrix.size() == 1 ? matrix[0] != 1 : !llvm::is_contained(matrix, 1))
    return std::nullopt;
  return MaskCondition{0, 0, 0, {{value, 1}}};
}

bool bastile::isOfRow(BlockArgument number) {
  return llvm::any_of(
      cast<RankedTensorType>(number.getType()).getShape().take_back(2),
      [](int64_t size) { return size != 1; });
}

bool bastile::hasNumbersOfRows(const MaskCondition &condition) {
  return llvm::any_of(condition.numbers,
                      [](auto &entry) { return isOfRow(entry.first); });
}

static bool hasStreamedNumbers(const MaskCondition &condition,
                               const KernelSpace &space) {
  return llvm::any_of(condition.numbers, [&](auto &entry) {
    return space.hasStreamed(entry.first);
  });
}

namespace {

/// Finds integers that are linear in the numbers of a row and a column.
class PositionFinder {
public:
  std::optional<MaskCondition> find(Value value) {
    constexpr unsigned kMostVisits = 16;
    if (auto argument = dyn_cast<BlockArgument>(value))
      return getNumber(argument);
    if (++numVisits > kMostVisits)
      return std::nullopt;
    std::optional<MaskCondition> position = visit(value.getDefiningOp());
    if (!position || !isSmall(position->constant) ||
        std::abs(position->row) > 1 || std::abs(position->column) > 1)
      return std::nullopt;
    return position;
  }

private:
  std::optional<MaskCondition> visit(Operation *op);

  unsigned numVisits = 0;
};

} // namespace

/// The number of an element in its row, or of the row in its matrix.
static std::optional<MaskCondition> getPosition(tile::IotaOp iota) {
  MaskCondition position;
  std::optional<ArrayRef<int64_t>> over = iota.getOver();
  const int64_t rank = iota.getType().getRank();
  if (!over) {
    position.column = KernelSpace::hasColumns(iota.getResult()) ? 1 : 0;
    return position;
  }
  for (int64_t dimension : *over) {
    if (iota.getType().getDimSize(dimension) == 1)
      continue;
    if (dimension != rank - 2)
      return std::nullopt;
    position.row = 1;
  }
  return position;
}

std::optional<MaskCondition> PositionFinder::visit(Operation *op) {
  if (std::optional<int64_t> number = getInteger(op->getResult(0)))
    return MaskCondition{0, 0, *number};
  if (auto iota = dyn_cast<tile::IotaOp>(op))
    return getPosition(iota);
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
    return find(broadcast.getSource());
  if (!isa<arith::AddIOp, arith::SubIOp>(op))
    return std::nullopt;
  std::optional<MaskCondition> lhs = find(op->getOperand(0));
  std::optional<MaskCondition> rhs = find(op->getOperand(1));
  if (!lhs || !rhs)
    return std::nullopt;
  lhs->add(*rhs, isa<arith::AddIOp>(op) ? 1 : -1);
  return lhs;
}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

static void append(MaskConditions &to, const MaskConditions &from) {
  for (const MaskCondition &condition : from)
    if (!llvm::is_contained(to, condition))
      to.push_back(condition);
}

/// Adds what the comparison of two positions says.
static bool addComparison(arith::CmpIPredicate predicate, Value lhs, Value rhs,
                          MaskConditions &conditions) {
  using Predicate = arith::CmpIPredicate;
  std::optional<MaskCondition> left = PositionFinder().find(lhs);
  std::optional<MaskCondition> right = PositionFinder().find(rhs);
  if (!left || !right)
    return false;
  auto addOrder = [&](const MaskCondition &less, const MaskCondition &more,
                      int64_t distance) {
    MaskCondition condition = more;
    condition.add(less, -1);
    condition.constant -= distance;
    if (!llvm::is_contained(conditions, condition))
      conditions.push_back(condition);
  };
  switch (predicate) {
  case Predicate::eq:
    addOrder(*left, *right, 0);
    addOrder(*right, *left, 0);
    return true;
  case Predicate::sle:
    addOrder(*left, *right, 0);
    return true;
  case Predicate::slt:
    addOrder(*left, *right, 1);
    return true;
  case Predicate::sge:
    addOrder(*right, *left, 0);
    return true;
  case Predicate::sgt:
    addOrder(*right, *left, 1);
    return true;
  default:
    return false;
  }
}

/// Adds to `conditions` such that hold wherever `condition`, of an op on
/// tensors, is `isTrue`. Returns whether it is so wherever they hold, too.
static bool findConditions(Value condition, bool isTrue,
                           MaskConditions &conditions) {
  constexpr unsigned kMostVisits = 32;
  SmallVector<std::pair<Value, bool>> pending{{condition, isTrue}};
  bool isAll = true;
  for (unsigned visits = 0; !pending.empty(); ++visits) {
    auto [value, holds] = pending.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || visits == kMostVisits)
      return false;
    auto compare = dyn_cast<arith::CmpIOp>(op);
    if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
      pending.push_back({broadcast.getSource(), holds});
    else if (holds ? isa<arith::AndIOp>(op) : isa<arith::OrIOp>(op))
      pending.append({{op->getOperand(0), holds}, {op->getOperand(1), holds}});
    else if (isa<arith::XOrIOp>(op) && getInteger(op->getOperand(1)) == -1)
      pending.push_back({op->getOperand(0), !holds});
    else if (!compare)
      isAll = false;
    else
      isAll &=
          addComparison(holds ? compare.getPredicate()
                              : arith::invertPredicate(compare.getPredicate()),
                        compare.getLhs(), compare.getRhs(), conditions);
  }
  return isAll;
}

namespace {

/// Finds conditions of numbers that a program knows ahead of its loop.
class SufficientFinder {
public:
  SufficientFinder(const KernelSpace &space, MaskConditions &conditions)
      : space(space), conditions(conditions) {}

  /// Adds conditions such that `condition`, of an op on tensors, is `isTrue`
  /// wherever all of them hold. Returns whether there are any. Of alternatives,
  /// the first one that has some is taken.
  bool find(Value condition, bool isTrue);

private:
  bool addKnown(arith::CmpIOp compare, bool isTrue);
  bool addOperands(Operation *op, bool isTrue);

  const KernelSpace &space;
  MaskConditions &conditions;
  unsigned numVisits = 0;
};

} // namespace

bool SufficientFinder::find(Value condition, bool isTrue) {
  constexpr unsigned kMostVisits = 32;
  Operation *op = condition.getDefiningOp();
  if (!op || ++numVisits > kMostVisits)
    return false;
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
    return find(broadcast.getSource(), isTrue);
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return addKnown(compare, isTrue);
  if (isa<arith::XOrIOp>(op))
    return getInteger(op->getOperand(1)) == -1 &&
           find(op->getOperand(0), !isTrue);
  return isa<arith::AndIOp, arith::OrIOp>(op) && addOperands(op, isTrue);
}

bool SufficientFinder::addKnown(arith::CmpIOp compare, bool isTrue) {
  MaskConditions own;
  if (!addComparison(isTrue ? compare.getPredicate()
                            : arith::invertPredicate(compare.getPredicate()),
                     compare.getLhs(), compare.getRhs(), own) ||
      llvm::any_of(own, [&](const MaskCondition &condition) {
        return hasStreamedNumbers(condition, space);
      }))
    return false;
  append(conditions, own);
  return true;
}

/// Adds what suffices for both operands, or for one of them.
bool SufficientFinder::addOperands(Operation *op, bool isTrue) {
  const bool needsBoth = isa<arith::AndIOp>(op) == isTrue;
  const size_t before = conditions.size();
  for (Value operand : op->getOperands()) {
    const bool isFound = find(operand, isTrue);
    if (!isFound)
      conditions.truncate(before);
    if (isFound != needsBoth)
      return isFound;
  }
  return needsBoth;
}

/// The rows of a transposed factor are streamed, and its columns the program's
/// rows.
static void placeConditions(MaskConditions &conditions,
                            const KernelSpace &space) {
  if (space.isTransposed())
    for (MaskCondition &condition : conditions)
      std::swap(condition.row, condition.column);
}

std::optional<Mask> Mask::get(arith::SelectOp select,
                              const KernelSpace &space) {
  const bool isTrue = getConstantFloat(select.getFalseValue()).has_value();
  if (!isTrue && !getConstantFloat(select.getTrueValue()))
    return std::nullopt;
  Mask mask;
  mask.shown = isTrue ? select.getTrueValue() : select.getFalseValue();
  if (!SufficientFinder(space, mask.conditions)
           .find(select.getCondition(), isTrue))
    return std::nullopt;
  placeConditions(mask.conditions, space);
  return mask;
}

//===----------------------------------------------------------------------===//
// What sums do not see
//===----------------------------------------------------------------------===//

namespace {

/// Finds out where the terms of one sum do not count.
class HiddenFinder {
public:
  HiddenFinder(const FollowingSum *sum) : sum(sum) {}

  MaskConditions find(Operation *op);
  /// The masks that have to show some element of each row.
  ArrayRef<MaskConditions> getMasks() const { return masks; }

private:
  MaskConditions visit(Value value, double hidden);
  MaskConditions visitSelect(arith::SelectOp select, double hidden);
  MaskConditions visitOp(Operation *op, double hidden);
  MaskConditions visitPower(math::ExpOp exp);
  MaskConditions visitInShownRows(Value value, double hidden);

  const FollowingSum *sum;
  unsigned numVisits = 0;
  /// Whether the last conditions hold for all elements that are not hidden.
  bool isComplete = false;
  SmallVector<MaskConditions, 1> masks;
};

} // namespace

/// The conditions such that `value` is the number `hidden` where one of them
/// does not hold.
MaskConditions HiddenFinder::visit(Value value, double hidden) {
  constexpr unsigned kMostVisits = 64;
  isComplete = false;
  Operation *op = value.getDefiningOp();
  if (!op || ++numVisits > kMostVisits)
    return {};
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return visitSelect(select, hidden);
  return visitOp(op, hidden);
}

MaskConditions HiddenFinder::visitSelect(arith::SelectOp select,
                                         double hidden) {
  const bool isTrue = getConstantFloat(select.getFalseValue()) == hidden;
  if (!isTrue && getConstantFloat(select.getTrueValue()) != hidden)
    return {};
  MaskConditions conditions =
      visit(isTrue ? select.getTrueValue() : select.getFalseValue(), hidden);
  const bool isFirst = conditions.empty();
  isComplete =
      findConditions(select.getCondition(), isTrue, conditions) && isFirst;
  return conditions;
}

/// A product of 0 is 0 here, whatever the other factor is.
MaskConditions HiddenFinder::visitOp(Operation *op, double hidden) {
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    return visit(op->getOperand(0), hidden);
  auto product = dyn_cast<arith::MulFOp>(op);
  if (hidden != 0) {
    if (!product || getConstantFloat(product.getRhs()).value_or(0) <= 0)
      return {};
    return visit(product.getLhs(), hidden);
  }
  if (auto exp = dyn_cast<math::ExpOp>(op))
    return visitPower(exp);
  if (isa<arith::NegFOp>(op))
    return visit(op->getOperand(0), hidden);
  if (product) {
    MaskConditions conditions = visit(product.getLhs(), hidden);
    append(conditions, visit(product.getRhs(), hidden));
    isComplete = false;
    return conditions;
  }
  auto quotient = dyn_cast<arith::DivFOp>(op);
  if (!quotient)
    return {};
  // What divides all terms of a sum that follows a maximum divides the sum.
  if (!sum && findLeast(quotient.getRhs()).value_or(-1) >= 0)
    return visit(quotient.getLhs(), hidden);
  if (!sum)
    return visitInShownRows(quotient.getLhs(), hidden);
  return llvm::is_contained(sum->divisors, quotient.getRhs())
             ? visit(quotient.getLhs(), hidden)
             : MaskConditions();
}

/// A power of minus infinity is 0 in a sum that follows a maximum, also where
/// that is minus infinity. Where the sum counts its terms, such a power counts.
MaskConditions HiddenFinder::visitPower(math::ExpOp exp) {
  auto difference = exp.getOperand().getDefiningOp<arith::SubFOp>();
  if (!sum && difference) {
    // One number of the row may be subtracted after the other.
    bool areAbove = findLeast(difference.getRhs()).has_value();
    auto first = difference.getLhs().getDefiningOp<arith::SubFOp>();
    auto repeated =
        first ? first.getRhs().getDefiningOp<tile::BroadcastOp>() : nullptr;
    if (repeated && !KernelSpace::hasColumns(repeated.getSource())) {
      difference = first;
      areAbove &= findLeast(first.getRhs()).has_value();
    }
    return areAbove ? visit(difference.getLhs(), -INFINITY)
                    : visitInShownRows(difference.getLhs(), -INFINITY);
  }
  if (!sum || sum->mayBeEmpty())
    return {};
  for (const Power &own : sum->powers)
    if (own.result == exp.getResult())
      return visit(own.exponent, -INFINITY);
  return {};
}

/// The same for a value that is relative to a statistic of its row, which is a
/// number other than 0 where the row has elements that are not hidden. Which
/// rows have some, numbers of rows do not tell ahead of a loop.
MaskConditions HiddenFinder::visitInShownRows(Value value, double hidden) {
  MaskConditions conditions = visit(value, hidden);
  if (!isComplete || llvm::any_of(conditions, hasNumbersOfRows))
    return {};
  if (!llvm::is_contained(masks, conditions))
    masks.push_back(conditions);
  return conditions;
}

MaskConditions HiddenFinder::find(Operation *op) {
  auto reduce = dyn_cast<tile::ReduceOp>(op);
  if (!reduce || reduce.getKind() == tile::ReduceKind::Add)
    return visit(op->getOperand(0), 0);
  if (reduce.getKind() == tile::ReduceKind::Max)
    return visit(op->getOperand(0), -INFINITY);
  return {};
}

Visited bastile::findVisited(ArrayRef<Operation *> sums,
                             const FollowingSums &following,
                             const KernelSpace &space) {
  Visited visited;
  MaskConditions &common = visited.conditions;
  for (auto [index, op] : llvm::enumerate(sums)) {
    HiddenFinder finder(following.lookup(op));
    MaskConditions own = finder.find(op);
    for (const MaskConditions &mask : finder.getMasks())
      if (!llvm::is_contained(visited.masks, mask))
        visited.masks.push_back(mask);
    if (index == 0)
      common = own;
    else
      llvm::erase_if(common, [&](const MaskCondition &condition) {
        return !llvm::is_contained(own, condition);
      });
  }
  llvm::erase_if(common, [&](const MaskCondition &condition) {
    return hasStreamedNumbers(condition, space);
  });
  placeConditions(common, space);
  return visited;
}

Visited bastile::findVisited(Block &body, const KernelSpace &space) {
  SmallVector<Operation *> sums;
  for (Operation &op : body.without_terminator())
    if (space.reducesStream(&op))
      sums.push_back(&op);
  return findVisited(sums, FollowingSums(body), space);
}
