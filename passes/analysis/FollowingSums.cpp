//===- FollowingSums.cpp - Sums that follow a maximum ---------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/FollowingSums.h"

#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "passes/analysis/LeastValues.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace bastile {

/// Whether `op` is a product of a computed left factor.
static bool multipliesComputed(Operation *op) {
  auto dot = dyn_cast<tile::DotOp>(op);
  return dot && dot.isOnTensors() && dot.getA().getDefiningOp();
}

/// Whether `op` is a product that sums the elements of computed rows, each
/// multiplied by one of the right factor.
static bool sumsTerms(Operation *op) {
  return multipliesComputed(op) && cast<tile::DotOp>(op).getContract()[0] == 1;
}

ReductionDepths::ReductionDepths()
    : ReductionDepths([](Operation *op) {
        return isRowReduction(op) || multipliesComputed(op);
      }) {}

int64_t ReductionDepths::get(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return 0;
  auto it = depths.find(value);
  if (it != depths.end())
    return it->second;
  int64_t depth = 0;
  for (Value operand : getValueOperands(op))
    depth = std::max(depth, get(operand));
  depth += isReduction(op);
  depths[value] = depth;
  return depth;
}

/// The statistic that `value` repeats along the row; null if it is no such
/// broadcast.
static Value getStatistic(Value value) {
  auto broadcast = value.getDefiningOp<tile::BroadcastOp>();
  auto source =
      broadcast ? dyn_cast<RankedTensorType>(broadcast.getSource().getType())
                : RankedTensorType();
  bool isStatistic = source && source.getShape().back() == 1 &&
                     source.getRank() == broadcast.getType().getRank();
  return isStatistic ? broadcast.getSource() : Value();
}

tile::ReduceOp getSubtractedMaximum(tile::ReduceOp sum) {
  auto exp = sum.getInput().getDefiningOp<math::ExpOp>();
  if (!exp || sum.getKind() != tile::ReduceKind::Add || !isRowReduction(sum))
    return nullptr;
  auto difference = exp.getOperand().getDefiningOp<arith::SubFOp>();
  Value statistic = difference ? getStatistic(difference.getRhs()) : Value();
  auto max = statistic ? statistic.getDefiningOp<tile::ReduceOp>() : nullptr;
  bool isMaximum = max && max.getKind() == tile::ReduceKind::Max &&
                   isRowReduction(max) && max.getInput() == difference.getLhs();
  return isMaximum ? max : nullptr;
}

/// Whether all elements of `value` are the constant that `matcher` matches.
template <typename Matcher>
static bool isNumber(Value value, Matcher matcher) {
  if (auto broadcast = value.getDefiningOp<tile::BroadcastOp>())
    value = broadcast.getSource();
  return matchPattern(value, matcher);
}

namespace {

/// Finds out whether one sum follows a maximum.
class TermFinder {
public:
  TermFinder(const FollowingSums &earlier, ReductionDepths &depths)
      : earlier(earlier), depths(depths) {}

  std::optional<FollowingSum> find(Operation *op) {
    auto reduce = dyn_cast<tile::ReduceOp>(op);
    const bool isSum =
        reduce ? reduce.getKind() == tile::ReduceKind::Add && isRowReduction(op)
               : sumsTerms(op);
    if (!isSum || !visit(op->getOperand(0)) || !arePowersOfOneRow() ||
        !isInTime())
      return std::nullopt;
    sum.isPlain = reduce && getSubtractedMaximum(reduce);
    return std::move(sum);
  }

private:
  int64_t getDepth(Value value) { return depths.get(value); }

  bool visit(Value term);
  bool visitPower(math::ExpOp exp);
  bool visitProduct(Value lhs, Value rhs);
  bool visitQuotient(Value dividend, Value divisor);
  bool visitBranch(arith::SelectOp select, bool isTrue);
  bool visitScaled(Value term, Value coefficient);
  bool visitDivided(Value term, Value broadcast, Value own,
                    SmallVectorImpl<Value> &broadcasts);

