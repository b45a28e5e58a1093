//===- HideSigmoid.cpp - Sigmoids whose error a rounding hides ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A sigmoid is (x >= 0 ? 1 : e) / (1 + e) with e = exp(-|x|), and its
// derivative e / (1 + e)^2 (`dialect/Expression.cpp`,
// `passes/tensors/SigmoidDerivatives.cpp`), so that nothing overflows. Where a
// rounding hides the error of approximations, the GPU's exponential may be
// infinite: its reciprocal of that is 0. Then
//
//   s = 1 / (1 + e)   and   s' = s (e s)   with   e = exp(-x)
//
// take three instructions less. Below -88.7, where float32 has no exp(-x), both
// are 0, as they are in PyTorch, if an infinite e is taken for the largest
// number where s' multiplies it by 0; everywhere else no bits are lost.
//
//===----------------------------------------------------------------------===//

#include "passes/math/ExpandMath.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/math/Ranges.h"
#include "llvm/ADT/SetVector.h"
#include <limits>

using namespace mlir;
using namespace bastile;

namespace {

/// The operand of a product beside one of `values`.
Value getOther(Value product, const llvm::SetVector<Value> &values) {
  auto op = product.getDefiningOp<arith::MulFOp>();
  return values.contains(op.getLhs()) ? op.getRhs() : op.getLhs();
}

/// The sigmoids of one x, and their derivatives.
class Sigmoids {
public:
  /// Finds all ops that take `power`. Returns whether it is exp(-|x|) and they
  /// are sigmoids of x and derivatives of such.
  bool find(math::ExpOp power);
  /// Writes them as functions of exp(-x).
  void rewrite();

private:
  using Values = llvm::SetVector<Value>;

  bool findParts();
  /// The gradient g of g / (1 + e) times one of `values`.
  Value getGradient(Value product, const Values &values) {
    return getOther(getOther(product, values), inverses);
  }
  bool areKnown(const Values &values, function_ref<bool(Operation *)> isKnown);
  /// Whether `op` multiplies one of `values` by one of `others`.
  static bool isProduct(Operation *op, const Values &values,
                        const Values &others);
  bool isSigmoid(Operation *op);
  bool isNumerator(Operation *op);

