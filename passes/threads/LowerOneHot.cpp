//===- LowerOneHot.cpp - Where the columns equal a number -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Rows that are one-hot: nonzero in the one column that an index names, such as
// the logit of a target. A formula writes that as a select among all columns.
// Comparing each column with the index would take a third of the instructions
// of a cross-entropy; here a vector takes one comparison, and a branch that
// hardly any vector takes.
//
//===----------------------------------------------------------------------===//

#include "passes/threads/LowerTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace bastile;

/// Whether all elements of `vector` are known to be equal.
static bool isUniform(Value vector) {
  Operation *op = vector.getDefiningOp();
  if (!op)
    return false;
  if (isa<vector::BroadcastOp>(op))
    return true;
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return select.getCondition().getType().isInteger(1) &&
           isUniform(select.getTrueValue()) &&
           isUniform(select.getFalseValue());
  if (isa<arith::SubIOp>(op))
    return llvm::all_of(op->getOperands(), isUniform);
  return matchPattern(vector, m_Constant()) &&
         isa<SplatElementsAttr>(cast<arith::ConstantOp>(op).getValue());
}

/// Whether `vector` is [0, 1, ...].
static bool isCount(Value vector) {
  DenseIntElementsAttr numbers;
  return matchPattern(vector, m_Constant(&numbers)) &&
         llvm::all_of(llvm::enumerate(numbers.getValues<APInt>()),
                      [](const auto &number) {
                        return number.value() == number.index();
                      });
}

static bool isZero(Value vector) {
  if (auto broadcast = vector.getDefiningOp<vector::BroadcastOp>())
    vector = broadcast.getSource();
  return matchPattern(vector, m_AnyZeroFloat());
}

namespace {
/// Lowers a comparison of column numbers with other numbers, by subtracting the
/// piece's first column from the latter and comparing with [0, 1, ...]. The
/// other number is mostly the same for all elements of a vector, so that one
/// subtraction takes the place of an addition for each element.
struct LowerCountsEqual : public OpConversionPattern<arith::CmpIOp> {
  LowerCountsEqual(const TypeConverter &converter, MLIRContext *context)
      : OpConversionPattern(converter, context, /*benefit=*/2) {}

  LogicalResult
  matchAndRewrite(arith::CmpIOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (op.getPredicate() != arith::CmpIPredicate::eq || !type ||
        !isa<VectorType>(getPieceType(type)) ||
        !op.getLhs().getDefiningOp<tile::IotaOp>())
      return failure();
    SmallVector<Value> pieces;
    for (auto [numbers, others] :
         llvm::zip_equal(adaptor.getLhs(), adaptor.getRhs())) {
      auto sum = numbers.getDefiningOp<arith::AddIOp>();
      assert(sum && "createCount makes a sum");
      Value rest =
          arith::SubIOp::create(rewriter, op.getLoc(), others, sum.getLhs());
      pieces.push_back(arith::CmpIOp::create(
          rewriter, op.getLoc(), op.getPredicate(), sum.getRhs(), rest));
    }
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

/// A one-hot piece: a vector that is 0 except for the element at `position`, if
/// the vector has that element. It is written select(position == [0, 1, ...],
/// elements, 0).
class OneHotPiece {
public:
  static std::optional<OneHotPiece> get(Value piece) {
    auto select = piece.getDefiningOp<arith::SelectOp>();
    if (!select || !isa<VectorType>(piece.getType()) ||
        !isZero(select.getFalseValue()))
      return std::nullopt;
    auto compare = select.getCondition().getDefiningOp<arith::CmpIOp>();
    if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq ||
        !isCount(compare.getLhs()) || !isUniform(compare.getRhs()))
      return std::nullopt;
    return OneHotPiece{select.getTrueValue(), compare.getRhs()};
  }

  /// Builds code that changes `value` in the threads whose piece has the hot
  /// element, and leaves it as it is in all others. `change` is called for each
  /// element of the piece, with a condition that says whether the element is
  /// the hot one.
  Value changeWhereFound(ImplicitLocOpBuilder &builder, Value value,
                         llvm::function_ref<Value(Value value, Value isHot,
                                                  Value element, int64_t index)>
                             change) const {
    const int64_t count = cast<VectorType>(elements.getType()).getNumElements();
    Value number = vector::ExtractOp::create(builder, position, 0);
    auto compare = [&](arith::CmpIPredicate predicate, int64_t other) -> Value {
      Value constant = arith::ConstantOp::create(
          builder, builder.getIntegerAttr(number.getType(), other));
      return arith::CmpIOp::create(builder, predicate, number, constant);
    };
    OpBuilder::InsertionGuard guard(builder);
    auto branch = scf::IfOp::create(builder, value.getType(),
                                    compare(arith::CmpIPredicate::ult, count),
                                    /*withElseRegion=*/true);
    builder.setInsertionPointToStart(branch.thenBlock());
    Value changed = value;
    for (int64_t index = 0; index < count; ++index)
      changed =
          change(changed, compare(arith::CmpIPredicate::eq, index),
                 vector::ExtractOp::create(builder, elements, index), index);
    scf::YieldOp::create(builder, changed);
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, value);
    return branch.getResult(0);
  }

private:
  OneHotPiece(Value elements, Value position)
      : elements(elements), position(position) {}

  Value elements, position;
};

struct LowerAddOneHot : public OpConversionPattern<arith::AddFOp> {
  LowerAddOneHot(const TypeConverter &converter, MLIRContext *context)
      : OpConversionPattern(converter, context, /*benefit=*/2) {}

  LogicalResult
  matchAndRewrite(arith::AddFOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    if (!type || !getLayout(type))
      return failure();
    for (auto [oneHot, others] :
         {std::pair(adaptor.getLhs(), adaptor.getRhs()),
          std::pair(adaptor.getRhs(), adaptor.getLhs())}) {
      if (!llvm::all_of(oneHot, OneHotPiece::get))
        continue;
      ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
      SmallVector<Value> sums;
      for (auto [piece, other] : llvm::zip_equal(oneHot, others))
        sums.push_back(add(builder, *OneHotPiece::get(piece), other));
      rewriter.replaceOpWithMultiple(op, {ValueRange(sums)});
      return success();
    }
    return failure();
  }

  static Value add(ImplicitLocOpBuilder &builder, const OneHotPiece &piece,
                   Value other) {
    return piece.changeWhereFound(
        builder, other,
        [&](Value vector, Value isHot, Value element, int64_t index) {
          Value old = vector::ExtractOp::create(builder, vector, index);
          Value sum = arith::AddFOp::create(builder, old, element);
          Value chosen = arith::SelectOp::create(builder, isHot, sum, old);
          return vector::InsertOp::create(builder, chosen, vector, index);
        });
  }
};
} // namespace

Value bastile::sumOneHot(OpBuilder &rewriter, Location loc, ValueRange pieces) {
  if (!llvm::all_of(pieces, OneHotPiece::get))
    return nullptr;
  ImplicitLocOpBuilder builder(loc, rewriter);
  Type type = getElementTypeOrSelf(pieces.front().getType());
  Value total =
      arith::ConstantOp::create(builder, builder.getFloatAttr(type, 0.0));
  for (Value piece : pieces)
    total = OneHotPiece::get(piece)->changeWhereFound(
        builder, total,
        [&](Value found, Value isHot, Value element, int64_t) -> Value {
          return arith::SelectOp::create(builder, isHot, element, found);
        });
  return total;
}

void bastile::populateOneHotPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<LowerCountsEqual, LowerAddOneHot>(converter,
                                                 patterns.getContext());
}