  bool arePowersOfOneRow();
  bool isInTime();
  bool isAtLeastSum(Value number) const;

  /// The sums that stand before this one, and what values wait for.
  const FollowingSums &earlier;
  ReductionDepths &depths;

  FollowingSum sum;
  /// Numbers and conditions that must not wait for the maximum.
  SmallVector<Value> coefficients;
  /// The selects between the sum and the current term, and how many terms were
  /// visited. A term that many others use is visited for each.
  SmallVector<Branch, 2> branches;
  unsigned numVisits = 0;
  /// What divides the current term, and how many of the selects choose from
  /// what it has divided.
  Value divisor;
  size_t divisorBranches = 0;
};

} // namespace

/// Visits `term` of the sum. Returns false unless it is linear in exp(x - m).
bool TermFinder::visit(Value term) {
  constexpr unsigned kMostVisits = 64;
  Operation *op = term.getDefiningOp();
  if (!op || ++numVisits > kMostVisits)
    return false;
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](math::ExpOp exp) { return visitPower(exp); })
      .Case([&](arith::AddFOp op) {
        return visit(op.getLhs()) && visit(op.getRhs());
      })
      .Case([&](arith::SubFOp op) {
        sum.hasCoefficients = true;
        return visit(op.getLhs()) && visit(op.getRhs());
      })
      .Case([&](arith::NegFOp op) {
        sum.hasCoefficients = true;
        return visit(op.getOperand());
      })
      .Case([&](arith::MulFOp op) {
        return visitProduct(op.getLhs(), op.getRhs());
      })
      .Case([&](arith::DivFOp op) {
        return visitQuotient(op.getLhs(), op.getRhs());
      })
      .Case([&](arith::SelectOp op) {
        coefficients.push_back(op.getCondition());
        return visitBranch(op, /*isTrue=*/true) &&
               visitBranch(op, /*isTrue=*/false);
      })
      .Default(false);
}

bool TermFinder::visitBranch(arith::SelectOp select, bool isTrue) {
  Value term = isTrue ? select.getTrueValue() : select.getFalseValue();
  if (isNumber(term, m_AnyZeroFloat())) {
    // What l makes of a 0 is not left out in some columns only.
    sum.dividesZeros |= bool(divisor);
    return !divisor || divisorBranches == 0;
  }
  branches.push_back({select.getCondition(), isTrue});
  bool isLinear = visit(term);
  branches.pop_back();
  return isLinear;
}

/// The l of a statistic 1 / l; null if it is no reciprocal.
static Value getReciprocal(Value statistic) {
  auto quotient =
      statistic ? statistic.getDefiningOp<arith::DivFOp>() : nullptr;
  return quotient && isNumber(quotient.getLhs(), m_OneFloat())
             ? quotient.getRhs()
             : Value();
}

/// The l of a statistic log(l); null if it is no logarithm.
static Value getArgumentOfLog(Value statistic) {
  auto log = statistic ? statistic.getDefiningOp<math::LogOp>() : nullptr;
  return log ? log.getOperand() : Value();
}

/// Of two factors, the coefficient waits for less than the power does, and a
/// divisor for the same as the power.
bool TermFinder::visitProduct(Value lhs, Value rhs) {
  if (getDepth(lhs) != getDepth(rhs))
    return getDepth(lhs) > getDepth(rhs) ? visitScaled(lhs, rhs)
                                         : visitScaled(rhs, lhs);
  if (Value own = getReciprocal(getStatistic(rhs)))
    return visitDivided(lhs, rhs, own, sum.reciprocals);
  if (Value own = getReciprocal(getStatistic(lhs)))
    return visitDivided(rhs, lhs, own, sum.reciprocals);
  return false;
}

bool TermFinder::visitQuotient(Value dividend, Value divisor) {
  if (getDepth(divisor) < getDepth(dividend))
    return visitScaled(dividend, divisor);
  Value own = getStatistic(divisor);
  return own && visitDivided(dividend, divisor, own, sum.divisors);
}

