//===- ProductSums.cpp - Gradients by numbers of rows ---------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tensors/ProductSums.h"

#include "dialect/Expression.h"
#include "dialect/Rows.h"
#include "mlir/IR/Matchers.h"
#include "passes/analysis/ExactDifferences.h"
#include "passes/analysis/LeastValues.h"
#include "passes/analysis/PowersOf2.h"
#include "passes/analysis/StreamedFactors.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace bastile;
using tile::Expr;

//===----------------------------------------------------------------------===//
// Sums of products
//===----------------------------------------------------------------------===//

namespace {

/// A factor or divisor of a term. Numbers that are repeated along the row stand
/// for what is repeated, and equal constants for each other.
struct Atom {
  Value value;
  Attribute constant;
  bool divides = false;

  bool operator==(const Atom &other) const {
    return divides == other.divides &&
           (constant ? constant == other.constant : value == other.value);
  }
  /// Whether each row has one number of it.
  bool isOfRow() const {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return constant || !type || type.getShape().back() == 1;
  }
};

/// Where a select has a term; it has 0 elsewhere.
struct Shown {
  Value condition;
  bool isTrue;

  bool operator==(const Shown &other) const {
    return condition == other.condition && isTrue == other.isTrue;
  }
};

/// A term of a sum as a product.
struct Factors {
  SmallVector<Atom> atoms;
  SmallVector<Shown, 2> shown;
  bool isNegative = false;

  explicit Factors(Value term);
  /// Takes the atoms of `other` out. Returns whether all of them were there,
  /// and both are 0 in the same places.
  bool divideBy(const Factors &other);

private:
  void add(Value value, bool divides);
};

} // namespace

static bool isZero(Value value) {
  if (auto broadcast = value.getDefiningOp<tile::BroadcastOp>())
    value = broadcast.getSource();
  return matchPattern(value, m_AnyZeroFloat());
}

static Atom getAtom(Value value, bool divides) {
  while (auto broadcast = value.getDefiningOp<tile::BroadcastOp>()) {
    auto source = dyn_cast<RankedTensorType>(broadcast.getSource().getType());
    if (source && (source.getShape().back() != 1 ||
                   source.getRank() != broadcast.getType().getRank()))
      break;
    value = broadcast.getSource();
  }
  Atom atom{value, Attribute(), divides};
  matchPattern(value, m_Constant(&atom.constant));
  if (auto elements = dyn_cast_if_present<DenseElementsAttr>(atom.constant))
    atom.constant =
        elements.isSplat() ? elements.getSplatValue<Attribute>() : Attribute();
  return atom;
}

Factors::Factors(Value term) { add(term, /*divides=*/false); }

void Factors::add(Value value, bool divides) {
  constexpr size_t kMostAtoms = 16;
  SmallVector<std::pair<Value, bool>> pending{{value, divides}};
  while (!pending.empty() && atoms.size() + pending.size() < kMostAtoms) {
    auto [next, isDivisor] = pending.pop_back_val();
    Operation *op = next.getDefiningOp();
    auto select = dyn_cast_if_present<arith::SelectOp>(op);
    if (isa_and_present<arith::MulFOp, arith::DivFOp>(op)) {
      pending.push_back({op->getOperand(0), isDivisor});
      pending.push_back(
          {op->getOperand(1), isDivisor != isa<arith::DivFOp>(op)});
    } else if (isa_and_present<arith::NegFOp>(op)) {
      isNegative = !isNegative;
      pending.push_back({op->getOperand(0), isDivisor});
    } else if (select && !isDivisor &&
               (isZero(select.getFalseValue()) ||
                isZero(select.getTrueValue()))) {
      const bool isTrue = isZero(select.getFalseValue());
      if (Shown own{select.getCondition(), isTrue};
          !llvm::is_contained(shown, own))
        shown.push_back(own);
      pending.push_back(
          {isTrue ? select.getTrueValue() : select.getFalseValue(), isDivisor});
    } else {
      atoms.push_back(getAtom(next, isDivisor));
    }
  }
  for (auto [left, isDivisor] : pending)
    atoms.push_back(getAtom(left, isDivisor));
}

