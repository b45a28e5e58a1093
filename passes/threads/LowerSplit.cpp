//===- LowerSplit.cpp - Interleaved pieces of a thread's vectors ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Splits and joins of interleaved pieces. In a tile that holds n interleaved
// pieces, a thread's vector is n times as wide as in the tiles of single
// pieces, so it holds exactly the elements of the thread's vectors in these n
// tiles: nothing moves between threads.
//
//===----------------------------------------------------------------------===//

#include "passes/threads/LowerTiles.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace bastile;

namespace {

/// Whether `wide` has the layout of n interleaved pieces and `narrow` that of
/// one of them.
bool isInterleaving(RankedTensorType wide, RankedTensorType narrow) {
  tile::BlockedAttr from = getLayout(wide), to = getLayout(narrow);
  if (!from || !to)
    return false;
  int64_t count = wide.getDimSize(1) / narrow.getDimSize(1);
  return from == tile::BlockedAttr::get(
                     wide.getContext(), count * to.getVector(),
                     to.getThreadRows(), to.getThreadColumns(), to.getBlocks());
}

struct LowerInterleavedSplit : public OpConversionPattern<tile::SplitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::SplitOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getPieces().front().getType());
    if (!op.getInterleaved() || op.getParts() != 1 ||
        !isInterleaving(cast<RankedTensorType>(op.getInput().getType()), type))
      return rewriter.notifyMatchFailure(op, "not of interleaved tiles");
    int64_t count = op.getPieces().size();
    int64_t width = getLayout(type).getVector();
    SmallVector<SmallVector<Value>> results(count);
    for (Value wide : adaptor.getInput())
      for (int64_t piece = 0; piece < count; ++piece)
        results[piece].push_back(
            extract(rewriter, op.getLoc(), wide, piece, count, width));
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }

  /// The elements of `wide` whose number leaves the remainder `first` when
  /// divided by `stride`.
  static Value extract(OpBuilder &builder, Location loc, Value wide,
                       int64_t first, int64_t stride, int64_t width) {
    if (width == 1)
      return vector::ExtractOp::create(builder, loc, wide, first);
    SmallVector<int64_t> elements;
    for (int64_t index = 0; index < width; ++index)
      elements.push_back(first + index * stride);
    return vector::ShuffleOp::create(builder, loc, wide, wide, elements);
  }
};

struct LowerInterleavedJoin : public OpConversionPattern<tile::JoinOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::JoinOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (!op.getInterleaved() || op.getParts() != 1 ||
        !isInterleaving(
            type, cast<RankedTensorType>(op.getPieces().front().getType())))
      return rewriter.notifyMatchFailure(op, "not of interleaved tiles");
    SmallVector<Value> results;
    auto wide = cast<VectorType>(getPieceType(type));
    for (size_t index = 0; index < adaptor.getPieces().front().size();
         ++index) {
      SmallVector<Value> narrow;
      for (ValueRange piece : adaptor.getPieces())
        narrow.push_back(piece[index]);
      results.push_back(interleave(rewriter, op.getLoc(), wide, narrow));
    }
    rewriter.replaceOpWithMultiple(op, {ValueRange(results)});
    return success();
  }

  static Value interleave(OpBuilder &builder, Location loc, VectorType type,
                          ArrayRef<Value> pieces) {
    auto narrow = dyn_cast<VectorType>(pieces.front().getType());
    if (!narrow)
      return vector::FromElementsOp::create(builder, loc, type, pieces);
    if (pieces.size() == 2)
      return vector::InterleaveOp::create(builder, loc, pieces[0], pieces[1]);
    SmallVector<Value> elements;
    for (int64_t index = 0; index < narrow.getDimSize(0); ++index)
      for (Value piece : pieces)
        elements.push_back(
            vector::ExtractOp::create(builder, loc, piece, index));
    return vector::FromElementsOp::create(builder, loc, type, elements);
  }
};

} // namespace

void bastile::populateSplitPatterns(const TypeConverter &converter,
                                    RewritePatternSet &patterns) {
  patterns.add<LowerInterleavedSplit, LowerInterleavedJoin>(
      converter, patterns.getContext());
}
