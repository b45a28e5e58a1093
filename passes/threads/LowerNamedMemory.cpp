//===- LowerNamedMemory.cpp - Blocked tiles over named dimensions ---------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Loads and stores of tiles with blocked layouts, in programs over named
// dimensions. Such operands have rows of any length, so that a piece may lie in
// part beyond its row: the elements that do are masked.
//
//===----------------------------------------------------------------------===//

#include "passes/threads/LowerTiles.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/fragments/OperandTile.h"

using namespace mlir;
using namespace bastile;

namespace {

/// Where a thread's pieces of a tile lie in an operand.
class NamedPieces {
public:
  template <typename Op>
  NamedPieces(OpBuilder &builder, Op op, RankedTensorType tile,
              ValueRange parts, ArrayRef<ValueRange> indices)
      : builder(builder), loc(op.getLoc()), tile(tile), layout(getLayout(tile)),
        memory(builder, op, cast<MemRefType>(op.getMemref().getType()), parts,
               indices),
        thread(getThreadPosition(builder, loc, layout)) {}

  /// Calls `visit` for each piece with its address, whether its first element
  /// lies in the operand, and how many elements its row has from there on.
  void
  forEach(llvm::function_ref<void(Value address, Value isInside, Value left)>
              visit) {
    for (int64_t i = 0; i < layout.getRowRepeats(tile.getShape()); ++i)
      for (int64_t j = 0; j < layout.getColumnRepeats(tile.getShape()); ++j) {
        Value row = memory.row, column = memory.column;
        if (row && tile.getDimSize(0) != 1)
          row = add(add(row, thread.row), constant(i * layout.getThreadRows()));
        if (tile.getDimSize(1) != 1)
          column = add(column, getPieceColumn(builder, loc, tile, j));
        Value isInside = memory.isInside(builder, loc, row, column);
        Value left =
            arith::SubIOp::create(builder, loc, memory.columns, column);
        visit(memory.getAddress(builder, loc, row, column, isInside), isInside,
              left);
      }
  }

  /// Which elements of a piece lie in the operand.
  Value getMask(Value isInside, Value left) {
    Value count =
        arith::SelectOp::create(builder, loc, isInside, left, constant(0));
    return createMask(builder, loc, count, layout.getVector());
  }

  /// Whether the thread stores what it holds; null if each thread does.
  Value isOwner() {
    return isFirstHolder(
        builder, loc, tile, layout.getThreadRows() > 1 ? thread.row : Value(),
        layout.getThreadColumns() > 1 ? thread.column : Value());
  }

private:
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }
  Value add(Value lhs, Value rhs) {
    return arith::AddIOp::create(builder, loc, lhs, rhs);
  }

  OpBuilder &builder;
  Location loc;
  RankedTensorType tile;
  tile::BlockedAttr layout;
  const OperandTile memory;
  ThreadPosition thread;
};

/// Whether `op` moves a tile in a blocked layout, of whole rows.
template <typename Op>
bool isOfNamedBlocks(Op op, RankedTensorType tile) {
  tile::BlockedAttr layout = getLayout(tile);
  return layout && layout.getGroup() == 1 && layout.getBlocks() == 1 &&
         movesNamedRows(op);
}

/// These patterns come ahead of those for tiles over rows.
constexpr unsigned kBenefit = 2;

struct LoadNamed : public OpConversionPattern<tile::LoadOp> {
  LoadNamed(const TypeConverter &converter, MLIRContext *context)
      : OpConversionPattern(converter, context, kBenefit) {}

  LogicalResult
  matchAndRewrite(tile::LoadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (!isOfNamedBlocks(op, type))
      return failure();
    Location loc = op.getLoc();
    NamedPieces memory(rewriter, op, type, adaptor.getMemref(),
                       adaptor.getIndices());
    Type pieceType = getPieceType(type);
    const auto bytes = static_cast<unsigned>(getElementBytes(type));
    Value zero =
        createConstantPiece(rewriter, loc, type.getElementType(),
                            rewriter.getZeroAttr(type.getElementType()));
    SmallVector<Value> pieces;
    memory.forEach([&](Value address, Value isInside, Value left) {
      pieces.push_back(
          isa<VectorType>(pieceType)
              ? loadMasked(rewriter, loc, pieceType, address,
                           memory.getMask(isInside, left), bytes)
              : loadIf(rewriter, loc, isInside, zero, address, bytes));
    });
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

struct StoreNamed : public OpConversionPattern<tile::StoreOp> {
  StoreNamed(const TypeConverter &converter, MLIRContext *context)
      : OpConversionPattern(converter, context, kBenefit) {}

  LogicalResult
  matchAndRewrite(tile::StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getValue().getType());
    if (!isOfNamedBlocks(op, type))
      return failure();
    Location loc = op.getLoc();
    NamedPieces memory(rewriter, op, type, adaptor.getMemref(),
                       adaptor.getIndices());
    const auto bytes = static_cast<unsigned>(getElementBytes(type));
    Value isOwner = memory.isOwner();
    size_t next = 0;
    memory.forEach([&](Value address, Value isInside, Value left) {
      Value piece = adaptor.getValue()[next++];
      Value isStored = combine(rewriter, loc, isInside, isOwner);
      if (!isa<VectorType>(piece.getType())) {
        storeIf(rewriter, loc, isStored,
                bitcastTo(rewriter, loc, getMemoryType(piece.getType()), piece),
                address, bytes);
        return;
      }
      LLVM::MaskedStoreOp::create(
          rewriter, loc,
          bitcastTo(rewriter, loc, withIntegers(piece.getType()), piece),
          address, memory.getMask(isStored, left), bytes);
    });
    rewriter.eraseOp(op);
    return success();
  }
};

/// A number that all threads read of an operand that the program does not
/// write.
struct LoadNumber : public OpConversionPattern<memref::LoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(memref::LoadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    ValueRange parts = adaptor.getMemref();
    Type element = op.getMemRefType().getElementType();
    Value address = parts.front();
    for (auto [dimension, index] : llvm::enumerate(adaptor.getIndices())) {
      Value elements = index.front();
      if (1 + dimension < parts.size())
        elements = arith::MulIOp::create(rewriter, loc, elements,
                                         parts[1 + dimension]);
      address = advance(rewriter, loc, address, element, elements);
    }
    rewriter.replaceOp(
        op, loadPiece(rewriter, loc, element, address,
                      static_cast<unsigned>(getElementBytes(element)),
                      /*isInvariant=*/true));
    return success();
  }
};

} // namespace

void bastile::populateNamedMemoryPatterns(const TypeConverter &converter,
                                          RewritePatternSet &patterns) {
  patterns.add<LoadNamed, StoreNamed, LoadNumber>(converter,
                                                  patterns.getContext());
}
