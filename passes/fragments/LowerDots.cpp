//===- LowerDots.cpp - Products of warpgroups -----------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/Fragments.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "passes/fragments/FragmentPosition.h"
#include "passes/fragments/Role.h"
#include "passes/fragments/SharedTiles.h"
#include "passes/pieces/Pieces.h"

using namespace mlir;
using namespace bastile;

/// Rows that a warpgroup multiplies at once, and bytes of each along the
/// contracted dimension.
static constexpr int64_t kRows = 64, kStepBytes = 32;
/// Rows after which the layout of a tile in shared memory repeats.
static constexpr int64_t kGroup = 8;

namespace {

/// An operand of a product in shared memory.
class SharedOperand {
public:
  SharedOperand(MemRefType type, int64_t contracted)
      : tile(type), transposed(contracted == 0) {}

  /// How the part lies from element `first` of the free dimension and step
  /// `step` of the contracted one on.
  tile::SharedMatrixAttr getMatrix(MLIRContext *context, int64_t first,
                                   int64_t step) const {
    const int64_t stride = kGroup * tile.swizzle;
    int64_t offset = getFreeBytes(first), leading = 0;
    if (transposed) {
      const int64_t steps = kStepBytes / tile.elementBytes;
      offset += step * steps * tile.swizzle;
      leading = tile.getPanelBytes();
    } else {
      const int64_t bytes = step * kStepBytes;
      offset +=
          bytes / tile.swizzle * tile.getPanelBytes() + bytes % tile.swizzle;
    }
    return tile::SharedMatrixAttr::get(context, offset, leading, stride,
                                       tile.swizzle, transposed);
  }

  /// Bytes from the tile's begin to element `first` of the free dimension,
  /// which begins a group of rows or a panel.
  int64_t getFreeBytes(int64_t first) const {
    if (!transposed)
      return first * tile.swizzle;
    return first * tile.elementBytes / tile.swizzle * tile.getPanelBytes();
  }

private:
  const SharedTile tile;
  const bool transposed;
};

/// The registers of a left operand, four for each step. Its pieces lie in the
/// order of the registers: both rows of a chunk, then those of the next.
SmallVector<Value> packFragment(OpBuilder &builder, Location loc,
                                ValueRange pieces) {
  SmallVector<Value> registers;
  for (Value piece : pieces)
    registers.push_back(toRegister(builder, loc, piece));
  return registers;
}

/// The registers of a tile become those that products write.
struct LowerBeginDots : public OpConversionPattern<tile::BeginDotsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::BeginDotsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> values =
        unpackPieces(rewriter, op.getLoc(), adaptor.getTile());
    auto fence = tile::WgmmaFenceOp::create(
        rewriter, op.getLoc(), ValueRange(values).getTypes(), values);
    rewriter.replaceOpWithMultiple(op, {fence.getResults()});
    return success();
  }
};

