//===- LowerColumnBounds.cpp - Masks of columns as bits -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A mask of attention compares the number of each column with a number of the
// row: causal masks, windows, the end of a sequence. In a row, the columns of a
// thread ascend, so that those below a number are the first few. So their
// comparisons are bits of an integer that takes some instructions a row, and
// one instruction moves several of the bits to predicates, where a comparison
// of each column takes two or three. Conditions on the same tile are combined
// as integers as well.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/Fragments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "passes/fragments/FragmentPosition.h"
#include "passes/pieces/Pieces.h"

using namespace mlir;
using namespace bastile;

namespace {

constexpr int64_t kWordBits = 32;
/// Columns of a thread in a row. With fewer, comparisons are as fast; steps of
/// a stream have no more.
constexpr int64_t kLeastColumns = 16, kMostColumns = kWordBits;

/// How the conditions of a tile are bits: each row that a thread holds has an
/// integer, whose bits are the thread's columns in ascending order.
struct Bits {
  Bits(tile::MmaAttr layout, ArrayRef<int64_t> shape)
      : layout(layout), shape(shape),
        rows(layout.getRowRepeats(shape) * layout.getRowsPerRepeat(shape)),
        columns(layout.getChunks(shape) * layout.getVector()) {}

  /// The number of the piece that has bit `bit` of row `row`.
  int64_t getPiece(int64_t row, int64_t bit) const {
    const int64_t halves = layout.getRowsPerRepeat(shape);
    return layout.getPiece(shape, row / halves, bit / layout.getVector(),
                           row % halves);
  }

  const tile::MmaAttr layout;
  const ArrayRef<int64_t> shape;
  const int64_t rows, columns;
};

/// The integers of all rows.
using Words = SmallVector<Value>;

Value createConstant(ImplicitLocOpBuilder &builder, int64_t value) {
  return arith::ConstantIntOp::create(builder, builder.getI32Type(),
                                      static_cast<int32_t>(value));
}

/// The pieces of a tile of conditions, each of which tests its bits.
SmallVector<Value> createTests(ImplicitLocOpBuilder &builder, const Bits &bits,
                               VectorType pieceType, ArrayRef<Value> words) {
  const int64_t vector = bits.layout.getVector();
  SmallVector<Value> pieces(bits.rows * bits.columns / vector);
  VectorType type = pieceType.cloneWith({}, builder.getI32Type());
  Value zeros = arith::ConstantOp::create(builder, builder.getZeroAttr(type));
  for (int64_t row = 0; row < bits.rows; ++row)
    for (int64_t bit = 0; bit < bits.columns; bit += vector) {
      SmallVector<int32_t> taken;
      for (int64_t element = 0; element < vector; ++element)
        taken.push_back(static_cast<int32_t>(uint32_t(1) << (bit + element)));
      Value word = vector::BroadcastOp::create(builder, type, words[row]);
      Value own = arith::AndIOp::create(
          builder, word,
          arith::ConstantOp::create(
              builder, builder.getI32VectorAttr(taken).reshape(type)));
      pieces[bits.getPiece(row, bit)] =
          arith::CmpIOp::create(builder, arith::CmpIPredicate::ne, own, zeros);
    }
  return pieces;
}

/// The integers that `pieces` test, as `createTests` makes them; none for other
/// conditions.
Words findWords(const Bits &bits, ValueRange pieces) {
  Words words(bits.rows);
  for (int64_t row = 0; row < bits.rows; ++row)
    for (int64_t bit = 0; bit < bits.columns; bit += bits.layout.getVector()) {
      auto test =
          pieces[bits.getPiece(row, bit)].getDefiningOp<arith::CmpIOp>();
      auto own = test ? test.getLhs().getDefiningOp<arith::AndIOp>() : nullptr;
      auto spread =
          own ? own.getLhs().getDefiningOp<vector::BroadcastOp>() : nullptr;
      DenseIntElementsAttr taken;
      if (!spread || test.getPredicate() != arith::CmpIPredicate::ne ||
          !matchPattern(test.getRhs(), m_Zero()) ||
          !matchPattern(own.getRhs(), m_Constant(&taken)) ||
          *taken.value_begin<APInt>() != APInt::getOneBitSet(kWordBits, bit))
        return {};
      Value &word = words[row];
      if (word && word != spread.getSource())
        return {};
      word = spread.getSource();
    }
  return words;
}

/// Whether all columns of a tile have the same number in a row.
bool isSameInRows(Value value) {
  if (auto type = dyn_cast<RankedTensorType>(value.getType());
      type && type.getDimSize(1) == 1)
    return true;
  if (DenseElementsAttr constant; matchPattern(value, m_Constant(&constant)))
    return constant.isSplat();
  auto spread = value.getDefiningOp<tile::BroadcastOp>();
  return spread && (!isa<RankedTensorType>(spread.getSource().getType()) ||
                    isSameInRows(spread.getSource()));
}

/// Whether the number of each column of a tile is one more than that of the
/// column before.
bool areConsecutive(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto iota = dyn_cast_or_null<tile::IotaOp>(op))
    return !iota.getMisalignment();
  if (auto spread = dyn_cast_or_null<tile::BroadcastOp>(op))
    return areConsecutive(spread.getSource());
  if (!isa_and_present<arith::AddIOp, arith::SubIOp>(op))
    return false;
  Value lhs = op->getOperand(0), rhs = op->getOperand(1);
  return (areConsecutive(lhs) && isSameInRows(rhs)) ||
         (isa<arith::AddIOp>(op) && isSameInRows(lhs) && areConsecutive(rhs));
}

