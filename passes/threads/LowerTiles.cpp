//===- LowerTiles.cpp - Turn tiles into the vectors of a thread -----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/threads/LowerTiles.h"

#include "dialect/OperandMemory.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/Passes.h"
#include "passes/TargetLookup.h"
#include "passes/fragments/Fragments.h"
#include "passes/schedule/ThreadGrid.h"
#include "passes/threads/ClusterExchange.h"

namespace bastile {
#define GEN_PASS_DEF_LOWERTILES
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

ThreadPosition bastile::getThreadPosition(OpBuilder &builder, Location loc,
                                          tile::BlockedAttr layout) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  int64_t rows = layout.getThreadRows(), columns = layout.getThreadColumns();
  if (rows * columns == 1)
    return {constant(0), constant(0)};
  Value thread = getThreadId(builder, loc);
  if (rows == 1)
    return {constant(0), thread};
  if (columns == 1)
    return {thread, constant(0)};
  Value count = constant(columns);
  Value column = arith::RemUIOp::create(builder, loc, thread, count);
  if (columns % kWarp != 0)
    return {arith::DivUIOp::create(builder, loc, thread, count), column};
  Value warps = constant(columns / kWarp);
  return {arith::DivUIOp::create(builder, loc, getWarpId(builder, loc), warps),
          column};
}

Value bastile::getBlockRank(OpBuilder &builder, Location loc,
                            tile::BlockedAttr layout) {
  return createBlockRank(builder, loc, layout.getBlocks());
}

/// `getPieceColumn` of a tile that has an element for each column, not for each
/// group.
static Value getUngroupedColumn(OpBuilder &builder, Location loc,
                                tile::BlockedAttr layout, int64_t repeat) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  Value offset = constant(repeat * layout.getColumnsPerDeal());
  if (layout.getThreadColumns() > 1) {
    Value column = getThreadPosition(builder, loc, layout).column;
    column = arith::MulIOp::create(builder, loc, column,
                                   constant(layout.getVector()));
    offset = arith::AddIOp::create(builder, loc, column, offset);
  }
  if (layout.getBlocks() > 1) {
    Value part = arith::MulIOp::create(
        builder, loc, getBlockRank(builder, loc, layout),
        constant(layout.getThreadColumns() * layout.getVector()));
    offset = arith::AddIOp::create(builder, loc, part, offset);
  }
  return offset;
}

Value bastile::getPieceColumn(OpBuilder &builder, Location loc,
                              RankedTensorType tile, int64_t repeat) {
  tile::BlockedAttr layout = getLayout(tile);
  Value column = getUngroupedColumn(builder, loc, layout, repeat);
  if (layout.getGroup() == 1)
    return column;
  return arith::DivUIOp::create(
      builder, loc, column,
      arith::ConstantIndexOp::create(builder, loc, layout.getGroup()));
}

Value bastile::isGroupStart(OpBuilder &builder, Location loc,
                            tile::BlockedAttr layout, int64_t repeat) {
  Value group = arith::ConstantIndexOp::create(builder, loc, layout.getGroup());
  Value within = arith::RemUIOp::create(
      builder, loc, getUngroupedColumn(builder, loc, layout, repeat), group);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, within,
                               arith::ConstantIndexOp::create(builder, loc, 0));
}

bool bastile::isSurelyInside(tile::BlockedAttr layout, int64_t repeat,
                             Value column, int64_t limit) {
  std::optional<int64_t> first = getConstantIntValue(column);
  int64_t columns = llvm::divideCeil((repeat + 1) * layout.getColumnsPerDeal(),
                                     layout.getGroup());
  return first && *first + columns <= limit;
}

namespace {

/// Lowers any elementwise op on tiles to one op for each piece.
struct LowerElementwise : public ConversionPattern {
  LowerElementwise(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1,
                          context) {}