struct LowerDot : public OpConversionPattern<tile::DotOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::DotOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.isOfWarpgroups())
      return failure();
    Location loc = op.getLoc();
    RankedTensorType sum = op.getSumType();
    auto layout = cast<tile::MmaAttr>(sum.getEncoding());
    const int64_t columns = sum.getDimSize(1);
    const int64_t warpgroups = layout.getWarps() / kWarpsOfWarpgroup;
    const int64_t repeats = layout.getRowRepeats(sum.getShape());
    auto aType = cast<ShapedType>(op.getA().getType());
    const int64_t steps = aType.getDimSize(op.getContract()[0]) *
                          getElementBytes(aType) / kStepBytes;

    SmallVector<Value> sums(adaptor.getAccumulator()), fragments;
    const bool isFragment = isa<RankedTensorType>(aType);
    if (isFragment)
      fragments = packFragment(rewriter, loc, adaptor.getA());
    // The products see the left operand's registers as they are now.
    auto fence = tile::WgmmaFenceOp::create(
        rewriter, loc, ValueRange(fragments).getTypes(), fragments);
    llvm::copy(fence.getResults(), fragments.begin());

    Value a = isFragment ? Value() : adaptor.getA().front();
    std::optional<SharedOperand> left;
    if (a) {
      left.emplace(cast<MemRefType>(aType), op.getContract()[0]);
      a = moveToWarpgroup(rewriter, op, a, *left, warpgroups);
    }
    const SharedOperand right(cast<MemRefType>(op.getB().getType()),
                              op.getContract()[1]);
    Type bElement = getElementTypeOrSelf(op.getB().getType());
    TypeAttr bType = bElement == aType.getElementType()
                         ? TypeAttr()
                         : TypeAttr::get(bElement);
    const auto perRepeat = static_cast<size_t>(columns / 2);
    SmallVector<SmallVector<Value>> parts(repeats);
    for (int64_t repeat = 0; repeat < repeats && !sums.empty(); ++repeat)
      parts[repeat] =
          llvm::to_vector(ArrayRef(sums).slice(repeat * perRepeat, perRepeat));
    for (int64_t step = 0; step < steps; ++step)
      for (int64_t repeat = 0; repeat < repeats; ++repeat) {
        ValueRange fragment;
        if (isFragment)
          fragment = ArrayRef(fragments).slice((repeat * steps + step) * 4, 4);
        tile::SharedMatrixAttr aMatrix;
        if (a)
          aMatrix =
              left->getMatrix(getContext(), repeat * warpgroups * kRows, step);
        SmallVector<Type> types(perRepeat, rewriter.getF32Type());
        auto product = tile::WgmmaOp::create(
            rewriter, loc, types, parts[repeat], fragment, a,
            adaptor.getB().front(), columns, aType.getElementType(), aMatrix,
            right.getMatrix(getContext(), op.getColumn(), step), bType);
        parts[repeat] = llvm::to_vector(ValueRange(product.getResults()));
      }
    NVVM::WgmmaGroupSyncAlignedOp::create(rewriter, loc);
    SmallVector<Value> results;
    for (ArrayRef<Value> part : parts)
      llvm::append_range(results, part);
    rewriter.replaceOpWithMultiple(op, {ValueRange(results)});
    return success();
  }

  /// The address of the left operand's part of the calling warpgroup.
  static Value moveToWarpgroup(OpBuilder &builder, tile::DotOp op, Value a,
                               const SharedOperand &operand,
                               int64_t warpgroups) {
    if (warpgroups == 1)
      return a;
    Location loc = op.getLoc();
    Value bytes = arith::ConstantIndexOp::create(builder, loc,
                                                 operand.getFreeBytes(kRows));
    return advanceBytes(
        builder, loc, a,
        arith::MulIOp::create(builder, loc, Role(op).getWarpgroup(builder, loc),
                              bytes));
  }
};

/// What registers hold of pieces: numbers of 32 bits, or pairs of 16.
SmallVector<Value> toRegisters(OpBuilder &builder, Location loc,
                               ValueRange pieces) {
  auto vector = dyn_cast<VectorType>(pieces.front().getType());
  if (!vector || vector.getElementTypeBitWidth() >= 32)
    return unpackPieces(builder, loc, pieces);
  return packFragment(builder, loc, pieces);
}

/// The pieces of `type` that `registers` hold.
SmallVector<Value> fromRegisters(OpBuilder &builder, Location loc, Type type,
                                 ValueRange registers) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector)
    return registers;
  if (vector.getElementTypeBitWidth() >= 32)
    return packPieces(builder, loc, vector, registers);
  SmallVector<Value> pieces;
  for (Value value : registers)
    pieces.push_back(LLVM::BitcastOp::create(builder, loc, type, value));
  return pieces;
}

struct LowerWaitDots : public OpConversionPattern<tile::WaitDotsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::WaitDotsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    SmallVector<Value> values;
    SmallVector<size_t> counts;
    for (ValueRange sum : adaptor.getSums()) {
      llvm::append_range(values, sum);
      counts.push_back(sum.size());
    }
    SmallVector<Value> anchors;
    for (auto [type, tile] :
         llvm::zip(op.getAfter().getTypes(), adaptor.getAfter())) {
      SmallVector<Value> registers = toRegisters(rewriter, loc, tile);
      llvm::append_range(values, registers);
      counts.push_back(registers.size());
      auto tensor = cast<RankedTensorType>(type);
      tile::MmaAttr layout = getFragmentLayout(tensor);
      if (tensor.getElementType().isF32() && layout &&
          layout.getChunks(tensor.getShape()) == 1)
        llvm::append_range(anchors, registers);
    }
    llvm::append_range(values, anchors);
    auto wait = tile::WgmmaWaitOp::create(
        rewriter, loc, ValueRange(values).getTypes(), values, op.getPending(),
        static_cast<int64_t>(anchors.size()));
    SmallVector<SmallVector<Value>> tiles;
    ValueRange left = wait.getResults();
    for (auto [count, type] : llvm::zip_equal(counts, op.getResultTypes())) {
      tiles.push_back(fromRegisters(rewriter, loc,
                                    getPieceType(cast<RankedTensorType>(type)),
                                    left.take_front(count)));
      left = left.drop_front(count);
    }
    if (tiles.empty())
      rewriter.eraseOp(op);
    else
      rewriter.replaceOpWithMultiple(op, std::move(tiles));
    return success();
  }
};

} // namespace

void bastile::populateDotPatterns(const TypeConverter &converter,
                                  RewritePatternSet &patterns) {
  patterns.add<LowerBeginDots, LowerDot, LowerWaitDots>(converter,
                                                        patterns.getContext());
}
