//===- SumTiles.cpp - Tiles of sums and their factors ---------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/building/SumTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace bastile;

Value bastile::createNeutralTile(OpBuilder &builder, Location loc,
                                 RankedTensorType type, tile::ReduceKind kind) {
  Attribute neutral = tile::ReduceOp::getNeutral(kind, type.getElementType());
  return arith::ConstantOp::create(builder, loc,
                                   DenseElementsAttr::get(type, neutral));
}

Value bastile::createSplat(OpBuilder &builder, Location loc, Type type,
                           double number) {
  auto tensor = cast<RankedTensorType>(type);
  Attribute element = builder.getFloatAttr(tensor.getElementType(), number);
  return arith::ConstantOp::create(builder, loc,
                                   DenseElementsAttr::get(tensor, element));
}

Value bastile::createIsEqual(OpBuilder &builder, Location loc, Value tile,
                             double number) {
  return arith::CmpFOp::create(
      builder, loc, arith::CmpFPredicate::OEQ, tile,
      createSplat(builder, loc, tile.getType(), number));
}

Value bastile::createBase(OpBuilder &builder, Location loc, Value maximum) {
  Value isNone = createIsEqual(builder, loc, maximum, -INFINITY);
  Value zero = createSplat(builder, loc, maximum.getType(), 0);
  return arith::SelectOp::create(builder, loc, isNone, zero, maximum);
}

Value bastile::createScale(OpBuilder &builder, Location loc, Value from,
                           Value to) {
  return math::ExpOp::create(builder, loc,
                             arith::SubFOp::create(builder, loc, from, to));
}

Value bastile::selectScale(OpBuilder &builder, Location loc, Value from,
                           Value to, Value scale, bool mayDecrease) {
  using Predicate = arith::CmpFPredicate;
  Value one = createSplat(builder, loc, to.getType(), 1);
  Value isSame = arith::CmpFOp::create(
      builder, loc, mayDecrease ? Predicate::OGE : Predicate::OEQ, from, to);
  return arith::SelectOp::create(builder, loc, isSame, one, scale);
}

/// For the lowest numbers, which stand for the maximum of a row that sees
/// nothing, it is the lowest number as well, so that minus infinity less it is
/// minus infinity. Of minus infinity it is that number, too, whose power is 0.
Value bastile::createExponentOf2(OpBuilder &builder, Location loc, Value tile) {
  Value scaled = arith::MulFOp::create(
      builder, loc, tile,
      createSplat(builder, loc, tile.getType(), llvm::numbers::log2e));
  return arith::MaximumFOp::create(
      builder, loc, scaled,
      createSplat(builder, loc, tile.getType(),
                  -std::numeric_limits<float>::max()));
}

Value bastile::createCounts(OpBuilder &builder, Location loc, Type type,
                            const Power &power,
                            llvm::function_ref<Value(Value)> emit) {
  Value zero = createSplat(builder, loc, type, 0);
  Value counts = createSplat(builder, loc, type, 1);
  for (const Branch &branch : power.branches) {
    Value condition = emit(branch.condition);
    counts = arith::SelectOp::create(builder, loc, condition,
                                     branch.isTrue ? counts : zero,
                                     branch.isTrue ? zero : counts);
  }
  return counts;
}