  LogicalResult
  matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                  ConversionPatternRewriter &rewriter) const override {
    if (!OpTrait::hasElementwiseMappableTraits(op) || op->getNumResults() != 1)
      return failure();
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (!type || !getAnyLayout(type))
      return failure();
    SmallVector<Value> pieces;
    int64_t count = getAnyLayout(type).getNumPieces(type.getShape());
    for (int64_t piece = 0; piece < count; ++piece) {
      OperationState state(op->getLoc(), op->getName());
      for (ValueRange operand : operands)
        // A scalar operand (a select's condition) serves all pieces.
        state.operands.push_back(operand.size() == 1 ? operand[0]
                                                     : operand[piece]);
      state.addTypes(getPieceType(type));
      state.addAttributes(op->getAttrs());
      pieces.push_back(rewriter.create(state)->getResult(0));
    }
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

struct LowerCopy : public OpConversionPattern<tile::CopyOp> {
  LowerCopy(const TypeConverter &converter, MLIRContext *context)
      : OpConversionPattern(converter, context, /*benefit=*/2) {}

  LogicalResult
  matchAndRewrite(tile::CopyOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithMultiple(op, {adaptor.getInput()});
    return success();
  }
};

struct LowerConstant : public OpConversionPattern<arith::ConstantOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(arith::ConstantOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = dyn_cast<RankedTensorType>(op.getType());
    auto splat = dyn_cast<SplatElementsAttr>(op.getValue());
    if (!type || !getAnyLayout(type) || !splat)
      return failure();
    Value piece =
        createConstantPiece(rewriter, op.getLoc(), getPieceType(type),
                            cast<TypedAttr>(splat.getSplatValue<Attribute>()));
    SmallVector<Value> pieces(getAnyLayout(type).getNumPieces(type.getShape()),
                              piece);
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

struct LowerBroadcast : public OpConversionPattern<tile::BroadcastOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::BroadcastOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    tile::BlockedAttr layout = getLayout(type);
    if (!layout)
      return failure();
    ValueRange source = adaptor.getSource();
    // A scalar repeats in no direction, a tile as often as its shape says.
    int64_t sourceRows = 1, sourceColumns = 1;
    if (auto tile = dyn_cast<RankedTensorType>(op.getSource().getType())) {
      sourceRows = layout.getRowRepeats(tile.getShape());
      sourceColumns = getLayout(tile).getColumnRepeats(tile.getShape());
    }
    Type pieceType = getPieceType(type);
    SmallVector<Value> spread(source);
    for (Value &piece : spread)
      if (piece.getType() != pieceType)
        piece = repeat(rewriter, op.getLoc(), pieceType, piece);
    SmallVector<Value> pieces;
    int64_t columns = layout.getColumnRepeats(type.getShape());
    for (int64_t row = 0; row < layout.getRowRepeats(type.getShape()); ++row)
      for (int64_t column = 0; column < columns; ++column)
        pieces.push_back(spread[(row % sourceRows) * sourceColumns +
                                column % sourceColumns]);
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }

  /// Broadcasts a bfloat16 as an integer: LLVM's host code generation takes its
  /// insertion into a vector through float32, rounding by a call.
  static Value repeat(OpBuilder &builder, Location loc, Type type,
                      Value scalar) {
    if (!scalar.getType().isBF16())
      return vector::BroadcastOp::create(builder, loc, type, scalar);
    Type bits = builder.getI16Type();
    scalar = arith::BitcastOp::create(builder, loc, bits, scalar);
    Value repeated = vector::BroadcastOp::create(
        builder, loc, cast<VectorType>(type).clone(bits), scalar);
    return arith::BitcastOp::create(builder, loc, type, repeated);
  }
};

struct LowerMask : public OpConversionPattern<tile::MaskOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::MaskOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    tile::BlockedAttr layout = getLayout(type);
    if (!layout || op.getMisalignment())
      return failure();
    Location loc = op.getLoc();
    Value outside = createConstantPiece(rewriter, loc, getPieceType(type),
                                        cast<TypedAttr>(op.getOther()));
    // The vector width divides the row, so a piece lies inside or outside as a
    // whole.
    Value limit = arith::ConstantIndexOp::create(rewriter, loc, op.getLimit());
    int64_t columns = layout.getColumnRepeats(type.getShape());
    SmallVector<Value> isInside;
    for (int64_t column = 0; column < columns; ++column) {
      if (isSurelyInside(layout, column, op.getColumn(), op.getLimit())) {
        isInside.push_back({});
        continue;
      }
      Value position =
          arith::AddIOp::create(rewriter, loc, adaptor.getColumn()[0],
                                getPieceColumn(rewriter, loc, type, column));
      isInside.push_back(arith::CmpIOp::create(
          rewriter, loc, arith::CmpIPredicate::ult, position, limit));
    }
    SmallVector<Value> pieces;
    for (auto [index, piece] : llvm::enumerate(adaptor.getInput())) {
      Value condition = isInside[index % columns];
      pieces.push_back(condition ? arith::SelectOp::create(
                                       rewriter, loc, condition, piece, outside)
                                       .getResult()
                                 : piece);
    }
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

/// Spreads a number that each thread has over the elements of its vectors.
struct LowerSpread : public OpConversionPattern<tile::SpreadOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::SpreadOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (!getLayout(type))
      return failure();
    Type pieceType = getPieceType(type);
    int64_t columns = getLayout(type).getColumnRepeats(type.getShape());
    SmallVector<Value> pieces;
    for (Value number : adaptor.getInput()) {
      if (isa<VectorType>(pieceType))
        number = vector::BroadcastOp::create(rewriter, op.getLoc(), pieceType,
                                             number);
      pieces.append(columns, number);
    }
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

struct LowerIota : public OpConversionPattern<tile::IotaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::IotaOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = op.getType();
    tile::BlockedAttr layout = getLayout(type);
    if (!layout || op.getMisalignment())
      return failure();
    Location loc = op.getLoc();
    int64_t columns = layout.getColumnRepeats(type.getShape());
    SmallVector<Value> numbers;
    for (int64_t repeat = 0; repeat < columns; ++repeat) {
      Value column = type.getDimSize(1) > 1
                         ? getPieceColumn(rewriter, loc, type, repeat)
                         : arith::ConstantIndexOp::create(rewriter, loc, 0);
      if (op.getColumn())
        column = arith::AddIOp::create(rewriter, loc, adaptor.getColumn()[0],
                                       column);
      column = arith::IndexCastUIOp::create(rewriter, loc,
                                            type.getElementType(), column);
      numbers.push_back(createCount(rewriter, loc, column, getPieceType(type)));
    }
    // Every row has the same numbers.
    SmallVector<Value> pieces;
    for (int64_t row = 0; row < layout.getRowRepeats(type.getShape()); ++row)
      llvm::append_range(pieces, numbers);
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

struct LowerIotaRows : public OpConversionPattern<tile::IotaRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::IotaRowsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    RankedTensorType type = op.getType();
    tile::BlockedAttr layout = getLayout(type);
    if (!layout)
      return failure();
    Location loc = op.getLoc();
    Value first =
        arith::AddIOp::create(rewriter, loc, adaptor.getRow()[0],
                              getThreadPosition(rewriter, loc, layout).row);
    Type pieceType = getPieceType(type);
    SmallVector<Value> pieces;
    for (int64_t repeat = 0; repeat < layout.getRowRepeats(type.getShape());
         ++repeat) {
      Value offset = arith::ConstantIndexOp::create(
          rewriter, loc, repeat * layout.getThreadRows());
      Value row = arith::AddIOp::create(rewriter, loc, first, offset);
      row = arith::IndexCastUIOp::create(rewriter, loc, type.getElementType(),
                                         row);
      if (row.getType() != pieceType)
        row = vector::BroadcastOp::create(rewriter, loc, pieceType, row);
      pieces.append(layout.getColumnRepeats(type.getShape()), row);
    }
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

struct LowerMaskRows : public OpConversionPattern<tile::MaskRowsOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::MaskRowsOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    tile::BlockedAttr layout = getLayout(type);
    if (!layout)
      return failure();
    Location loc = op.getLoc();
    Value beyond = createConstantPiece(rewriter, loc, getPieceType(type),
                                       cast<TypedAttr>(op.getOther()));
    Value first =
        arith::AddIOp::create(rewriter, loc, adaptor.getRow()[0],
                              getThreadPosition(rewriter, loc, layout).row);
    SmallVector<Value> isRow;
    for (int64_t repeat = 0; repeat < layout.getRowRepeats(type.getShape());
         ++repeat) {
      Value offset = arith::ConstantIndexOp::create(
          rewriter, loc, repeat * layout.getThreadRows());
      Value row = arith::AddIOp::create(rewriter, loc, first, offset);
      isRow.push_back(arith::CmpIOp::create(rewriter, loc,
                                            arith::CmpIPredicate::ult, row,
                                            adaptor.getLimit()[0]));
    }
    int64_t columns = layout.getColumnRepeats(type.getShape());
    SmallVector<Value> pieces;
    for (auto [index, piece] : llvm::enumerate(adaptor.getInput()))
      pieces.push_back(arith::SelectOp::create(
          rewriter, loc, isRow[index / columns], piece, beyond));
    rewriter.replaceOpWithMultiple(op, {ValueRange(pieces)});
    return success();
  }
};

