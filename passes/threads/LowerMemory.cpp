//===- LowerMemory.cpp - Loads and stores of a thread's pieces ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/threads/LowerTiles.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/threads/TileAddress.h"

using namespace mlir;
using namespace bastile;

SmallVector<Value> bastile::getFronts(ArrayRef<ValueRange> operands) {
  return llvm::map_to_vector(operands,
                             [](ValueRange values) { return values.front(); });
}

namespace {

/// Calls `visit` with the address of each piece that a thread loads of a tile.
/// Elements beyond the operand are read from its last row or vector instead: so
/// the access needs no branch, and overlaps with those of other pieces.
void forEachLoadedPiece(OpBuilder &builder, Location loc, TileAddress &address,
                        RankedTensorType type,
                        llvm::function_ref<void(Value)> visit) {
  tile::BlockedAttr layout = getLayout(type);
  const int64_t repeats = layout.getColumnRepeats(type.getShape());
  // The columns of the pieces in every row; null where a piece is a constant
  // away from the thread's first one.
  SmallVector<Value> columns(repeats);
  for (auto [repeat, column] : llvm::enumerate(columns)) {
    bool mayLeave = address.mayLeaveColumns(repeat);
    if (!mayLeave && address.haveThreadAddress())
      continue;
    column = address.getColumn(repeat);
    if (!mayLeave)
      continue;
    int64_t width = layout.getGroup() > 1 ? 1 : layout.getVector();
    Value last = address.constant(address.getLength() - width);
    column = arith::MinUIOp::create(builder, loc, column, last);
  }
  for (int64_t rowRepeat = 0,
               rowRepeats = layout.getRowRepeats(type.getShape());
       rowRepeat < rowRepeats; ++rowRepeat) {
    Value rowAddress = address.getRowAddress(address.getInnerRow(rowRepeat));
    Value threadAddress;
    for (auto [repeat, column] : llvm::enumerate(columns)) {
      if (column) {
        visit(address.getAddress(rowAddress, column));
        continue;
      }
      if (!threadAddress)
        threadAddress = address.getThreadAddress(rowAddress);
      visit(address.getPieceAddress(threadAddress, repeat));
    }
  }
}

struct LowerLoad : public OpConversionPattern<tile::LoadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::LoadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (!getLayout(type) || op.getMisalignment())
      return failure();
    Location loc = op.getLoc();
    SmallVector<Value> indices = getFronts(adaptor.getIndices());
    TileAddress address(rewriter, op, type, adaptor.getMemref(), indices);
    unsigned alignment = op.getAlignment().value_or(getElementBytes(type));
    SmallVector<Value> pieces;
    forEachLoadedPiece(rewriter, loc, address, type, [&](Value pointer) {
      pieces.push_back(loadPiece(rewriter, loc, getPieceType(type), pointer,
                                 alignment, op.getInvariant()));
    });
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

struct LowerCopyAhead : public OpConversionPattern<tile::CopyAheadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::CopyAheadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getTile());
    if (!getLayout(type) || op.getMisalignment())
      return failure();
    Location loc = op.getLoc();
    SmallVector<Value> indices = getFronts(adaptor.getIndices()), sources;
    TileAddress address(rewriter, op, type, adaptor.getMemref(), indices);
    forEachLoadedPiece(rewriter, loc, address, type,
                       [&](Value pointer) { sources.push_back(pointer); });
    forEachKeptPiece(rewriter, loc, type, adaptor.getBuffer().front(),
                     adaptor.getSlot().front(),
                     [&](int64_t index, Value target, unsigned bytes) {
                       createCopyAhead(rewriter, loc, sources[index], target,
                                       bytes);
                     });
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerStore : public OpConversionPattern<tile::StoreOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::StoreOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getValue().getType());
    tile::BlockedAttr layout = getLayout(type);
    if (!layout || op.getMisalignment())
      return failure();
    Location loc = op.getLoc();
    SmallVector<Value> indices = getFronts(adaptor.getIndices());
    TileAddress address(rewriter, op, type, adaptor.getMemref(), indices);
    unsigned alignment = op.getAlignment().value_or(getElementBytes(type));
    int64_t columns = layout.getColumnRepeats(type.getShape());
    bool hasGroups = layout.getGroup() > 1 && layout.isGroupAligned();
    Value rowAddress, threadAddress;
    SmallVector<Value> pointers;
    for (size_t index = 0; index < adaptor.getValue().size(); ++index) {
      int64_t repeat = index % columns;
      if (repeat == 0) {
        rowAddress =
            address.getRowAddress(address.getStoredRow(index / columns));
        if (address.haveThreadAddress())
          threadAddress = address.getThreadAddress(rowAddress);
      }
      // All pieces of a group hold the same number, which the first one stores.
      if (hasGroups && repeat % layout.getGroupPieces() != 0)
        pointers.push_back(nullptr);
      else if (threadAddress)
        pointers.push_back(address.getPieceAddress(threadAddress, repeat));
      else
        pointers.push_back(
            address.getAddress(rowAddress, address.getColumn(repeat)));
    }
    // Conditions come behind all addresses: ahead of them, each would take a
    // register meanwhile.
    SmallVector<Value> ofRows = address.getRowConditions(), ofColumns;
    for (int64_t repeat = 0; repeat < columns; ++repeat)
      ofColumns.push_back(address.getColumnCondition(repeat));
    for (auto [index, piece] : llvm::enumerate(adaptor.getValue())) {
      Value pointer = pointers[index];
      if (!pointer)
        continue;
      Value stored =
          bitcastTo(rewriter, loc, getMemoryType(piece.getType()), piece);
      storeIf(rewriter, loc,
              combine(rewriter, loc, ofRows[index / columns],
                      ofColumns[index % columns]),
              stored, pointer, alignment);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

/// Compares the factor with 1 as an integer: no other number has the bits of 1.
struct LowerIsDone : public OpConversionPattern<tile::IsDoneOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::IsDoneOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto isEqual = [&](Value lhs, Value rhs) -> Value {
      return arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::eq, lhs,
                                   rhs);
    };
    auto element = cast<FloatType>(
        cast<MemRefType>(op.getFactor().getType()).getElementType());
    Type bits = withIntegers(element);
    Value factor =
        LLVM::LoadOp::create(rewriter, loc, bits, adaptor.getFactor().front(),
                             getElementBytes(element));
    APInt one = APFloat::getOne(element.getFloatSemantics()).bitcastToAPInt();
    Value isDone =
        isEqual(factor, arith::ConstantOp::create(
                            rewriter, loc, rewriter.getIntegerAttr(bits, one)));
    for (auto [input, output] :
         llvm::zip_equal(adaptor.getInputs(), adaptor.getOutputs())) {
      auto getAddress = [&](ValueRange parts) -> Value {
        return LLVM::PtrToIntOp::create(rewriter, loc, rewriter.getI64Type(),
                                        parts.front());
      };
      isDone =
          arith::AndIOp::create(rewriter, loc, isDone,
                                isEqual(getAddress(input), getAddress(output)));
    }
    rewriter.replaceOp(op, isDone);
    return success();
  }
};

} // namespace

void bastile::populateMemoryPatterns(const TypeConverter &converter,
                                     RewritePatternSet &patterns) {
  patterns.add<LowerLoad, LowerCopyAhead, LowerStore, LowerIsDone>(
      converter, patterns.getContext());
}