/// The integer of one row whose bits are set for the columns below `limit`, or
/// with `inclusive` up to it. The thread's first column is `first`.
Value createWord(ImplicitLocOpBuilder &builder, const Bits &bits, Value first,
                 Value limit, bool inclusive) {
  auto constant = [&](int64_t value) { return createConstant(builder, value); };
  const int64_t vector = bits.layout.getVector();
  const int64_t chunk = bits.layout.getChunkColumns();
  // A limit may be any number, so that it is brought to where differences with
  // it do not overflow.
  Value least = first;
  if (inclusive)
    least = arith::SubIOp::create(builder, first, constant(1));
  Value most = arith::AddIOp::create(builder, least,
                                     constant(bits.columns / vector * chunk));
  limit = arith::MaxSIOp::create(
      builder, arith::MinSIOp::create(builder, limit, most), least);
  Value below = arith::SubIOp::create(builder, limit, least);
  // Of each chunk the thread has the first `vector` columns.
  Value whole = arith::MulIOp::create(
      builder, arith::DivUIOp::create(builder, below, constant(chunk)),
      constant(vector));
  Value part = arith::MinUIOp::create(
      builder, arith::RemUIOp::create(builder, below, constant(chunk)),
      constant(vector));
  Value count = arith::AddIOp::create(builder, whole, part);
  Value ones = arith::SubIOp::create(
      builder, arith::ShLIOp::create(builder, constant(1), count), constant(1));
  // Shifts by all bits are undefined.
  Value isAll = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, count,
                                      constant(kWordBits));
  return arith::SelectOp::create(builder, isAll, constant(-1), ones);
}

/// The layout of a tile of conditions that become bits; null for others.
tile::MmaAttr getBitsLayout(Type type) {
  tile::MmaAttr layout = getFragmentLayout(type);
  auto tile = dyn_cast<RankedTensorType>(type);
  if (!layout || !tile.getElementType().isInteger(1) ||
      tile.getDimSize(0) == 1 || tile.getDimSize(1) == 1)
    return {};
  const Bits bits(layout, tile.getShape());
  return bits.columns < kLeastColumns || bits.columns > kMostColumns
             ? tile::MmaAttr()
             : layout;
}