/// Lowers the arguments of a program: an operand in memory becomes its address
/// and the strides of its leading dimensions.
struct LowerProgram : public OpConversionPattern<tile::ProgramOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ProgramOp op, OneToNOpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    TypeConverter::SignatureConversion signature(op.getNumArguments());
    if (failed(getTypeConverter()->convertSignatureArgs(op.getArgumentTypes(),
                                                        signature)))
      return failure();
    SmallVector<Attribute> attributes;
    for (BlockArgument argument : op.getArguments()) {
      size_t count = signature.getInputMapping(argument.getArgNumber())->size;
      attributes.push_back(getAttributes(op, argument));
      attributes.append(count - 1, rewriter.getDictionaryAttr({}));
    }
    rewriter.applySignatureConversion(&op.getBody().front(), signature,
                                      getTypeConverter());
    rewriter.modifyOpInPlace(op, [&] {
      op.setFunctionType(
          rewriter.getFunctionType(signature.getConvertedTypes(), {}));
      op.setArgAttrsAttr(rewriter.getArrayAttr(attributes));
    });
    return success();
  }

  /// The attributes of the address that stands for `argument`. The description
  /// of an operand that is copied by boxes is passed by value.
  static DictionaryAttr getAttributes(tile::ProgramOp op,
                                      BlockArgument argument) {
    MLIRContext *context = op.getContext();
    NamedAttrList attributes(op.getArgAttrDict(argument.getArgNumber()));
    if (isa<tile::TensorMapType>(argument.getType())) {
      constexpr int64_t bytes = 128, alignment = 64;
      Builder builder(context);
      attributes.set(
          LLVM::LLVMDialect::getByValAttrName(),
          TypeAttr::get(LLVM::LLVMArrayType::get(builder.getI8Type(), bytes)));
      attributes.set(LLVM::LLVMDialect::getAlignAttrName(),
                     builder.getI64IntegerAttr(alignment));
    }
    return attributes.getDictionary(context);
  }
};