bool Factors::divideBy(const Factors &other) {
  if (shown.size() != other.shown.size() ||
      !llvm::all_of(other.shown, [&](const Shown &own) {
        return llvm::is_contained(shown, own);
      }))
    return false;
  for (const Atom &atom : other.atoms) {
    auto *it = llvm::find(atoms, atom);
    if (it == atoms.end())
      return false;
    atoms.erase(it);
  }
  isNegative ^= other.isNegative;
  return true;
}

/// Whether `other` sums over the columns of the right factor of both, of which
/// `dot` sums over the rows, for the same matrices.
static bool multipliesAcross(tile::DotOp dot, tile::DotOp other) {
  auto left = cast<RankedTensorType>(dot.getA().getType());
  auto others = cast<RankedTensorType>(other.getA().getType());
  return dot.getB() == other.getB() && dot.getContract()[0] == 1 &&
         other.getContract()[0] == 1 &&
         dot.getContract()[1] == 1 - other.getContract()[1] &&
         left.getShape() == other.getSumType().getShape() &&
         others.getShape() == dot.getSumType().getShape();
}

/// The product `dot`, or what it is rounded to ahead of `op` anyway.
static Value getRounded(tile::DotOp dot, Operation *op) {
  for (Operation *user : dot->getUsers())
    if (isa<arith::TruncFOp>(user) && user->isBeforeInBlock(op))
      return user->getResult(0);
  return dot.getResult();
}

/// The number of each row that `atom` is, in the shape of `statistic`.
static Expr repeatLike(ImplicitLocOpBuilder &builder, const Atom &atom,
                       const Expr &statistic) {
  if (auto number = dyn_cast_if_present<FloatAttr>(atom.constant))
    return statistic.constant(number.getValueAsDouble());
  if (isa<RankedTensorType>(atom.value.getType()))
    return Expr(builder, atom.value).like(statistic);
  return Expr(builder,
              tile::BroadcastOp::create(builder, statistic.getType(),
                                        atom.value, statistic.getValue()));
}

namespace {

/// A row sum of p (a b^T), as the sum of a (p b).
struct ShorterSum {
  tile::ReduceOp reduce;
  /// What gives a b^T, and p b.
  tile::DotOp across, dot;
  /// What else multiplies or divides the sum.
  Factors rest;

  /// Builds it ahead of `reduce`, of p b or of what that is rounded to.
  Value build(bool ofRounded);
};

} // namespace

Value ShorterSum::build(bool ofRounded) {
  ImplicitLocOpBuilder builder(reduce.getLoc(), reduce);
  Value product = ofRounded ? getRounded(dot, reduce) : dot.getResult();
  Expr sum = rowSum(Expr(builder, across.getA()) * Expr(builder, product));
  for (const Atom &number : rest.atoms) {
    Expr factor = repeatLike(builder, number, sum);
    sum = number.divides ? sum / factor : sum * factor;
  }
  return (rest.isNegative ? -sum : sum).getValue();
}

static bool isRowSum(Operation *op) {
  return isRowReduction(op) &&
         cast<tile::ReduceOp>(op).getKind() == tile::ReduceKind::Add;
}

/// The shorter form of `op`; none if it has none.
static std::optional<ShorterSum>
findShorter(Operation *op, const DenseSet<Operation *> &products) {
  if (!isRowSum(op))
    return std::nullopt;
  const Factors term(op->getOperand(0));
  for (const Atom &atom : term.atoms) {
    auto across = atom.value.getDefiningOp<tile::DotOp>();
    if (!across || atom.divides)
      continue;
    for (Operation *user : across.getB().getUsers()) {
      if (!products.contains(user) ||
          !multipliesAcross(cast<tile::DotOp>(user), across))
        continue;
      auto dot = cast<tile::DotOp>(user);
      Factors rest = term;
      rest.atoms.erase(llvm::find(rest.atoms, atom));
      if (rest.divideBy(Factors(dot.getA())) &&
          llvm::all_of(rest.atoms, std::mem_fn(&Atom::isOfRow)))
        return ShorterSum{cast<tile::ReduceOp>(op), across, dot,
                          std::move(rest)};
    }
  }
  return std::nullopt;
}

