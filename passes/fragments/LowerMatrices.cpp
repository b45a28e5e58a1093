//===- LowerMatrices.cpp - Products of single warps -----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Operands of products that go from shared memory to registers, and the
// products of these: instructions of one warp each, which all targets have.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/Fragments.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "passes/fragments/FragmentPosition.h"
#include "passes/fragments/SharedTiles.h"
#include "passes/pieces/Pieces.h"

using namespace mlir;
using namespace bastile;

/// Rows and columns of one product, and bytes of each row that it contracts.
static constexpr int64_t kRows = 16, kColumns = 8, kStepBytes = 32;

namespace {

/// Loads four matrices of 8 rows and 16 bytes, as pieces of `type`.
SmallVector<Value> loadMatrices(OpBuilder &builder, Location loc, Value address,
                                Type type, bool transposed) {
  constexpr int32_t count = 4;
  SmallVector<Type> registers(count, builder.getI32Type());
  Value loaded = NVVM::LdMatrixOp::create(
      builder, loc,
      LLVM::LLVMStructType::getLiteral(builder.getContext(), registers),
      address, count, transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::LdStMatrixShapeAttr::get(builder.getContext(), 8, 8),
      NVVM::LdStMatrixEltType::B16);
  SmallVector<Value> pieces;
  for (int64_t index = 0; index < count; ++index)
    pieces.push_back(fromRegister(
        builder, loc, type,
        LLVM::ExtractValueOp::create(builder, loc, loaded, index)));
  return pieces;
}

/// Reads a tile of products, the left operand of the next: matrices where
/// pieces have 4 bytes, otherwise each piece by its thread.
struct TakeFragment : public OpConversionPattern<tile::TakeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::TakeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    tile::MmaAttr layout = getFragmentLayout(type);
    auto memory = cast<MemRefType>(op.getBuffer().getType());
    if (!layout || op.getTransposed() ||
        !isa_and_present<tile::SharedAttr>(memory.getMemorySpace()))
      return failure();
    Location loc = op.getLoc();
    ArrayRef<int64_t> shape = type.getShape();
    Type pieceType = getPieceType(type);
    Value slot = getSlot(rewriter, loc, memory, adaptor.getBuffer().front(),
                         adaptor.getSlot().front());
    SharedFragment places(rewriter, op, layout, SharedTile(memory), slot);
    const bool isMatrix = isOfMatrices(type);
    SmallVector<Value> pieces;
    for (int64_t repeat = 0; repeat < layout.getRowRepeats(shape); ++repeat)
      for (int64_t chunk = 0; chunk < layout.getChunks(shape);
           chunk += isMatrix ? 2 : 1) {
        if (isMatrix) {
          llvm::append_range(
              pieces, loadMatrices(rewriter, loc,
                                   places.getMatrixAddress(repeat, chunk),
                                   pieceType, /*transposed=*/false));
          continue;
        }
        for (int64_t half = 0; half < 2; ++half)
          pieces.push_back(loadPiece(
              rewriter, loc, pieceType,
              places.getPieceAddress(repeat, chunk, half),
              layout.getPieceElements(shape) * getElementBytes(type)));
      }
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

/// Reads a left operand whose rows are the columns of the buffer's tile.
struct TakeTransposed : public OpConversionPattern<tile::TakeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::TakeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    tile::MmaAttr layout = getFragmentLayout(type);
    if (!layout || !op.getTransposed())
      return failure();
    Location loc = op.getLoc();
    ArrayRef<int64_t> shape = type.getShape();
    auto memory = cast<MemRefType>(op.getBuffer().getType());
    SharedTile place(memory);
    SharedPlaces places = getTransposedMatrices(
        rewriter, op, place,
        getSlot(rewriter, loc, memory, adaptor.getBuffer().front(),
                adaptor.getSlot().front()));
    SmallVector<Value> pieces;
    for (int64_t repeat = 0; repeat < layout.getRowRepeats(shape); ++repeat)
      for (int64_t chunk = 0; chunk < layout.getChunks(shape); chunk += 2) {
        const int64_t firstRow =
            repeat * layout.getWarps() * tile::MmaAttr::kWarpRows;
        llvm::append_range(
            pieces,
            loadMatrices(rewriter, loc,
                         places.getAddress(chunk * layout.getChunkColumns(),
                                           firstRow * place.elementBytes),
                         getPieceType(type), /*transposed=*/true));
      }
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

/// Reads the right operand of a product.
struct TakeRhs : public OpConversionPattern<tile::TakeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::TakeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    auto layout = dyn_cast_or_null<tile::MmaRhsAttr>(type.getEncoding());
    if (!layout)
      return failure();
    Location loc = op.getLoc();
    ArrayRef<int64_t> shape = type.getShape();
    auto memory = cast<MemRefType>(op.getBuffer().getType());
    SharedTile place(memory);
    SharedPlaces places = getRhsMatrices(rewriter, op, place,
                                         getSlot(rewriter, loc, memory,
                                                 adaptor.getBuffer().front(),
                                                 adaptor.getSlot().front()),
                                         op.getTransposed());
    SmallVector<Value> pieces(layout.getNumPieces(shape));
    constexpr int64_t chunks =
        tile::MmaRhsAttr::kRows / tile::MmaRhsAttr::kChunk;
    for (int64_t step = 0; step < shape[1] / layout.getStepColumns(); ++step)
      for (int64_t pair = 0; pair < shape[0] / tile::MmaRhsAttr::kRows;
           ++pair) {
        const int64_t row = pair * tile::MmaRhsAttr::kRows;
        const int64_t column = step * layout.getStepColumns();
        Value address =
            op.getTransposed()
                ? places.getAddress(column, row * place.elementBytes)
                : places.getAddress(row, column * place.elementBytes);
        SmallVector<Value> loaded = loadMatrices(
            rewriter, loc, address, getPieceType(type), op.getTransposed());
        for (auto [index, piece] : llvm::enumerate(loaded))
          pieces[layout.getPiece(shape, pair * chunks + index / 2, step) +
                 index % 2] = piece;
      }
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

/// A product of operands in registers: of 16 rows and 8 columns at a time.
struct LowerWarpDot : public OpConversionPattern<tile::DotOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::DotOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (op.isOfWarpgroups())
      return failure();
    Location loc = op.getLoc();
    RankedTensorType sum = op.getSumType();
    auto a = cast<RankedTensorType>(op.getA().getType());
    auto b = cast<RankedTensorType>(op.getB().getType());
    auto layout = cast<tile::MmaAttr>(sum.getEncoding());
    auto lhsLayout = cast<tile::MmaAttr>(a.getEncoding());
    auto rhsLayout = cast<tile::MmaRhsAttr>(b.getEncoding());
    Type pieceType = getPieceType(sum);
    const int64_t width = layout.getPieceElements(sum.getShape());
    // The instruction takes elements, which stay apart up to the last one.
    SmallVector<Value> sums =
        unpackPieces(rewriter, loc, adaptor.getAccumulator());
    if (sums.empty())
      sums.assign(
          layout.getNumPieces(sum.getShape()) * width,
          createConstantPiece(rewriter, loc, sum.getElementType(),
                              rewriter.getZeroAttr(sum.getElementType())));
    SmallVector<Value> left = toRegisters(rewriter, loc, adaptor.getA());
    SmallVector<Value> right = toRegisters(rewriter, loc, adaptor.getB());
    // Products that follow each other add to different sums, so that none waits
    // for the one before.
    const int64_t steps = a.getDimSize(1) / rhsLayout.getStepColumns();
    for (int64_t step = 0; step < steps; ++step)
      for (int64_t chunk = 0; chunk < layout.getChunks(sum.getShape()); ++chunk)
        for (int64_t repeat = 0; repeat < layout.getRowRepeats(sum.getShape());
             ++repeat) {
          // Two chunks of the left operand's columns are contracted.
          auto rows = ArrayRef(left).slice(
              lhsLayout.getPiece(a.getShape(), repeat, 2 * step, /*half=*/0),
              4);
          auto columns = ArrayRef(right).slice(
              rhsLayout.getPiece(b.getShape(), chunk, step),
              tile::MmaRhsAttr::kPieces);
          auto elements = MutableArrayRef(sums).slice(
              layout.getPiece(sum.getShape(), repeat, chunk, /*half=*/0) *
                  width,
              2 * width);
          multiply(rewriter, loc, rows, columns, elements, a.getElementType(),
                   b.getElementType());
        }
    rewriter.replaceOpWithMultiple(
        op, {ValueRange(packPieces(rewriter, loc, pieceType, sums))});
    return success();
  }