  math::ExpOp power;
  Value x;
  /// 1 + e, the choice of 1 or e, and 1 / (1 + e).
  Values sums, choices, inverses;
  /// e / (1 + e), and g / (1 + e) for a gradient g.
  Values complements, shares;
  /// What remains when all are rewritten: the sigmoids, with a factor or
  /// without, products of shares and choices, those of shares and complements.
  Values sigmoids, ofChoices, ofComplements;
};

bool isApproximateDivision(Operation *op) {
  auto division = dyn_cast<arith::DivFOp>(op);
  return division && isApproximate(division.getFastmath());
}

bool isPositive(Value condition, Value x) {
  auto compare = condition.getDefiningOp<arith::CmpFOp>();
  return compare && compare.getLhs() == x &&
         getConstant(compare.getRhs()) == 0.0 &&
         (compare.getPredicate() == arith::CmpFPredicate::OGE ||
          compare.getPredicate() == arith::CmpFPredicate::OGT);
}

bool Sigmoids::isProduct(Operation *op, const Values &values,
                         const Values &others) {
  if (!isa<arith::MulFOp>(op))
    return false;
  Value lhs = op->getOperand(0), rhs = op->getOperand(1);
  return (values.contains(lhs) && others.contains(rhs)) ||
         (values.contains(rhs) && others.contains(lhs));
}

bool Sigmoids::findParts() {
  auto isSum = [&](Operation *op) {
    return isa<arith::AddFOp>(op) && getConstant(op->getOperand(1)) == 1.0;
  };
  auto isChoice = [&](Operation *op) {
    auto choice = dyn_cast<arith::SelectOp>(op);
    return choice && choice.getFalseValue() == power.getResult() &&
           getConstant(choice.getTrueValue()) == 1.0 &&
           isPositive(choice.getCondition(), x);
  };
  for (Operation *op : power->getUsers())
    if (isSum(op))
      sums.insert(op->getResult(0));
    else if (isChoice(op))
      choices.insert(op->getResult(0));
  for (Value sum : sums)
    for (Operation *op : sum.getUsers())
      if (isApproximateDivision(op) && getConstant(op->getOperand(0)) == 1.0)
        inverses.insert(op->getResult(0));
  for (Value inverse : inverses)
    for (Operation *op : inverse.getUsers()) {
      if (!isa<arith::MulFOp>(op))
        return false;
      const bool isOfPower = getOther(op->getResult(0), inverses) == power;
      (isOfPower ? complements : shares).insert(op->getResult(0));
    }
  return true;
}

bool Sigmoids::isNumerator(Operation *op) {
  return isa<arith::MulFOp>(op) &&
         llvm::all_of(op->getUsers(), [&](Operation *user) {
           return isApproximateDivision(user) &&
                  user->getOperand(0) == op->getResult(0) &&
                  sums.contains(user->getOperand(1));
         });
}

bool Sigmoids::isSigmoid(Operation *op) {
  if (!isApproximateDivision(op) || !sums.contains(op->getOperand(1)))
    return false;
  Value numerator = op->getOperand(0);
  if (choices.contains(numerator))
    return true;
  auto product = numerator.getDefiningOp<arith::MulFOp>();
  return product && (choices.contains(product.getLhs()) ||
                     choices.contains(product.getRhs()));
}

bool Sigmoids::areKnown(const Values &values,
                        function_ref<bool(Operation *)> isKnown) {
  return llvm::all_of(values, [&](Value value) {
    return llvm::all_of(value.getUsers(), isKnown);
  });
}

bool Sigmoids::find(math::ExpOp op) {
  power = op;
  x = getOfNegatedSize(power.getOperand());
  if (!x || !isApproximate(power.getFastmath()) ||
      !isFloat32(power.getType()) || !findParts())
    return false;
  Values powers;
  powers.insert(power);
  auto insert = [](Values &found, Operation *op) {
    found.insert(op->getResult(0));
    return true;
  };
  // The derivative alone takes no choice.
  return !choices.empty() && areKnown(powers, [&](Operation *op) {
    Value result = op->getResult(0);
    return sums.contains(result) || choices.contains(result) ||
           complements.contains(result);
  }) && areKnown(sums, [&](Operation *op) {
    return inverses.contains(op->getResult(0)) ||
           (isSigmoid(op) && insert(sigmoids, op));
  }) && areKnown(choices, [&](Operation *op) {
    if (isProduct(op, shares, choices))
      return insert(ofChoices, op);
    return sigmoids.contains(op->getResult(0)) || isNumerator(op);
  }) && areKnown(complements, [&](Operation *op) {
    return isProduct(op, shares, complements) && insert(ofComplements, op);
  }) && areKnown(shares, [&](Operation *op) {
    return ofChoices.contains(op->getResult(0)) ||
           ofComplements.contains(op->getResult(0));
  });
}

void Sigmoids::rewrite() {
  OpBuilder builder(power);
  Formula f(builder, power.getLoc(), power.getType(), kApproximate);
  Value e = f.exp(f.neg(x));
  setFlushed(e.getDefiningOp());
  Value s = f.div(f.number(1.0), f.add(e, f.number(1.0)));
  auto replace = [&](Value value, Value factor, Value other) {
    OpBuilder builder(value.getDefiningOp());
    Formula f(builder, value.getLoc(), value.getType());
    value.replaceAllUsesWith(factor ? f.mul(factor, other) : other);
  };
  for (Value sigmoid : sigmoids) {
    Value numerator = sigmoid.getDefiningOp()->getOperand(0);
    const bool isPlain = choices.contains(numerator);
    replace(sigmoid, isPlain ? Value() : getOther(numerator, choices), s);
  }
  for (Value product : ofChoices)
    replace(product, getGradient(product, choices), s);
  if (ofComplements.empty())
    return;
  Value largest = f.number(std::numeric_limits<float>::max());
  Value complement = f.mul(arith::MinNumFOp::create(f.builder, e, largest), s);
  for (Value product : ofComplements) {
    OpBuilder builder(product.getDefiningOp());
    Formula f(builder, product.getLoc(), product.getType());
    Value share = f.mul(getGradient(product, complements), s);
    product.replaceAllUsesWith(f.mul(share, complement));
  }
}

} // namespace

void bastile::hideSigmoids(tile::ProgramOp program) {
  SmallVector<math::ExpOp> powers;
  program.walk([&](math::ExpOp op) { powers.push_back(op); });
  for (math::ExpOp power : powers) {
    Sigmoids sigmoids;
    if (sigmoids.find(power))
      sigmoids.rewrite();
  }
}
