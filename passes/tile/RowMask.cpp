//===- RowMask.cpp - What lies beyond a row takes no part -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A tile that is wider than what is left of the row repeats the row's last
// vector (see LowerMemory.cpp). Replacing each repeated element before a sum
// takes an instruction an element. Often no instruction is needed: a maximum
// does not change when elements repeat. Or one instruction a vector is enough:
// where an operand is the same for all elements of the row, it is changed
// beyond the row such that the result is 0 there.
//
//===----------------------------------------------------------------------===//

#include "passes/tile/RowMask.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "passes/schedule/KernelShape.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace bastile;

/// The columns of a tensor; 1 of a scalar.
static int64_t getColumns(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getShape().back() : 1;
}

/// Whether each element of a value depends on the elements of the kernel's
/// arguments in the same column and on nothing else that differs within a row,
/// so that the value repeats where the arguments do.
static bool repeats(Value value, SmallPtrSetImpl<Operation *> &seen) {
  Operation *op = value.getDefiningOp();
  if (!op || getColumns(value.getType()) == 1 || !seen.insert(op).second)
    return true;
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op)) {
    // Group statistics have columns of their own.
    int64_t columns = getColumns(broadcast.getSource().getType());
    return columns == 1 || (columns == getColumns(broadcast.getType()) &&
                            repeats(broadcast.getSource(), seen));
  }
  if (matchPattern(op, m_Constant()))
    return isa<SplatElementsAttr>(cast<arith::ConstantOp>(op).getValue());
  return op->hasTrait<OpTrait::Elementwise>() &&
         llvm::all_of(op->getOperands(),
                      [&](Value operand) { return repeats(operand, seen); });
}

/// Whether a tile has the same number in all columns of a row, or in all that
/// one thread has of the row.
static bool isNumberOfRow(Value tile) {
  Operation *op = tile.getDefiningOp();
  auto broadcast = dyn_cast_or_null<tile::BroadcastOp>(op);
  return isa_and_nonnull<tile::SpreadOp>(op) ||
         (broadcast && getColumns(broadcast.getSource().getType()) == 1);
}

static bool dependsOn(Value value, Operation *other,
                      SmallPtrSetImpl<Operation *> &seen) {
  Operation *op = value.getDefiningOp();
  if (!op || !seen.insert(op).second)
    return false;
  return op == other || llvm::any_of(op->getOperands(), [&](Value operand) {
           return dependsOn(operand, other, seen);
         });
}

/// Whether a row's maximum or minimum is taken of the result of `op`.
static bool hasExtremumOf(Operation *op) {
  return llvm::any_of(op->getBlock()->getOps<tile::ReduceOp>(),
                      [&](tile::ReduceOp reduce) {
                        SmallPtrSet<Operation *, 8> seen;
                        return reduce.getKind() != tile::ReduceKind::Add &&
                               dependsOn(reduce.getInput(), op, seen);
                      });
}

namespace {
class Masker {
public:
  Masker(OpBuilder &builder, tile::ReduceOp reduce, const RowPart &part)
      : builder(builder), reduce(reduce), part(part) {}

  Value mask(Value input) {
    // Beyond a misaligned row lie its neighbours, not repeated elements.
    if (!part.misalignment && makeNeutral(input))
      return input;
    return create(
        input, tile::ReduceOp::getNeutral(reduce.getKind(),
                                          reduce.getType().getElementType()));
  }

private:
  Value create(Value tile, TypedAttr other) {
    return tile::MaskOp::create(builder, reduce.getLoc(), tile, part.column,
                                part.misalignment,
                                builder.getI64IntegerAttr(part.length), other);
  }

  /// Makes the elements of `input` beyond the row neutral, by changing an op
  /// that it comes from where needed. Returns false if that is not possible.
  bool makeNeutral(Value input) {
    if (reduce.getKind() == tile::ReduceKind::Add)
      return makeExpZero(input) || makeSelectZero(input);
    // A maximum or minimum does not change when elements repeat.
    SmallPtrSet<Operation *, 8> seen;
    return repeats(reduce.getInput(), seen);
  }

  /// Replaces operand number `operand` of `op`, which is the same for all
  /// elements of a row, by `other` beyond the row.
  void maskOperand(Operation *op, unsigned operand, TypedAttr other) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(op);
    op->setOperand(operand, create(op->getOperand(operand), other));
  }

  /// Makes exp(x - y) 0 beyond the row by an infinite y there, if x repeats
  /// there: if it is infinite or NaN beyond the row, the row itself has that
  /// number too, and with the row's maximum for y the sum is NaN anyway. Of the
  /// number of a column, x may be infinite beyond the row alone. The repeated
  /// elements are then no longer those of the row, on which a maximum or
  /// minimum relies.
  bool makeExpZero(Value input) {
    if (!getSubtractedMaximum(reduce))
      return false;
    Operation *exp = reduce.getInput().getDefiningOp();
    SmallPtrSet<Operation *, 8> seen;
    if (hasExtremumOf(exp->getOperand(0).getDefiningOp()) ||
        !repeats(exp->getOperand(0), seen))
      return false;
    auto tile = input.getDefiningOp<math::ExpOp>();
    auto difference =
        tile ? tile.getOperand().getDefiningOp<arith::SubFOp>() : nullptr;
    if (!difference || !isNumberOfRow(difference.getRhs()))
      return false;
    auto type = cast<FloatType>(getElementTypeOrSelf(difference.getType()));
    maskOperand(
        difference, 1,
        builder.getFloatAttr(type, APFloat::getInf(type.getFloatSemantics())));
    return true;
  }

  /// Compares columns with -1 beyond the row, a number that no column has.
  bool makeSelectZero(Value input) {
    auto select = input.getDefiningOp<arith::SelectOp>();
    if (!select || !isZero(select.getFalseValue()))
      return false;
    auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
    if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq ||
        !compare.getLhs().getDefiningOp<tile::IotaOp>() ||
        !isNumberOfRow(compare.getRhs()))
      return false;
    Type type = getElementTypeOrSelf(compare.getRhs().getType());
    maskOperand(compare, 1, builder.getIntegerAttr(type, -1));
    return true;
  }

  static bool isZero(Value tile) {
    if (auto broadcast = tile.getDefiningOp<tile::BroadcastOp>())
      tile = broadcast.getSource();
    return matchPattern(tile, m_AnyZeroFloat());
  }

  OpBuilder &builder;
  tile::ReduceOp reduce;
  const RowPart &part;
};
} // namespace

Value bastile::maskBeyondRow(OpBuilder &builder, tile::ReduceOp reduce,
                             Value input, const RowPart &part) {
  return Masker(builder, reduce, part).mask(input);
}