private:
  /// What the instruction takes: pairs of float16, and others as numbers of 32
  /// bits.
  static SmallVector<Value> toRegisters(OpBuilder &builder, Location loc,
                                        ValueRange pieces) {
    SmallVector<Value> registers(pieces);
    for (Value &piece : registers)
      if (!getElementTypeOrSelf(piece.getType()).isF16())
        piece = toRegister(builder, loc, piece);
    return registers;
  }

  /// The sums of one product, in a structure.
  static Value createProduct(OpBuilder &builder, Location loc,
                             ArrayRef<Value> left, ArrayRef<Value> right,
                             ArrayRef<Value> before, Type element,
                             Type bElement) {
    SmallVector<Type> types(before.size(), builder.getF32Type());
    auto result = LLVM::LLVMStructType::getLiteral(builder.getContext(), types);
    if (element.isBF16() || element.isF16()) {
      NVVM::MMATypes type =
          element.isBF16() ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16;
      constexpr int64_t shape[] = {kRows, kColumns, kStepBytes / 2};
      return NVVM::MmaOp::create(
          builder, loc, result, left, right, before, shape,
          /*b1Op=*/std::nullopt, /*intOverflow=*/std::nullopt,
          std::array{type, type},
          std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
    }
    // The op does not take elements of 8 bits, LLVM does.
    SmallVector<Value> operands(left);
    llvm::append_range(operands, right);
    llvm::append_range(operands, before);
    auto getName = [](Type type) {
      return isa<Float8E4M3FNType>(type) ? ".e4m3" : ".e5m2";
    };
    const std::string name = std::string("llvm.nvvm.mma.m16n8k32.row.col.f32") +
                             getName(element) + getName(bElement) + ".f32";
    return LLVM::CallIntrinsicOp::create(builder, loc, result,
                                         builder.getStringAttr(name), operands)
        .getResult(0);
  }

  /// Adds to `sums`, those of both rows of a chunk.
  static void multiply(OpBuilder &builder, Location loc, ArrayRef<Value> left,
                       ArrayRef<Value> right, MutableArrayRef<Value> sums,
                       Type element, Type bElement) {
    Value result =
        createProduct(builder, loc, left, right, sums, element, bElement);
    for (auto [index, sum] : llvm::enumerate(sums))
      sum = LLVM::ExtractValueOp::create(builder, loc, result,
                                         static_cast<int64_t>(index));
  }
};

} // namespace

void bastile::populateMatrixPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<TakeFragment, TakeTransposed, TakeRhs, LowerWarpDot>(
      converter, patterns.getContext());
}