/// The predicate of `b`, `a` that holds where `predicate` does of `a`, `b`.
arith::CmpIPredicate swapOperands(arith::CmpIPredicate predicate) {
  switch (predicate) {
  case arith::CmpIPredicate::slt:
    return arith::CmpIPredicate::sgt;
  case arith::CmpIPredicate::sle:
    return arith::CmpIPredicate::sge;
  case arith::CmpIPredicate::sgt:
    return arith::CmpIPredicate::slt;
  case arith::CmpIPredicate::sge:
    return arith::CmpIPredicate::sle;
  default:
    return predicate;
  }
}

struct CompareColumns : public OpConversionPattern<arith::CmpIOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::CmpIOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    tile::MmaAttr layout = getBitsLayout(op.getType());
    auto operand = dyn_cast<RankedTensorType>(op.getLhs().getType());
    if (!layout || !operand.getElementType().isInteger(32))
      return failure();
    arith::CmpIPredicate predicate = op.getPredicate();
    ValueRange columns = adaptor.getLhs(), limits = adaptor.getRhs();
    if (!areConsecutive(op.getLhs()) || !isSameInRows(op.getRhs())) {
      if (!areConsecutive(op.getRhs()) || !isSameInRows(op.getLhs()))
        return failure();
      std::swap(columns, limits);
      predicate = swapOperands(predicate);
    }
    const bool negated = predicate == arith::CmpIPredicate::sgt ||
                         predicate == arith::CmpIPredicate::sge;
    if (negated)
      predicate = arith::invertPredicate(predicate);
    if (predicate != arith::CmpIPredicate::slt &&
        predicate != arith::CmpIPredicate::sle)
      return failure();
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    auto type = cast<RankedTensorType>(op.getType());
    const Bits bits(layout, type.getShape());
    Words words;
    for (int64_t row = 0; row < bits.rows; ++row) {
      const int64_t piece = bits.getPiece(row, /*bit=*/0);
      auto getFirst = [&](ValueRange pieces) -> Value {
        return vector::ExtractOp::create(builder, pieces[piece], 0);
      };
      Value word =
          createWord(builder, bits, getFirst(columns), getFirst(limits),
                     predicate == arith::CmpIPredicate::sle);
      if (negated)
        word =
            arith::XOrIOp::create(builder, word, createConstant(builder, -1));
      words.push_back(word);
    }
    rewriter.replaceOpWithMultiple(
        op, {ValueRange(createTests(
                builder, bits, cast<VectorType>(getPieceType(type)), words))});
    return success();
  }
};

/// Combines conditions that are bits.
template <typename OpTy>
struct CombineBits : public OpConversionPattern<OpTy> {
  using OpConversionPattern<OpTy>::OpConversionPattern;
  using Adaptor = typename OpConversionPattern<OpTy>::OneToNOpAdaptor;

  LogicalResult
  matchAndRewrite(OpTy op, Adaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    tile::MmaAttr layout = getBitsLayout(op.getType());
    if (!layout)
      return failure();
    auto type = cast<RankedTensorType>(op.getType());
    const Bits bits(layout, type.getShape());
    const Words lhs = findWords(bits, adaptor.getLhs());
    const Words rhs = findWords(bits, adaptor.getRhs());
    if (lhs.empty() || rhs.empty())
      return failure();
    ImplicitLocOpBuilder builder(op.getLoc(), rewriter);
    Words words;
    for (auto [left, right] : llvm::zip_equal(lhs, rhs))
      words.push_back(OpTy::create(builder, left, right));
    rewriter.replaceOpWithMultiple(
        op, {ValueRange(createTests(
                builder, bits, cast<VectorType>(getPieceType(type)), words))});
    return success();
  }
};

} // namespace

void bastile::populateColumnBoundPatterns(const TypeConverter &converter,
                                          RewritePatternSet &patterns) {
  // Ahead of the patterns of all elementwise ops.
  const PatternBenefit benefit(2);
  patterns.add<CompareColumns, CombineBits<arith::AndIOp>,
               CombineBits<arith::OrIOp>>(converter, patterns.getContext(),
                                          benefit);
}