void bastile::shortenProductSums(Operation *first,
                                 const DenseSet<Operation *> &products,
                                 MutableArrayRef<Value> values) {
  SmallVector<ShorterSum> found;
  // What waits for reductions of rows as long as those of a left factor.
  DenseSet<Value> waiting;
  auto getShape = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape();
  };
  auto isLong = [&](Operation *op) {
    return isRowReduction(op) &&
           llvm::any_of(products, [&](Operation *product) {
             return getShape(product->getOperand(0)) ==
                    getShape(op->getOperand(0));
           });
  };
  if (products.empty())
    return;
  for (Operation &op :
       llvm::make_range(first->getIterator(), first->getBlock()->end())) {
    if (std::optional<ShorterSum> sum = findShorter(&op, products)) {
      found.push_back(std::move(*sum));
      continue;
    }
    const bool waits = llvm::any_of(getValueOperands(&op), [&](Value value) {
      return waiting.contains(value);
    });
    if (waits && isa<tile::DotOp>(op))
      return;
    if (waits || isLong(&op))
      waiting.insert(op.result_begin(), op.result_end());
  }
  // Another sum, as of the gradient of a slope, adds up what rounding leaves in
  // each term.
  const bool ofRounded = waiting.empty();
  for (ShorterSum &sum : found) {
    Value shorter = sum.build(ofRounded);
    llvm::replace(values, Value(sum.reduce.getResult()), shorter);
    sum.reduce.replaceAllUsesWith(shorter);
    sum.reduce.erase();
  }
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// The number of each row that `value` is, or repeats along the row; null if it
/// is no such number.
static Value getOfRow(Value value) {
  while (auto broadcast = value.getDefiningOp<tile::BroadcastOp>()) {
    auto source = dyn_cast<RankedTensorType>(broadcast.getSource().getType());
    if (!source || source.getRank() != broadcast.getType().getRank())
      break;
    value = broadcast.getSource();
  }
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() > 0 && type.getShape().back() == 1 ? value
                                                                   : Value();
}

/// Whether `value` is a sum of powers along rows, at least, so that it has a
/// logarithm.
static bool isAtLeastSumOfPowers(Value value) {
  if (auto sum = value.getDefiningOp<arith::AddFOp>()) {
    Value lhs = sum.getLhs(), rhs = sum.getRhs();
    return (isNeverNegative(rhs) && isAtLeastSumOfPowers(lhs)) ||
           (isNeverNegative(lhs) && isAtLeastSumOfPowers(rhs));
  }
  return value.getDefiningOp<tile::ReduceOp>() && isNeverNegative(value);
}

SmallVector<NormalizedPower> bastile::addLogarithms(func::FuncOp func) {
  SmallVector<NormalizedPower> found;
  const DenseSet<Operation *> streamed = findStreamedOps(func).factors;
  for (auto quotient : func.front().getOps<arith::DivFOp>()) {
    auto exp = quotient.getLhs().getDefiningOp<math::ExpOp>();
    std::optional<PowerOf2> power = exp ? findRoundedPower(exp) : std::nullopt;
    Value divisor = getOfRow(quotient.getRhs());
    if (!power || !divisor || !isAtLeastSumOfPowers(divisor) ||
        !streamed.contains(quotient))
      continue;
    ImplicitLocOpBuilder builder(quotient.getLoc(), func.getContext());
    builder.setInsertionPointAfter(quotient);
    Expr sum = log(Expr(builder, divisor));
    const bool ofBoth = areScores(power->x);
    if (ofBoth)
      sum = Expr(builder, power->statistic) + sum;
    Expr scaled = sum * llvm::numbers::log2e;
    // The maximum of a row that sees nothing may be too low for units of log 2:
    // any number as low does there.
    Value isFinite =
        compare(arith::CmpFPredicate::OGT, scaled, scaled.constant(-INFINITY));
    found.push_back({quotient.getResult(),
                     select(isFinite, scaled, sum).getValue(), ofBoth});
  }
  return found;
}

namespace {

/// Takes the divisor of weights out of the gradients that multiply their power.
class GradientRewriter {
public:
  GradientRewriter(arith::DivFOp weights, Operation *first)
      : power(weights.getLhs()), divisor(getOfRow(weights.getRhs())),
        first(first) {}

