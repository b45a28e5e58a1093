//===- LowerHeldTiles.cpp - Sums in the order of the threads --------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Tiles in `#tile.held` memory, of this block or of another one of the cluster.
// Each thread has a place of its own for every 16 bytes that it holds, which
// are two pieces, so that it moves all of them at once, and the threads of a
// warp access neighbouring bytes.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/Fragments.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/fragments/FragmentPosition.h"
#include "passes/fragments/Role.h"
#include "passes/fragments/SharedTiles.h"
#include "passes/pieces/Pieces.h"
#include "passes/pieces/Scratch.h"

using namespace mlir;
using namespace bastile;

/// What a thread moves at once: the bytes, and how many pieces they are.
static constexpr int64_t kUnitBytes = 16, kUnitPieces = 2;

namespace {

bool isHeld(Value buffer) {
  return isa_and_present<tile::HeldAttr>(
      cast<MemRefType>(buffer.getType()).getMemorySpace());
}

/// The calling thread's places in a slot for tiles of `type`.
class HeldPlaces {
public:
  HeldPlaces(OpBuilder &builder, Operation *op, RankedTensorType type,
             Value buffer, Value slot)
      : builder(builder), loc(op->getLoc()) {
    Role role(op);
    unitsBytes = role.getThreads() * kUnitBytes;
    auto multiply = [&](Value value, int64_t by) -> Value {
      return arith::MulIOp::create(
          builder, loc, value,
          arith::ConstantIndexOp::create(builder, loc, by));
    };
    first = advanceBytes(
        builder, loc, buffer,
        arith::AddIOp::create(
            builder, loc,
            multiply(slot, type.getNumElements() * getElementBytes(type)),
            multiply(role.getThread(builder, loc), kUnitBytes)));
  }

  /// Makes the places those of block `block`, an i32.
  void moveTo(Value block) { first = mapToBlock(builder, loc, first, block); }
  Value getAddress(int64_t unit) {
    return advanceBytes(builder, loc, first, unit * unitsBytes);
  }

private:
  OpBuilder &builder;
  Location loc;
  Value first;
  /// The bytes of a unit of all threads.
  int64_t unitsBytes;
};

/// The pieces of unit `unit` as one vector.
Value joinUnit(OpBuilder &builder, Location loc, ValueRange pieces,
               int64_t unit) {
  return vector::ShuffleOp::create(builder, loc, pieces[kUnitPieces * unit],
                                   pieces[kUnitPieces * unit + 1],
                                   ArrayRef<int64_t>{0, 1, 2, 3});
}

struct KeepHeld : public OpConversionPattern<tile::KeepOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::KeepOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isHeld(op.getBuffer()))
      return failure();
    Location loc = op.getLoc();
    HeldPlaces places(rewriter, op,
                      cast<RankedTensorType>(op.getValue().getType()),
                      adaptor.getBuffer().front(), adaptor.getSlot().front());
    ValueRange pieces = adaptor.getValue();
    const auto units = static_cast<int64_t>(pieces.size()) / kUnitPieces;
    for (int64_t unit = 0; unit < units; ++unit)
      storePiece(rewriter, loc, joinUnit(rewriter, loc, pieces, unit),
                 places.getAddress(unit), kUnitBytes);
    rewriter.eraseOp(op);
    return success();
  }
};

struct TakeHeld : public OpConversionPattern<tile::TakeOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::TakeOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!isHeld(op.getBuffer()))
      return failure();
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getType());
    HeldPlaces places(rewriter, op, type, adaptor.getBuffer().front(),
                      adaptor.getSlot().front());
    auto unitType = VectorType::get({4}, type.getElementType());
    SmallVector<Value> pieces;
    const int64_t count = getFragmentLayout(type).getNumPieces(type.getShape());
    for (int64_t unit = 0; unit < count / kUnitPieces; ++unit) {
      Value both = loadPiece(rewriter, loc, unitType, places.getAddress(unit),
                             kUnitBytes);
      for (int64_t element : {0, 2})
        pieces.push_back(
            vector::ShuffleOp::create(rewriter, loc, both, both,
                                      ArrayRef<int64_t>{element, element + 1}));
    }
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

struct LowerSend : public OpConversionPattern<tile::SendOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::SendOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Value block = arith::IndexCastUIOp::create(
        rewriter, loc, rewriter.getI32Type(), adaptor.getBlock().front());
    HeldPlaces places(rewriter, op,
                      cast<RankedTensorType>(op.getValue().getType()),
                      adaptor.getBuffer().front(), adaptor.getSlot().front());
    places.moveTo(block);
    Value barrier = mapToBlock(
        rewriter, loc,
        getScratchAddress(rewriter, loc, adaptor.getBarriers().front(),
                          rewriter.getI64Type(), adaptor.getIndex().front()),
        block);
    ValueRange pieces = adaptor.getValue();
    const auto units = static_cast<int64_t>(pieces.size()) / kUnitPieces;
    for (int64_t unit = 0; unit < units; ++unit) {
      SmallVector<Value> operands{places.getAddress(unit)};
      for (Value number : unpackPieces(
               rewriter, loc, pieces.slice(unit * kUnitPieces, kUnitPieces)))
        operands.push_back(LLVM::BitcastOp::create(
            rewriter, loc, rewriter.getI32Type(), number));
      operands.push_back(barrier);
      LLVM::InlineAsmOp::create(
          rewriter, loc, /*res=*/Type(), operands, kSendUnitInstruction,
          "l,r,r,r,r,l,~{memory}", /*has_side_effects=*/true,
          /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
          LLVM::AsmDialectAttr(), ArrayAttr());
    }
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void bastile::populateHeldPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  patterns.add<KeepHeld, TakeHeld, LowerSend>(converter, patterns.getContext());
}
