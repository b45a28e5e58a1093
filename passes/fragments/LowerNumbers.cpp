//===- LowerNumbers.cpp - Numbers from one role to another ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/Fragments.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "passes/fragments/FragmentPosition.h"
#include "passes/fragments/OperandTile.h"
#include "passes/fragments/Role.h"
#include "passes/fragments/SharedTiles.h"
#include "passes/pieces/Pieces.h"
#include "passes/pieces/Scratch.h"

using namespace mlir;
using namespace bastile;

namespace {

/// The addresses of the numbers in a slot.
class Slot {
public:
  Slot(OpBuilder &builder, Location loc, Type type, Value numbers, Value slot)
      : builder(builder), loc(loc),
        element(cast<MemRefType>(type).getElementType()) {
    Value count = arith::ConstantIndexOp::create(
        builder, loc, cast<MemRefType>(type).getDimSize(1));
    first = getScratchAddress(builder, loc, numbers, element,
                              arith::MulIOp::create(builder, loc, slot, count));
  }

  Type getElement() const { return element; }
  Value getAddress(Value index) {
    return getScratchAddress(builder, loc, first, element, index);
  }
  Value getAddress(size_t index) {
    if (index == 0)
      return first;
    return LLVM::GEPOp::create(builder, loc, first.getType(), getElement(),
                               first, LLVM::GEPArg(static_cast<int32_t>(index)),
                               LLVM::GEPNoWrapFlags::none);
  }

private:
  OpBuilder &builder;
  Location loc;
  Type element;
  Value first;
};

struct LowerMakeNumbers : public OpConversionPattern<tile::MakeNumbersOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::MakeNumbersOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<MemRefType>(op.getType());
    rewriter.replaceOp(op, createScratch(rewriter, op, type.getElementType(),
                                         type.getNumElements()));
    return success();
  }
};

struct LowerPutNumbers : public OpConversionPattern<tile::PutNumbersOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::PutNumbersOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Role(op).runOnFirst(rewriter, loc, [&] {
      Slot slot(rewriter, loc, op.getNumbers().getType(),
                adaptor.getNumbers().front(), adaptor.getSlot().front());
      for (auto [index, value] : llvm::enumerate(adaptor.getValues()))
        LLVM::StoreOp::create(rewriter, loc,
                              arith::IndexCastOp::create(rewriter, loc,
                                                         slot.getElement(),
                                                         value.front()),
                              slot.getAddress(index));
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerGetNumbers : public OpConversionPattern<tile::GetNumbersOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::GetNumbersOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Slot slot(rewriter, loc, op.getNumbers().getType(),
              adaptor.getNumbers().front(), adaptor.getSlot().front());
    SmallVector<Value> values;
    for (size_t index = 0; index < op.getValues().size(); ++index) {
      Value loaded = LLVM::LoadOp::create(rewriter, loc, slot.getElement(),
                                          slot.getAddress(index));
      values.push_back(arith::IndexCastOp::create(
          rewriter, loc, rewriter.getIndexType(), loaded));
    }
    rewriter.replaceOp(op, values);
    return success();
  }
};

/// The last of the copies of numbers that begin with `first` and have only
/// arithmetic between them.
tile::CopyNumbersOp getLastCopy(tile::CopyNumbersOp first) {
  tile::CopyNumbersOp last = first;
  for (Operation *op = first->getNextNode(); op; op = op->getNextNode()) {
    if (auto copy = dyn_cast<tile::CopyNumbersOp>(op))
      last = copy;
    else if (!isPure(op))
      break;
  }
  return last;
}

/// Each thread of the role copies one number after the other, as many apart as
/// there are threads. All of them are on their way before the first is stored,
/// those of the copies that follow among them: a thread waits for memory once.
struct LowerCopyNumbers : public OpConversionPattern<tile::CopyNumbersOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::CopyNumbersOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(rewriter, loc, value);
    };
    const OperandTile memory(rewriter, op,
                             cast<MemRefType>(op.getMemref().getType()),
                             adaptor.getMemref(), adaptor.getIndices());
    auto type = cast<MemRefType>(op.getNumbers().getType());
    Slot slot(rewriter, loc, type, adaptor.getNumbers().front(),
              adaptor.getSlot().front());
    const Role role(op);
    Value thread = role.getThread(rewriter, loc);
    Value zero = createConstantPiece(rewriter, loc, slot.getElement(),
                                     rewriter.getZeroAttr(slot.getElement()));
    SmallVector<std::pair<Value, Value>> copied;
    for (int64_t first = 0; first < type.getDimSize(1);
         first += role.getThreads()) {
      Value place =
          arith::AddIOp::create(rewriter, loc, thread, constant(first));
      Value row = arith::AddIOp::create(rewriter, loc, memory.row, place);
      Value number =
          loadIf(rewriter, loc,
                 memory.isInside(rewriter, loc, row, memory.column), zero,
                 memory.getAddress(rewriter, loc, row, memory.column,
                                   /*inside=*/Value()),
                 getElementBytes(slot.getElement()));
      copied.push_back({place, number});
    }
    rewriter.setInsertionPointAfter(getLastCopy(op));
    // The last threads may have none.
    const bool isWhole = type.getDimSize(1) % role.getThreads() == 0;
    for (auto [place, number] : copied) {
      Value isInSlot =
          isWhole
              ? Value()
              : arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ult,
                                      place, constant(type.getDimSize(1)));
      storeIf(rewriter, loc, isInSlot, number, slot.getAddress(place),
              getElementBytes(slot.getElement()));
    }
    rewriter.eraseOp(op);
    return success();
  }
};

/// The numbers of a piece are neighbours.
struct LowerTakeNumbers : public OpConversionPattern<tile::TakeNumbersOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::TakeNumbersOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getType());
    tile::MmaAttr layout = getFragmentLayout(type);
    Slot slot(rewriter, loc, op.getNumbers().getType(),
              adaptor.getNumbers().front(), adaptor.getSlot().front());
    FragmentPosition position(rewriter, op, layout);
    Value first = slot.getAddress(position.getColumn(/*chunk=*/0));
    SmallVector<Value> pieces;
    const int64_t bytes = getElementBytes(type);
    for (int64_t chunk = 0; chunk < layout.getChunks(type.getShape()); ++chunk)
      pieces.push_back(
          loadPiece(rewriter, loc, getPieceType(type),
                    advanceBytes(rewriter, loc, first,
                                 chunk * layout.getChunkColumns() * bytes),
                    layout.getPieceElements(type.getShape()) * bytes));
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

} // namespace

void bastile::populateNumbersPatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<LowerMakeNumbers, LowerPutNumbers, LowerGetNumbers,
               LowerCopyNumbers, LowerTakeNumbers>(converter,
                                                   patterns.getContext());
}