  /// Whether all gradients that read the power multiply it by something that
  /// the divisor divides.
  bool canDivide();
  /// Leaves the division to the power.
  void divide();

private:
  bool isDivided(Value value);
  Value createDividend(OpBuilder &builder, Value value);
  /// The factor of `product` that is not the power.
  static OpOperand &getOther(arith::MulFOp product, Value power) {
    return product->getOpOperand(product.getLhs() == power ? 1 : 0);
  }

  Value power, divisor;
  Operation *first;
  SmallVector<arith::MulFOp> products;
  /// How many terms were visited. One that others use is visited for each.
  unsigned numVisits = 0;
};

} // namespace

/// Whether `value` is a sum of terms that are all divided by the divisor.
bool GradientRewriter::isDivided(Value value) {
  constexpr unsigned kMostVisits = 64;
  Operation *op = value.getDefiningOp();
  if (!op || op->isBeforeInBlock(first) || ++numVisits > kMostVisits)
    return false;
  if (auto quotient = dyn_cast<arith::DivFOp>(op))
    return getOfRow(quotient.getRhs()) == divisor;
  if (isa<arith::AddFOp, arith::SubFOp>(op))
    return isDivided(op->getOperand(0)) && isDivided(op->getOperand(1));
  if (isa<arith::NegFOp, tile::BroadcastOp>(op))
    return isDivided(op->getOperand(0));
  return false;
}

Value GradientRewriter::createDividend(OpBuilder &builder, Value value) {
  Operation *op = value.getDefiningOp();
  if (auto quotient = dyn_cast<arith::DivFOp>(op))
    return quotient.getLhs();
  builder.setInsertionPoint(op);
  IRMapping dividends;
  for (Value operand : getValueOperands(op)) {
    OpBuilder::InsertionGuard guard(builder);
    dividends.map(operand, createDividend(builder, operand));
  }
  return builder.clone(*op, dividends)->getResult(0);
}

bool GradientRewriter::canDivide() {
  for (OpOperand &use : power.getUses()) {
    Operation *user = use.getOwner();
    if (getSizeOperand(user) == &use || user->isBeforeInBlock(first))
      continue;
    auto product = dyn_cast<arith::MulFOp>(user);
    if (!product || !isDivided(getOther(product, power).get()))
      return false;
    products.push_back(product);
  }
  return true;
}

void GradientRewriter::divide() {
  for (arith::MulFOp product : products) {
    OpOperand &other = getOther(product, power);
    OpBuilder builder(product);
    other.set(createDividend(builder, other.get()));
  }
}

void bastile::useLogarithms(ArrayRef<NormalizedPower> powers,
                            const IRMapping &copies, Operation *first) {
  for (const NormalizedPower &own : powers) {
    auto weights = copies.lookup(own.weights).getDefiningOp<arith::DivFOp>();
    GradientRewriter rewriter(weights, first);
    if (!rewriter.canDivide())
      continue;
    rewriter.divide();
    auto power = weights.getLhs().getDefiningOp<math::ExpOp>();
    Value number = copies.lookup(own.logarithm);
    // All readers of the weights come behind.
    ImplicitLocOpBuilder builder(weights.getLoc(), weights);
    builder.setInsertionPointAfterValue(number);
    auto difference = power.getOperand().getDefiningOp<arith::SubFOp>();
    Expr exponent(builder,
                  own.ofBoth ? difference.getLhs() : difference.getResult());
    Expr logarithm = Expr(builder, number) * llvm::numbers::ln2;
    Expr shifted = exponent - logarithm.like(exponent);
    if (own.ofBoth && isExactDifference(difference))
      setExactDifference(shifted.getValue().getDefiningOp());
    Value all = exp(shifted).getValue();
    all.getDefiningOp()->setAttr(tile::TileDialect::kFlushedAttrName,
                                 builder.getUnitAttr());
    weights.replaceAllUsesWith(all);
    power.getResult().replaceUsesWithIf(all, [&](OpOperand &use) {
      return !use.getOwner()->isBeforeInBlock(first);
    });
  }
}
