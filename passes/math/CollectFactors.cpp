//===- CollectFactors.cpp - One constant factor for each product ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A derivative multiplies by a constant for each function that it goes through,
// as in ((g * 3) / y * 0.5) * 2. Here an outer constant becomes part of one
// within, or of a number that is the same for all of a vector, as a statistic
// of the row is, so that elements are multiplied by constants once. Quotients
// by roots become products with reciprocals of the roots, which a GPU has as
// instructions of their own, and a sigmoid one of the quotients that its
// derivative takes.
//
// What becomes of a product depends on its other readers. Numbers that are
// compared for equality are left alone: a loop that computes them again, with
// other readers, has to find the same bits.
//
//===----------------------------------------------------------------------===//

#include "passes/math/ExpandMath.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/analysis/HiddenErrors.h"
#include "passes/math/Ranges.h"
#include <cmath>

using namespace mlir;
using namespace bastile;

namespace {

/// How many ops a factor looks through.
constexpr unsigned kMostDepth = 8;
/// The sizes of the constants that move. What they pass by grows or shrinks by
/// as much, so that only products within such a factor of the ends of float32's
/// range can become infinite or lose bits that they kept before.
constexpr double kLeastFactor = 1.0 / 16, kMostFactor = 16;

bool mayMove(double factor) {
  const double size = std::abs(factor);
  return size >= kLeastFactor && size <= kMostFactor;
}

/// The scalar that all elements of `value` are copies of; null for others.
Value getRepeated(Value value) {
  auto repeated = value.getDefiningOp<vector::BroadcastOp>();
  return repeated && isFloat32(repeated.getSource().getType()) &&
                 !isa<VectorType>(repeated.getSource().getType())
             ? repeated.getSource()
             : Value();
}

/// Whether sums may be multiplied by `factor` before they are added up:
/// products with a power of 2 are exact, so that nothing is rounded in another
/// way.
bool isPowerOf2(double factor) {
  int exponent;
  return std::abs(std::frexp(factor, &exponent)) == 0.5;
}

/// Finds what takes a factor of the value at `use`: operands, in the op that
/// computes the value or further within, that are constants or the same for all
/// of a vector. Values on the way have no other users. Returns whether there is
/// enough in `takers`: a term of a sum takes the factor as all other terms do.
bool findTakers(OpOperand &use, double factor,
                SmallVectorImpl<OpOperand *> &takers, unsigned depth = 0) {
  Value value = use.get();
  if (std::optional<double> number = getConstant(value)) {
    if (!mayMove(*number) || !mayMove(*number * factor))
      return false;
    takers.push_back(&use);
    return true;
  }
  if (getRepeated(value)) {
    takers.push_back(&use);
    return true;
  }
  Operation *op = value.getDefiningOp();
  if (!op || !value.hasOneUse() || depth == kMostDepth)
    return false;
  auto isTaken = [&](OpOperand &part) {
    return findTakers(part, factor, takers, depth + 1);
  };
  const size_t before = takers.size();
  bool isFound = false;
  if (isa<arith::MulFOp>(op))
    isFound = llvm::any_of(op->getOpOperands(), isTaken);
  else if (isa<arith::DivFOp, arith::NegFOp>(op))
    isFound = isTaken(op->getOpOperand(0));
  else if (isa<arith::AddFOp, arith::SubFOp>(op) && isPowerOf2(factor))
    isFound = llvm::all_of(op->getOpOperands(), isTaken);
  if (!isFound)
    takers.resize(before);
  return isFound;
}

/// Multiplies what `taker` takes by `factor`.
void multiply(OpOperand &taker, double factor) {
  Operation *user = taker.getOwner();
  OpBuilder builder(user);
  Formula f(builder, user->getLoc(), taker.get().getType());
  if (std::optional<double> number = getConstant(taker.get()))
    return taker.set(f.number(*number * factor));
  Value scalar = getRepeated(taker.get());
  Formula one(builder, user->getLoc(), scalar.getType());
  taker.set(vector::BroadcastOp::create(f.builder, taker.get().getType(),
                                        one.mul(scalar, one.number(factor))));
}

/// Removes a product with a constant whose other operand can take the factor.
/// Returns whether it did.
bool collect(arith::MulFOp product) {
  for (unsigned index : {1, 0}) {
    std::optional<double> factor = getConstant(product->getOperand(index));
    OpOperand &other = product->getOpOperand(1 - index);
    if (!factor || !mayMove(*factor) || getConstant(other.get()) ||
        getRepeated(other.get()))
      continue;
    SmallVector<OpOperand *> takers;
    if (!findTakers(other, *factor, takers))
      continue;
    for (OpOperand *taker : takers)
      multiply(*taker, *factor);
    product.replaceAllUsesWith(other.get());
    product.erase();
    return true;
  }
  return false;
}

/// Removes a product with a constant of which all users multiply by constants,
/// too.
void spread(arith::MulFOp product,
            const llvm::DenseSet<Operation *> &compared) {
  std::optional<double> factor = getConstant(product.getRhs());
  if (!factor || !mayMove(*factor) || getConstant(product.getLhs()))
    return;
  for (OpOperand &use : product->getUses()) {
    auto user = dyn_cast<arith::MulFOp>(use.getOwner());
    if (!user || compared.contains(user))
      return;
    std::optional<double> other =
        getConstant(user->getOperand(1 - use.getOperandNumber()));
    if (!other || !mayMove(*other) || !mayMove(*other * *factor))
      return;
  }
  for (OpOperand &use : llvm::make_early_inc_range(product->getUses())) {
    Operation *user = use.getOwner();
    multiply(user->getOpOperand(1 - use.getOperandNumber()), *factor);
    use.set(product.getLhs());
  }
  product.erase();
}

/// Finds 1 / `divisor` in the block of `op`.
arith::DivFOp findReciprocal(Value divisor, Operation *op) {
  for (Operation *user : divisor.getUsers()) {
    auto quotient = dyn_cast<arith::DivFOp>(user);
    if (quotient && quotient.getRhs() == divisor &&
        getConstant(quotient.getLhs()) == 1.0 &&
        quotient->getBlock() == op->getBlock())
      return quotient;
  }
  return {};
}

/// Rewrites (c ? 1 : e) / d, which is a sigmoid, where its derivative takes 1 /
/// d and e / d: these are all that the sigmoid can be.
void shareQuotients(arith::DivFOp quotient) {
  auto select = quotient.getLhs().getDefiningOp<arith::SelectOp>();
  if (!select || !isApproximate(quotient.getFastmath()) ||
      getConstant(select.getTrueValue()) != 1.0)
    return;
  arith::DivFOp reciprocal = findReciprocal(quotient.getRhs(), quotient);
  if (!reciprocal || !isApproximate(reciprocal.getFastmath()))
    return;
  OpBuilder builder(quotient);
  Formula f(builder, quotient.getLoc(), quotient.getType());
  Value one =
      arith::DivFOp::create(builder, quotient.getLoc(), f.number(1.0),
                            quotient.getRhs(), reciprocal.getFastmath());
  Value other = f.mul(select.getFalseValue(), one);
  quotient.replaceAllUsesWith(f.select(select.getCondition(), one, other));
  quotient.erase();
}

/// Finds the ops that lead to a comparison for equality, or to a maximum or
/// minimum, with which numbers are compared.
llvm::DenseSet<Operation *> findCompared(tile::ProgramOp program) {
  SmallVector<Operation *> reached;
  llvm::DenseSet<Operation *> found;
  auto enter = [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (Operation *definition = operand.getDefiningOp())
        if (found.insert(definition).second)
          reached.push_back(definition);
  };
  // A bound is a constant.
  auto comparesNumbers = [](Operation *op) {
    return isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
               arith::MinNumFOp, LLVM::MaxNumOp, LLVM::MinNumOp>(op) &&
           llvm::none_of(op->getOperands(), [](Value operand) {
             return getConstant(operand).has_value();
           });
  };
  program.walk([&](Operation *op) {
    if (asksForEqual(op) || comparesNumbers(op))
      enter(op);
    auto reduction = dyn_cast<vector::ReductionOp>(op);
    if (reduction && reduction.getKind() != vector::CombiningKind::ADD)
      enter(op);
  });
  while (!reached.empty())
    enter(reached.pop_back_val());
  return found;
}

/// Multiplies by the reciprocal of a root instead of dividing by the root.
void divideByRoot(arith::DivFOp quotient, NumberRanges &ranges) {
  constexpr double leastNormal = 0x1p-126;
  auto root = quotient.getRhs().getDefiningOp<math::SqrtOp>();
  if (!root || !isApproximate(quotient.getFastmath()) ||
      ranges.find(root.getOperand()).least < leastNormal)
    return;
  OpBuilder builder(quotient);
  Formula f(builder, quotient.getLoc(), quotient.getType());
  Value reciprocal = math::RsqrtOp::create(f.builder, root.getOperand(),
                                           quotient.getFastmath());
  quotient.replaceAllUsesWith(f.mul(quotient.getLhs(), reciprocal));
  quotient.erase();
}

template <typename OpTy>
SmallVector<OpTy> findWideOps(tile::ProgramOp program) {
  SmallVector<OpTy> found;
  program.walk([&](OpTy op) {
    if (isFloat32(op.getType()))
      found.push_back(op);
  });
  return found;
}

} // namespace

void bastile::divideByNoRoots(tile::ProgramOp program) {
  NumberRanges ranges;
  for (arith::DivFOp quotient : findWideOps<arith::DivFOp>(program))
    divideByRoot(quotient, ranges);
  for (arith::DivFOp quotient : findWideOps<arith::DivFOp>(program))
    shareQuotients(quotient);
}

void bastile::collectFactors(tile::ProgramOp program) {
  const llvm::DenseSet<Operation *> compared = findCompared(program);
  for (arith::MulFOp product : findWideOps<arith::MulFOp>(program))
    if (!compared.contains(product) && !collect(product))
      spread(product, compared);
}