bool TermFinder::visitScaled(Value term, Value coefficient) {
  sum.hasCoefficients = true;
  coefficients.push_back(coefficient);
  return visit(term);
}

/// Visits `term`, which is divided by l, a statistic. `broadcast` says so in
/// the formula, and is added to `broadcasts`.
bool TermFinder::visitDivided(Value term, Value broadcast, Value own,
                              SmallVectorImpl<Value> &broadcasts) {
  if (divisor)
    return false;
  broadcasts.push_back(broadcast);
  divisor = own;
  divisorBranches = branches.size();
  bool isLinear = visit(term);
  divisor = Value();
  return isLinear;
}

/// Adds the power `exp` to the sum's. Its exponent is one of x - m,
/// x - m - log(l) and x - (m + log(l)).
bool TermFinder::visitPower(math::ExpOp exp) {
  Power power;
  power.result = exp.getResult();
  power.branches = branches;
  auto difference = exp.getOperand().getDefiningOp<arith::SubFOp>();
  Value statistic = difference ? getStatistic(difference.getRhs()) : Value();
  Value own;
  if ((own = getArgumentOfLog(statistic))) {
    power.logarithm = difference.getRhs();
    difference = difference.getLhs().getDefiningOp<arith::SubFOp>();
    statistic = difference ? getStatistic(difference.getRhs()) : Value();
  } else if (auto both = statistic ? statistic.getDefiningOp<arith::AddFOp>()
                                   : nullptr) {
    const bool isLast = bool(getArgumentOfLog(both.getRhs()));
    own = getArgumentOfLog(isLast ? both.getRhs() : both.getLhs());
    statistic = isLast ? both.getLhs() : both.getRhs();
  }
  if (!statistic || (own && divisor))
    return false;
  power.isDivided = bool(own);
  power.exponent = difference.getLhs();
  power.subtracted = difference.getRhs();
  if (!own)
    own = divisor;
  if (sum.powers.empty()) {
    sum.subtracted = statistic;
    sum.divisor = own;
  }
  sum.powers.push_back(power);
  return statistic == sum.subtracted && own == sum.divisor;
}

/// What `value` is where all of `branches` hold.
static Value getSelected(Value value, ArrayRef<Branch> branches) {
  while (auto select = value.getDefiningOp<arith::SelectOp>()) {
    const auto *branch = llvm::find_if(branches, [&](const Branch &branch) {
      return branch.condition == select.getCondition();
    });
    if (branch == branches.end())
      break;
    value = branch->isTrue ? select.getTrueValue() : select.getFalseValue();
  }
  return value;
}

/// Whether the exponent of `power` is `x` less m wherever the power counts.
static bool isPowerOf(Value x, const Power &power) {
  return getSelected(x, power.branches) ==
         getSelected(power.exponent, power.branches);
}

/// What m is but for rows in which all powers are 0, whatever they are relative
/// to: a number takes its place where the maximum is far below that number, as
/// that of a row without terms is. Null if `statistic` is no such select.
static Value getShown(Value statistic) {
  auto select = statistic.getDefiningOp<arith::SelectOp>();
  auto compare =
      select ? select.getCondition().getDefiningOp<arith::CmpFOp>() : nullptr;
  APFloat limit(0.0), number(0.0);
  if (!compare || compare.getLhs() != select.getTrueValue() ||
      (compare.getPredicate() != arith::CmpFPredicate::OGT &&
       compare.getPredicate() != arith::CmpFPredicate::OGE) ||
      !isNumber(compare.getRhs(), m_ConstantFloat(&limit)) ||
      !isNumber(select.getFalseValue(), m_ConstantFloat(&number)))
    return Value();
  // A power of this is 0 in float64, too.
  constexpr double leastPower = -1000;
  return limit.convertToDouble() - number.convertToDouble() <= leastPower
             ? select.getTrueValue()
             : Value();
}

