//===- LowerFragments.cpp - Tiles in the layout of products ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/Fragments.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/fragments/FragmentPosition.h"
#include "passes/fragments/SharedTiles.h"
#include "passes/pieces/Pieces.h"
#include "passes/schedule/ThreadGrid.h"

using namespace mlir;
using namespace bastile;

namespace {

/// Calls `visit` with each repetition, chunk and row of the thread's pieces, in
/// their order.
void forEachPiece(tile::MmaAttr layout, ArrayRef<int64_t> shape,
                  llvm::function_ref<void(int64_t, int64_t, int64_t)> visit) {
  for (int64_t repeat = 0; repeat < layout.getRowRepeats(shape); ++repeat)
    for (int64_t chunk = 0; chunk < layout.getChunks(shape); ++chunk)
      for (int64_t half = 0; half < layout.getRowsPerRepeat(shape); ++half)
        visit(repeat, chunk, half);
}

struct BroadcastFragment : public OpConversionPattern<tile::BroadcastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::BroadcastOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    tile::MmaAttr layout = getFragmentLayout(type);
    auto from = dyn_cast<RankedTensorType>(op.getSource().getType());
    if (!layout || (from && getFragmentLayout(from) != layout))
      return failure();
    Type pieceType = getPieceType(type);
    SmallVector<Value> spread(adaptor.getSource());
    for (Value &piece : spread)
      if (piece.getType() != pieceType)
        piece = vector::BroadcastOp::create(rewriter, op.getLoc(), pieceType,
                                            piece);
    SmallVector<Value> pieces;
    forEachPiece(layout, type.getShape(),
                 [&](int64_t repeat, int64_t chunk, int64_t half) {
                   if (!from)
                     return pieces.push_back(spread.front());
                   ArrayRef<int64_t> shape = from.getShape();
                   pieces.push_back(spread[layout.getPiece(
                       shape, shape[0] == 1 ? 0 : repeat,
                       shape[1] == 1 ? 0 : chunk, shape[0] == 1 ? 0 : half)]);
                 });
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

/// Reduces the rows of a tile: within each thread, and then over the lanes that
/// hold the row.
struct ReduceFragment : public OpConversionPattern<tile::ReduceOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ReduceOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = op.getInput().getType();
    tile::MmaAttr layout = getFragmentLayout(type);
    if (!layout || op.isOfGroups() || type.getDimSize(0) == 1)
      return failure();
    Location loc = op.getLoc();
    ArrayRef<int64_t> shape = type.getShape();
    SmallVector<Value> results;
    for (int64_t repeat = 0; repeat < layout.getRowRepeats(shape); ++repeat)
      for (int64_t half = 0; half < 2; ++half) {
        SmallVector<Value> row;
        for (int64_t chunk = 0; chunk < layout.getChunks(shape); ++chunk)
          row.push_back(
              adaptor.getInput()[layout.getPiece(shape, repeat, chunk, half)]);
        Value value = combinePieces(rewriter, loc, op.getKind(), row);
        for (int64_t lanes = 1; lanes < tile::MmaAttr::kLanesPerRow;
             lanes *= 2) {
          auto shuffle = gpu::ShuffleOp::create(rewriter, loc, value, lanes,
                                                kWarp, gpu::ShuffleMode::XOR);
          value = tile::ReduceOp::combine(rewriter, loc, op.getKind(), value,
                                          shuffle.getShuffleResult());
        }
        results.push_back(value);
      }
    rewriter.replaceOpWithMultiple(op, {ValueRange(results)});
    return success();
  }
};

/// Combines the pieces that a thread has of each row, element by element.
struct FoldFragment : public OpConversionPattern<tile::FoldOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::FoldOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getInput().getType());
    auto own = cast<RankedTensorType>(op.getType());
    tile::MmaAttr layout = getFragmentLayout(type);
    if (!layout)
      return failure();
    SmallVector<Value> results(layout.getRowRepeats(own.getShape()) *
                               layout.getRowsPerRepeat(own.getShape()));
    forEachPiece(
        layout, type.getShape(),
        [&](int64_t repeat, int64_t chunk, int64_t half) {
          Value piece = adaptor.getInput()[layout.getPiece(
              type.getShape(), repeat, chunk, half)];
          Value &result =
              results[layout.getPiece(own.getShape(), repeat, 0, half)];
          result = result ? tile::ReduceOp::combine(rewriter, op.getLoc(),
                                                    op.getKind(), result, piece)
                          : piece;
        });
    rewriter.replaceOpWithMultiple(op, {ValueRange(results)});
    return success();
  }
};

