//===- LowerTensorCopies.cpp - Copies of boxes of operands ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/fragments/Fragments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "passes/fragments/OperandTile.h"
#include "passes/fragments/Role.h"
#include "passes/fragments/SharedTiles.h"
#include "passes/pieces/Pieces.h"
#include "passes/pieces/Scratch.h"
#include "passes/schedule/ThreadGrid.h"

using namespace mlir;
using namespace bastile;

/// The coordinates of panel `panel` of a box, the fastest first, as the
/// instruction takes them; `row`, if there is one, is added to that of rows,
/// and `matrix` to that of matrices.
static SmallVector<Value> getCoordinates(OpBuilder &builder, Location loc,
                                         tile::TensorMapType map,
                                         ArrayRef<ValueRange> indices,
                                         int64_t panel, Value row = Value(),
                                         Value matrix = Value()) {
  SmallVector<Value> coordinates;
  for (ValueRange index : llvm::reverse(indices)) {
    Value coordinate = index.front();
    if (coordinates.empty() && panel > 0)
      coordinate =
          arith::AddIOp::create(builder, loc, coordinate,
                                arith::ConstantIndexOp::create(
                                    builder, loc, panel * map.getBox().back()));
    if (coordinates.size() == 1 && row)
      coordinate = arith::AddIOp::create(builder, loc, coordinate, row);
    if (coordinates.size() == 2 && matrix)
      coordinate = arith::AddIOp::create(builder, loc, coordinate, matrix);
    coordinates.push_back(arith::IndexCastUIOp::create(
        builder, loc, builder.getI32Type(), coordinate));
  }
  return coordinates;
}

/// The address of row `row` of the slot of `tile` at `address`.
static Value advanceRows(OpBuilder &builder, Location loc, Value address,
                         const SharedTile &tile, Value row) {
  Value rowBytes = arith::ConstantIndexOp::create(builder, loc, tile.swizzle);
  return advanceBytes(builder, loc, address,
                      arith::MulIOp::create(builder, loc, row, rowBytes));
}

namespace {

struct LowerCopyBox : public OpConversionPattern<tile::CopyBoxOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::CopyBoxOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<MemRefType>(op.getBuffer().getType());
    const SharedTile tile(type);
    Role(op).runOnFirst(rewriter, loc, [&] {
      Value target = getSlot(rewriter, loc, type, adaptor.getBuffer().front(),
                             adaptor.getSlot().front());
      if (op.getRow())
        target =
            advanceRows(rewriter, loc, target, tile, adaptor.getRow().front());
      Value barrier =
          getScratchAddress(rewriter, loc, adaptor.getBarriers().front(),
                            rewriter.getI64Type(), adaptor.getIndex().front());
      Value blocks;
      if (op.getBlocks())
        blocks = arith::IndexCastUIOp::create(
            rewriter, loc, rewriter.getI16Type(), adaptor.getBlocks().front());
      for (int64_t panel = 0; panel < tile.getPanels(); ++panel)
        NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
            rewriter, loc,
            LLVM::AddrSpaceCastOp::create(
                rewriter, loc,
                LLVM::LLVMPointerType::get(
                    getContext(), static_cast<unsigned>(
                                      NVVM::NVVMMemorySpace::SharedCluster)),
                advanceBytes(rewriter, loc, target,
                             panel * tile.getPanelBytes())),
            adaptor.getOperand().front(),
            getCoordinates(rewriter, loc, op.getOperand().getType(),
                           adaptor.getIndices(), panel),
            barrier, /*im2colOffsets=*/ValueRange(), blocks,
            /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE,
            /*isCTAOnly=*/false, /*group=*/NVVM::CTAGroupKindAttr(),
            /*predicate=*/Value());
    });
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerStoreBox : public OpConversionPattern<tile::StoreBoxOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::StoreBoxOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = cast<MemRefType>(op.getBuffer().getType());
    const SharedTile tile(type);
    auto begin = [&](Value row) {
      Value source = getSlot(rewriter, loc, type, adaptor.getBuffer().front(),
                             adaptor.getSlot().front());
      Value matrix;
      if (row) {
        source = advanceRows(rewriter, loc, source, tile, row);
        if (auto ofMatrix = op->getAttrOfType<IntegerAttr>(kMatrixRows)) {
          Value rows =
              arith::ConstantIndexOp::create(rewriter, loc, ofMatrix.getInt());
          matrix = arith::DivUIOp::create(rewriter, loc, row, rows);
          row = arith::RemUIOp::create(rewriter, loc, row, rows);
        }
      }
      for (int64_t panel = 0; panel < tile.getPanels(); ++panel) {
        Value from =
            advanceBytes(rewriter, loc, source, panel * tile.getPanelBytes());
        SmallVector<Value> coordinates =
            getCoordinates(rewriter, loc, op.getOperand().getType(),
                           adaptor.getIndices(), panel, row, matrix);
        if (op.getAdd())
          NVVM::CpAsyncBulkTensorReduceOp::create(
              rewriter, loc, adaptor.getOperand().front(), from,
              NVVM::TMAReduxKind::ADD, NVVM::TMAStoreMode::TILE, coordinates,
              /*l2CacheHint=*/Value());
        else
          NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
              rewriter, loc, adaptor.getOperand().front(), from, coordinates,
              /*l2CacheHint=*/Value(), NVVM::TMAStoreMode::TILE,
              /*predicate=*/Value());
      }
      NVVM::CpAsyncBulkCommitGroupOp::create(rewriter, loc);
    };
    const Role role(op);
    if (op.getWarp()) {
      synchronizeWarp(rewriter, loc);
      Value rows = arith::ConstantIndexOp::create(
          rewriter, loc, type.getDimSize(1) * kWarp / role.getThreads());
      Value row = arith::MulIOp::create(rewriter, loc,
                                        role.getWarp(rewriter, loc), rows);
      role.runOnFirstOfWarps(rewriter, loc, [&] { begin(row); });
    } else {
      role.runOnFirst(rewriter, loc, [&] { begin(/*row=*/Value()); });
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct LowerWaitStores : public OpConversionPattern<tile::WaitStoresOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::WaitStoresOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto wait = [&] {
      NVVM::CpAsyncBulkWaitGroupOp::create(
          rewriter, loc, static_cast<uint32_t>(op.getPending()),
          /*read=*/rewriter.getUnitAttr());
    };
    if (op.getWarp()) {
      Role(op).runOnFirstOfWarps(rewriter, loc, wait);
      synchronizeWarp(rewriter, loc);
    } else {
      Role(op).runOnFirst(rewriter, loc, wait);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

} // namespace

void bastile::populateTensorCopyPatterns(const TypeConverter &converter,
                                         RewritePatternSet &patterns) {
  patterns.add<LowerCopyBox, LowerStoreBox, LowerWaitStores>(
      converter, patterns.getContext());
}