/// The maximum of what `power` has in its exponent, if `subtracted` is at least
/// that maximum; null otherwise.
static tile::ReduceOp findMaximum(Value subtracted, const Power &power) {
  llvm::SetVector<Value> candidates;
  candidates.insert(subtracted);
  for (size_t index = 0; index < candidates.size(); ++index) {
    const Value value = candidates[index];
    if (auto both = value.getDefiningOp<arith::MaximumFOp>()) {
      candidates.insert(both.getLhs());
      candidates.insert(both.getRhs());
      continue;
    }
    auto reduce = value.getDefiningOp<tile::ReduceOp>();
    if (reduce && reduce.getKind() == tile::ReduceKind::Max &&
        isRowReduction(reduce) && isPowerOf(reduce.getInput(), power))
      return reduce;
  }
  return nullptr;
}

/// Whether all powers are of one x, and l is a divisor that may leave the sum.
bool TermFinder::arePowersOfOneRow() {
  if (sum.powers.empty())
    return false;
  // Kernels on rows combine such sums in other orders.
  const bool multiplies =
      !sum.subtracted.getParentBlock()->getOps<tile::DotOp>().empty();
  Value shown = multiplies ? getShown(sum.subtracted) : Value();
  sum.mayDecrease = bool(shown);
  tile::ReduceOp maximum =
      findMaximum(shown ? shown : sum.subtracted, sum.powers.front());
  if (!maximum)
    return false;
  sum.maximum = maximum.getResult();
  sum.exponent = maximum.getInput();
  return llvm::all_of(sum.powers,
                      [&](const Power &power) {
                        return isPowerOf(sum.exponent, power);
                      }) &&
         (!sum.divisor || isAtLeastSum(sum.divisor));
}

/// Whether `number` is at least the sum of the same powers as this sum's.
bool TermFinder::isAtLeastSum(Value number) const {
  if (auto both = number.getDefiningOp<arith::AddFOp>()) {
    Value lhs = both.getLhs(), rhs = both.getRhs();
    return (isAtLeastSum(lhs) && isNeverNegative(rhs)) ||
           (isAtLeastSum(rhs) && isNeverNegative(lhs));
  }
  auto reduce = number.getDefiningOp<tile::ReduceOp>();
  const FollowingSum *other = reduce ? earlier.lookup(reduce) : nullptr;
  if (!other || other->hasCoefficients || other->divisor ||
      other->powers.size() != 1 || other->maximum != sum.maximum ||
      other->subtracted != sum.subtracted)
    return false;
  // A power that counts here also counts there.
  return llvm::all_of(sum.powers, [&](const Power &power) {
    return llvm::all_of(other->powers.front().branches,
                        [&](const Branch &branch) {
                          return llvm::is_contained(power.branches, branch);
                        });
  });
}

/// Whether the sweep that finds the maximum has all that the terms need, and m
/// and l are known at its end.
bool TermFinder::isInTime() {
  const int64_t before = getDepth(sum.exponent);
  const int64_t after = getDepth(sum.maximum);
  return getDepth(sum.subtracted) <= after &&
         (!sum.divisor || getDepth(sum.divisor) <= after) &&
         llvm::all_of(sum.powers,
                      [&](const Power &power) {
                        return getDepth(power.exponent) <= before;
                      }) &&
         llvm::all_of(coefficients, [&](Value coefficient) {
           return getDepth(coefficient) <= before;
         });
}

FollowingSums::FollowingSums(Block &block) {
  ReductionDepths depths;
  for (Operation &op : block.without_terminator())
    if (auto sum = TermFinder(*this, depths).find(&op)) {
      depths.follow(&op, sum->maximum);
      sums.insert({&op, std::move(*sum)});
    }
}

bool FollowingSums::areAllPlain() const {
  return llvm::all_of(sums,
                      [](const auto &entry) { return entry.second.isPlain; });
}

void FollowingSums::keepPlain() {
  sums.remove_if([](const auto &entry) { return !entry.second.isPlain; });
}

ReductionDepths FollowingSums::getDepths() const {
  ReductionDepths depths;
  for (const auto &[reduce, sum] : sums)
    depths.follow(reduce, sum.maximum);
  return depths;
}

} // namespace bastile
