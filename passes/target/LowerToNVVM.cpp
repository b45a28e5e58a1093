//===- LowerToNVVM.cpp - Lower programs to the NVVM dialect ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Tile.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/schedule/RowsModel.h"
#include "passes/target/HeldRegisters.h"
#include "passes/target/LowerToLLVM.h"

namespace bastile {
#define GEN_PASS_DEF_LOWERTONVVM
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

/// Whether programs of the launch wait for each other.
static bool hasCounters(tile::ProgramOp op) {
  return llvm::any_of(llvm::seq(op.getNumArguments()), [&](unsigned index) {
    return bool(op.getArgCounters(index));
  });
}

/// Whether each program combines all rows, or all of those over some
/// dimensions: then `persistent` bounds no number of blocks, which is that of
/// the columns or of the rows that are left. A single one starts beside the
/// last blocks of the launch before.
static bool combinesRows(tile::ProgramOp op) {
  return op.getCombines() || op.getRowPrograms();
}

/// How many blocks of the program a multiprocessor has to have room for, which
/// bounds the registers of each. A program over named dimensions, and one that
/// stays on its multiprocessor, take what registers they can get.
static int32_t getLeastBlocks(tile::ProgramOp op) {
  if (op.getDimensions())
    return std::max<int64_t>(1, op.getSchedule().getPersistent());
  ScheduleFields fields(op.getRowsSchedule());
  const int32_t blocks = getMinBlocksPerMultiprocessor(fields);
  // Blocks that load ahead are all launched at once, and have to fit.
  return fields.getStages() > 1 ? blocks : countBlocksThatFit(op, blocks);
}

namespace {

struct LowerProgram : public OpConversionPattern<tile::ProgramOp> {
  LowerProgram(const TypeConverter &converter, MLIRContext *context,
               const DenseMap<StringAttr, int32_t> &leastBlocks)
      : OpConversionPattern(converter, context), leastBlocks(leastBlocks) {}

  LogicalResult
  matchAndRewrite(tile::ProgramOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    auto &converter = *getTypeConverter<LLVMTypeConverter>();
    TypeConverter::SignatureConversion signature(op.getNumArguments());
    if (failed(
            converter.convertSignatureArgs(op.getArgumentTypes(), signature)))
      return failure();
    auto type = LLVM::LLVMFunctionType::get(
        LLVM::LLVMVoidType::get(getContext()), signature.getConvertedTypes());
    auto func =
        LLVM::LLVMFuncOp::create(rewriter, op.getLoc(), op.getSymName(), type);
    func->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                  rewriter.getUnitAttr());
    tile::ScheduleInterface schedule = op.getSchedule();
    int32_t threads = schedule.getThreads();
    func->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                  rewriter.getDenseI32ArrayAttr({threads, 1, 1}));
    // Without a number, the assembler may leave half of the registers to
    // another block.
    const int32_t least = leastBlocks.lookup(op.getSymNameAttr());
    const bool isPersistent =
        op.getDimensions() ||
        (schedule.getPersistent() > 0 && !combinesRows(op));
    if (least > 1 || isPersistent)
      func->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    rewriter.getI32IntegerAttr(least));
    if (int32_t blocks = schedule.getBlocks(); blocks > 1)
      func->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                    rewriter.getDenseI32ArrayAttr({blocks, 1, 1}));
    for (unsigned index = 0; index < op.getNumArguments(); ++index)
      setArgumentAttributes(op, func, index);
    rewriter.inlineRegionBefore(op.getBody(), func.getBody(), func.end());
    if (failed(rewriter.convertRegionTypes(&func.getBody(), converter,
                                           &signature)))
      return failure();
    rewriter.setInsertionPointToStart(&func.getBody().front());
    if (op.getOverlapPrevious())
      NVVM::GriddepcontrolOp::create(rewriter, op.getLoc(),
                                     NVVM::GridDepActionKind::wait);
    if (op.getOverlapNext())
      NVVM::GriddepcontrolOp::create(
          rewriter, op.getLoc(), NVVM::GridDepActionKind::launch_dependents);
    rewriter.eraseOp(op);
    return success();
  }

  const DenseMap<StringAttr, int32_t> &leastBlocks;

  /// Marks operands as not aliasing each other, which lets loads pass stores,
  /// except where a result may take the memory of an operand, or where other
  /// programs write the operand while this one waits for them.
  static void setArgumentAttributes(tile::ProgramOp op, LLVM::LLVMFuncOp func,
                                    unsigned index) {
    if (!isa<LLVM::LLVMPointerType>(op.getArgumentTypes()[index]))
      return;
    Builder builder(op.getContext());
    if (op.getArgAttr(index, LLVM::LLVMDialect::getByValAttrName())) {
      for (NamedAttribute attribute : op.getArgAttrDict(index))
        if (attribute.getNameDialect())
          func.setArgAttr(index, attribute.getName(), attribute.getValue());
      func.setArgAttr(index, NVVM::NVVMDialect::getGridConstantAttrName(),
                      builder.getUnitAttr());
      return;
    }
    bool isReadOnly = op.isArgReadOnly(index);
    if (isReadOnly || !(op.getInPlace() || hasCounters(op)))
      func.setArgAttr(index, LLVM::LLVMDialect::getNoAliasAttrName(),
                      builder.getUnitAttr());
    if (isReadOnly)
      func.setArgAttr(index, LLVM::LLVMDialect::getReadonlyAttrName(),
                      builder.getUnitAttr());
    if (Attribute alignment =
            op.getArgAttr(index, tile::ProgramOp::kAlignmentAttrName))
      func.setArgAttr(index, LLVM::LLVMDialect::getAlignAttrName(), alignment);
  }
};

