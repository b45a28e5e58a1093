//===- LowerNumbers.cpp - Numbers from one role to another ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/Fragments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "passes/fragments/Role.h"
#include "passes/pieces/Scratch.h"

using namespace mlir;
using namespace bastile;

namespace {

/// The addresses of the numbers in a slot.
class Slot {
public:
  Slot(OpBuilder &builder, Location loc, Type type, Value numbers, Value slot)
      : builder(builder), loc(loc) {
    Value count = arith::ConstantIndexOp::create(
        builder, loc, cast<MemRefType>(type).getDimSize(1));
    first = getScratchAddress(builder, loc, numbers, getElement(),
                              arith::MulIOp::create(builder, loc, slot, count));
  }

  Type getElement() { return builder.getI32Type(); }
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

} // namespace

void bastile::populateNumbersPatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<LowerMakeNumbers, LowerPutNumbers, LowerGetNumbers>(
      converter, patterns.getContext());
}