/// Combines the elements of each thread, and then those of the warp's threads.
struct AnyOfFragment : public OpConversionPattern<tile::AnyOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::AnyOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value own = adaptor.getInput().front();
    for (Value piece : adaptor.getInput().drop_front())
      own = arith::OrIOp::create(rewriter, loc, own, piece);
    if (isa<VectorType>(own.getType()))
      own = vector::ReductionOp::create(rewriter, loc,
                                        vector::CombiningKind::OR, own);
    Value all = arith::ConstantIntOp::create(rewriter, loc, -1, 32);
    rewriter.replaceOpWithNewOp<NVVM::VoteSyncOp>(op, rewriter.getI1Type(), all,
                                                  own, NVVM::VoteSyncKind::any);
    return success();
  }
};

/// The layout of `whole`, which consists of tiles such as `part` beside each
/// other, if these have it; otherwise null. A single column would have to go to
/// lanes that do not hold it.
tile::MmaAttr getLayoutOfParts(Value whole, Value part) {
  tile::MmaAttr layout = getFragmentLayout(whole.getType());
  auto type = cast<RankedTensorType>(part.getType());
  const bool hasLayout =
      getFragmentLayout(type) == layout && type.getDimSize(1) != 1;
  return hasLayout ? layout : tile::MmaAttr();
}

/// The columns of a tile lie in the order of its pieces, so that neighbouring
/// columns are neighbouring pieces of each repetition.
struct SplitFragment : public OpConversionPattern<tile::SplitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::SplitOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getInput().getType());
    auto part = cast<RankedTensorType>(op.getPieces().front().getType());
    tile::MmaAttr layout =
        getLayoutOfParts(op.getInput(), op.getPieces().front());
    if (!layout || op.getInterleaved())
      return failure();
    const int64_t chunks = layout.getChunks(part.getShape());
    SmallVector<SmallVector<Value>> parts(op.getPieces().size());
    forEachPiece(layout, type.getShape(),
                 [&](int64_t repeat, int64_t chunk, int64_t half) {
                   parts[chunk / chunks].push_back(
                       adaptor.getInput()[layout.getPiece(
                           type.getShape(), repeat, chunk, half)]);
                 });
    rewriter.replaceOpWithMultiple(op, std::move(parts));
    return success();
  }
};

/// The inverse: each repetition of the pieces, one tile after the other.
struct JoinFragment : public OpConversionPattern<tile::JoinOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::JoinOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    auto part = cast<RankedTensorType>(op.getPieces().front().getType());
    tile::MmaAttr layout =
        getLayoutOfParts(op.getResult(), op.getPieces().front());
    if (!layout || op.getInterleaved())
      return failure();
    const int64_t chunks = layout.getChunks(part.getShape());
    SmallVector<Value> pieces;
    forEachPiece(layout, type.getShape(),
                 [&](int64_t repeat, int64_t chunk, int64_t half) {
                   pieces.push_back(
                       adaptor.getPieces()[chunk / chunks][layout.getPiece(
                           part.getShape(), repeat, chunk % chunks, half)]);
                 });
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

struct IotaOfFragment : public OpConversionPattern<tile::IotaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::IotaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = op.getType();
    tile::MmaAttr layout = getFragmentLayout(type);
    if (!layout || op.getMisalignment())
      return failure();
    Location loc = op.getLoc();
    FragmentPosition position(rewriter, op, layout);
    SmallVector<Value> pieces;
    forEachPiece(layout, type.getShape(), [&](int64_t, int64_t chunk, int64_t) {
      Value column = arith::ConstantIndexOp::create(rewriter, loc, 0);
      if (type.getDimSize(1) > 1)
        column = position.getColumn(chunk);
      if (op.getColumn())
        column = arith::AddIOp::create(rewriter, loc, adaptor.getColumn()[0],
                                       column);
      column = arith::IndexCastUIOp::create(rewriter, loc,
                                            type.getElementType(), column);
      pieces.push_back(createCount(rewriter, loc, column, getPieceType(type)));
    });
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

struct IotaRowsOfFragment : public OpConversionPattern<tile::IotaRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::IotaRowsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = op.getType();
    tile::MmaAttr layout = getFragmentLayout(type);
    if (!layout)
      return failure();
    Location loc = op.getLoc();
    FragmentPosition position(rewriter, op, layout);
    SmallVector<Value> pieces;
    forEachPiece(
        layout, type.getShape(), [&](int64_t repeat, int64_t, int64_t half) {
          Value row = adaptor.getRow().front();
          if (type.getDimSize(0) > 1)
            row = arith::AddIOp::create(rewriter, loc, row,
                                        position.getRow(repeat, half));
          row = arith::IndexCastUIOp::create(rewriter, loc,
                                             type.getElementType(), row);
          Type pieceType = getPieceType(type);
          if (pieceType != row.getType())
            row = vector::BroadcastOp::create(rewriter, loc, pieceType, row);
          pieces.push_back(row);
        });
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

/// Writes a tile to shared memory: matrices of 8 rows and 16 bytes at once
/// where pieces have 4 bytes and the target can, otherwise each piece by its
/// thread.
struct KeepFragment : public OpConversionPattern<tile::KeepOp> {
  KeepFragment(const TypeConverter &converter, MLIRContext *context,
               bool storesMatrices)
      : OpConversionPattern(converter, context),
        storesMatrices(storesMatrices) {}