/// Checks that the ops on tiles of `module` stand in programs, whose threads
/// they are dealt to.
static LogicalResult verifyInPrograms(ModuleOp module) {
  for (Operation &root : *module.getBody()) {
    if (isa<tile::ProgramOp>(root))
      continue;
    auto result = root.walk([](Operation *op) {
      if (!isa_and_present<tile::TileDialect>(op->getDialect()) ||
          isa<tile::LaunchOp>(op) || tile::isPlaceOfOperands(op))
        return WalkResult::advance();
      op->emitOpError("must be part of a 'tile.program'");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}

struct LowerTilesPass : public bastile::impl::LowerTilesBase<LowerTilesPass> {
  using LowerTilesBase::LowerTilesBase;

  void runOnOperation() override {
    const Target *found = lookupTarget(getOperation(), this->target);
    if (!found)
      return signalPassFailure();
    unsigned addressSpace =
        found->isHost() ? 0
                        : static_cast<unsigned>(NVVM::NVVMMemorySpace::Global);

    if (failed(verifyInPrograms(getOperation())))
      return signalPassFailure();
    for (auto program : getOperation().getOps<tile::ProgramOp>()) {
      if (program.getDimensions() && failed(verifyRoles(program, *found)))
        return signalPassFailure();
      joinExchanges(program);
      insertClusterMeeting(program);
      nameDimensions(program);
      program.walk([](tile::RolesOp roles) { startTurns(roles); });
    }

    TypeConverter converter;
    converter.addConversion([](Type type) { return type; });
    converter.addConversion(
        [](RankedTensorType type,
           SmallVectorImpl<Type> &pieces) -> std::optional<LogicalResult> {
          tile::LayoutInterface layout = getAnyLayout(type);
          if (!layout)
            return std::nullopt;
          pieces.assign(layout.getNumPieces(type.getShape()),
                        getPieceType(type));
          return success();
        });
    converter.addConversion([](tile::BarriersType type) -> Type {
      return getBufferPointerType(type.getContext());
    });
    converter.addConversion([](tile::TensorMapType type) -> Type {
      return LLVM::LLVMPointerType::get(type.getContext());
    });
    // Registers that a product writes are never part of a vector.
    converter.addConversion(
        [](tile::PendingType type,
           SmallVectorImpl<Type> &parts) -> std::optional<LogicalResult> {
          RankedTensorType tile = type.getTile();
          tile::LayoutInterface layout = getAnyLayout(tile);
          parts.assign(layout.getNumPieces(tile.getShape()) *
                           layout.getPieceElements(tile.getShape()),
                       tile.getElementType());
          return success();
        });
    converter.addConversion([&](MemRefType type, SmallVectorImpl<Type> &parts)
                                -> std::optional<LogicalResult> {
      if (isa_and_present<gpu::AddressSpaceAttr, tile::SharedAttr,
                          tile::HeldAttr>(type.getMemorySpace())) {
        parts.push_back(getBufferPointerType(&getContext()));
        return success();
      }
      parts.push_back(LLVM::LLVMPointerType::get(&getContext(), addressSpace));
      if (!type.getLayout().isIdentity())
        parts.append(type.getRank() - 1, IndexType::get(&getContext()));
      return success();
    });

    const DenseSet<Operation *> takingTurns =
        findSumsTakingTurns(getOperation());
    RewritePatternSet patterns(&getContext());
    patterns.add<LowerElementwise, LowerCopy, LowerConstant, LowerBroadcast,
                 LowerMask, LowerMaskRows, LowerSpread, LowerIota,
                 LowerIotaRows, LowerProgram>(converter, &getContext());
    populateMemoryPatterns(converter, patterns);
    populateNamedMemoryPatterns(converter, patterns);
    populateTransposedLoadPatterns(converter, patterns);
    populateLoadDotPatterns(converter, patterns,
                            found->isHost() ? found->vectorBytes : 0);
    populateReducePatterns(converter, patterns);
    populateReduceRowsPatterns(converter, patterns, takingTurns);
    populateMisalignedPatterns(converter, patterns);
    populateOneHotPatterns(converter, patterns);
    populateSplitPatterns(converter, patterns);
    populateBufferPatterns(converter, patterns);
    populateFragmentPatterns(converter, patterns,
                             /*storesMatrices=*/found->computeCapability >= 90);
    populateFragmentMemoryPatterns(converter, patterns);
    populateConvertLayoutPatterns(converter, patterns);
    populateColumnBoundPatterns(converter, patterns);
    populateExtremesPatterns(converter, patterns);
    populateNumbersPatterns(converter, patterns);
    populateBarrierPatterns(converter, patterns);
    populateCounterPatterns(converter, patterns,
                            /*copiesBoxes=*/found->hasBulkCopy());
    populateTensorCopyPatterns(converter, patterns);
    populateTileCopyPatterns(converter, patterns);
    populateHeldPatterns(converter, patterns);
    populateDotPatterns(converter, patterns);
    populateMatrixPatterns(converter, patterns);

    ConversionTarget legality(getContext());
    legality.markUnknownOpDynamicallyLegal([&](Operation *op) {
      // Functions that launch programs stay on tensors.
      if (!op->getParentOfType<tile::ProgramOp>())
        return true;
      return converter.isLegal(op);
    });
    // These ops have no operands, and would be taken for converted.
    legality.addIllegalOp<tile::CommitCopiesOp, tile::WaitCopiesOp,
                          tile::SynchronizeOp, tile::AnnounceBlockOp,
                          tile::AwaitBlocksOp, tile::FenceSharedOp,
                          tile::TakeTurnOp, tile::PassTurnOp, tile::BlockRankOp,
                          tile::WaitStoresOp, tile::WaitDotsOp>();
    legality.addDynamicallyLegalOp<tile::ProgramOp>([&](tile::ProgramOp op) {
      return converter.isLegal(op.getArgumentTypes());
    });
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns,
                                                         legality);
    if (failed(applyPartialConversion(getOperation(), legality,
                                      std::move(patterns))))
      return signalPassFailure();
    for (auto program : getOperation().getOps<tile::ProgramOp>())
      lowerRoles(program);
  }
};

} // namespace