struct LowerReturn : public OpConversionPattern<tile::ReturnOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::ReturnOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::ReturnOp>(op, ValueRange());
    return success();
  }
};

/// Whether the program of `op`, lowered already or not, runs on clusters.
bool hasCluster(Operation *op) {
  if (auto program = op->getParentOfType<tile::ProgramOp>())
    return program.getSchedule().getBlocks() > 1;
  auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
  return function &&
         function->hasAttr(NVVM::NVVMDialect::getClusterDimAttrName());
}

/// Lowers the number of a program, or of all programs, to that of the blocks or
/// clusters along the grid's first dimension, the only one that reaches 2^31 -
/// 1 blocks.
template <typename SourceOp, typename BlockOp, typename ClusterOp>
struct LowerProgramNumber : public OpConversionPattern<SourceOp> {
  using OpConversionPattern<SourceOp>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(SourceOp op, typename SourceOp::Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type type = this->getTypeConverter()->convertType(op.getType());
    Type i32 = rewriter.getI32Type();
    Value narrow;
    if (hasCluster(op))
      narrow = ClusterOp::create(rewriter, op.getLoc(), i32);
    else
      narrow = BlockOp::create(rewriter, op.getLoc(), i32);
    rewriter.replaceOpWithNewOp<LLVM::ZExtOp>(op, type, narrow);
    return success();
  }
};

struct LowerToNVVMPass
    : public bastile::impl::LowerToNVVMBase<LowerToNVVMPass> {
  using LowerToNVVMBase::LowerToNVVMBase;

  void runOnOperation() override {
    if (failed(verifyIsLowered(getOperation())))
      return signalPassFailure();
    eraseLaunchPlan(getOperation());
    // Asked before the conversion, which takes programs apart.
    DenseMap<StringAttr, int32_t> leastBlocks;
    for (auto program : getOperation().getOps<tile::ProgramOp>())
      leastBlocks[program.getSymNameAttr()] = getLeastBlocks(program);
    auto addPatterns = [&](LLVMTypeConverter &converter,
                           RewritePatternSet &patterns,
                           ConversionTarget &legality) {
      configureGpuToNVVMTypeConverter(converter);
      legality.addLegalDialect<NVVM::NVVMDialect>();
      // These stay until LLVM IR is printed.
      legality.addLegalOp<tile::WgmmaOp, tile::WgmmaFenceOp, tile::WgmmaWaitOp,
                          tile::PollCountOp, tile::PublishCountOp>();
      populateGpuToNVVMConversionPatterns(converter, patterns);
      patterns.add<LowerProgram>(converter, &getContext(), leastBlocks);
      patterns.add<LowerReturn,
                   LowerProgramNumber<tile::ProgramIdOp, NVVM::BlockIdXOp,
                                      NVVM::ClusterIdXOp>,
                   LowerProgramNumber<tile::ProgramCountOp, NVVM::GridDimXOp,
                                      NVVM::ClusterDimXOp>>(converter,
                                                            &getContext());
    };
    if (failed(convertToLLVM(getOperation(), addPatterns)))
      signalPassFailure();
  }
};

} // namespace