  LogicalResult
  matchAndRewrite(tile::KeepOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getValue().getType());
    tile::MmaAttr layout = getFragmentLayout(type);
    auto memory = cast<MemRefType>(op.getBuffer().getType());
    if (!layout || !isa_and_present<tile::SharedAttr>(memory.getMemorySpace()))
      return failure();
    Location loc = op.getLoc();
    ArrayRef<int64_t> shape = type.getShape();
    Value slot = getSlot(rewriter, loc, memory, adaptor.getBuffer().front(),
                         adaptor.getSlot().front());
    if (op.getTransposed()) {
      keepTransposed(rewriter, op, layout, slot, adaptor.getValue());
      rewriter.eraseOp(op);
      return success();
    }
    SharedFragment places(rewriter, op, layout, SharedTile(memory), slot);
    const bool isMatrix = storesMatrices && isOfMatrices(type);
    for (int64_t repeat = 0; repeat < layout.getRowRepeats(shape); ++repeat)
      for (int64_t chunk = 0; chunk < layout.getChunks(shape);
           chunk += isMatrix ? 2 : 1) {
        auto getPiece = [&](int64_t index) {
          return adaptor
              .getValue()[layout.getPiece(shape, repeat, chunk, 0) + index];
        };
        if (!isMatrix) {
          for (int64_t half = 0; half < 2; ++half)
            storePiece(rewriter, loc, getPiece(half),
                       places.getPieceAddress(repeat, chunk, half),
                       layout.getPieceElements(shape) * getElementBytes(type));
          continue;
        }
        SmallVector<Value> sources;
        for (int64_t index = 0; index < 4; ++index)
          sources.push_back(toRegister(rewriter, loc, getPiece(index)));
        NVVM::StMatrixOp::create(
            rewriter, loc, places.getMatrixAddress(repeat, chunk), sources,
            NVVM::MMALayout::row,
            NVVM::LdStMatrixShapeAttr::get(getContext(), 8, 8),
            NVVM::LdStMatrixEltType::B16);
      }
    rewriter.eraseOp(op);
    return success();
  }

private:
  /// Stores each element of the thread, whose row of the tile is the column of
  /// the slot: eight threads have neighbours, and no two of a warp the same
  /// bank in panels of 128 bytes.
  static void keepTransposed(OpBuilder &builder, tile::KeepOp op,
                             tile::MmaAttr layout, Value slot,
                             ValueRange pieces) {
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getValue().getType());
    ArrayRef<int64_t> shape = type.getShape();
    const SharedTile place(cast<MemRefType>(op.getBuffer().getType()));
    const int64_t bytes = getElementBytes(type);
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    FragmentPosition position(builder, op, layout);
    Value byte = arith::MulIOp::create(
        builder, loc, position.getRow(/*repeat=*/0, /*half=*/0),
        constant(bytes));
    // A panel has some of the rows of the tile.
    Value panel =
        arith::DivUIOp::create(builder, loc, byte, constant(place.swizzle));
    byte = arith::RemUIOp::create(builder, loc, byte, constant(place.swizzle));
    Value address =
        advanceBytes(builder, loc, slot,
                     arith::MulIOp::create(builder, loc, panel,
                                           constant(place.getPanelBytes())));
    SmallVector<SharedPlaces, 2> places;
    for (int64_t element = 0; element < layout.getVector(); ++element)
      places.emplace_back(builder, loc, place, address,
                          arith::AddIOp::create(builder, loc,
                                                position.getColumn(/*chunk=*/0),
                                                constant(element)),
                          byte);
    constexpr int64_t halfRows = tile::MmaAttr::kWarpRows / 2;
    forEachPiece(
        layout, shape, [&](int64_t repeat, int64_t chunk, int64_t half) {
          Value piece = pieces[layout.getPiece(shape, repeat, chunk, half)];
          const int64_t row =
              repeat * layout.getWarps() * tile::MmaAttr::kWarpRows +
              half * halfRows;
          for (int64_t element = 0; element < layout.getVector(); ++element)
            storePiece(builder, loc,
                       vector::ExtractOp::create(builder, loc, piece, element),
                       places[element].getAddress(
                           chunk * layout.getChunkColumns(), row * bytes),
                       bytes);
        });
  }

  const bool storesMatrices;
};

} // namespace

void bastile::populateFragmentPatterns(const TypeConverter &converter,
                                       RewritePatternSet &patterns,
                                       bool storesMatrices) {
  patterns.add<BroadcastFragment, ReduceFragment, FoldFragment, AnyOfFragment,
               SplitFragment, JoinFragment, IotaOfFragment, IotaRowsOfFragment>(
      converter, patterns.getContext());
  patterns.add<KeepFragment>(converter, patterns.getContext(), storesMatrices);
}
