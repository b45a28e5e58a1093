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
// instructions of their own.
//
//===----------------------------------------------------------------------===//

#include "passes/math/ExpandMath.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
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

/// What takes a factor of the value at `use`: the operand, in the op that
/// computes the value or further within, that is a constant or the same for all
/// of a vector. Values on the way have no other users.
OpOperand *findTaker(OpOperand &use, double factor, unsigned depth = 0) {
  Value value = use.get();
  if (std::optional<double> number = getConstant(value))
    return mayMove(*number) && mayMove(*number * factor) ? &use : nullptr;
  if (getRepeated(value))
    return &use;
  Operation *op = value.getDefiningOp();
  if (!op || !value.hasOneUse() || depth == kMostDepth)
    return nullptr;
  MutableArrayRef<OpOperand> parts;
  if (isa<arith::MulFOp>(op))
    parts = op->getOpOperands();
  else if (isa<arith::DivFOp, arith::NegFOp>(op))
    parts = op->getOpOperands().take_front();
  for (OpOperand &part : parts)
    if (OpOperand *taker = findTaker(part, factor, depth + 1))
      return taker;
  return nullptr;
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
void collect(arith::MulFOp product) {
  for (unsigned index : {1, 0}) {
    std::optional<double> factor = getConstant(product->getOperand(index));
    OpOperand &other = product->getOpOperand(1 - index);
    if (!factor || !mayMove(*factor) || getConstant(other.get()) ||
        getRepeated(other.get()))
      continue;
    OpOperand *taker = findTaker(other, *factor);
    if (!taker)
      continue;
    multiply(*taker, *factor);
    product.replaceAllUsesWith(other.get());
    product.erase();
    return;
  }
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
}

void bastile::collectFactors(tile::ProgramOp program) {
  for (arith::MulFOp product : findWideOps<arith::MulFOp>(program))
    collect(product);
}
