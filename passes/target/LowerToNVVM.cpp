//===- LowerToNVVM.cpp - Lower kernels to the NVVM dialect ----------------===//
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
#include "passes/schedule/Occupancy.h"
#include "passes/target/LowerToLLVM.h"

namespace bastile {
#define GEN_PASS_DEF_LOWERTONVVM
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

namespace {

struct LowerKernel : public OpConversionPattern<tile::KernelOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(tile::KernelOp op, OpAdaptor,
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
    int32_t threads = op.getSchedule()->getThreads();
    func->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                  rewriter.getDenseI32ArrayAttr({threads, 1, 1}));
    if (int32_t least = getMinBlocksPerMultiprocessor(*op.getSchedule());
        least > 1)
      func->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    rewriter.getI32IntegerAttr(least));
    if (int32_t blocks = op.getSchedule()->getBlocks(); blocks > 1)
      func->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(),
                    rewriter.getDenseI32ArrayAttr({blocks, 1, 1}));
    for (unsigned index = 0; index < op.getNumArguments(); ++index)
      setArgumentAttributes(op, func, index);
    rewriter.inlineRegionBefore(op.getBody(), func.getBody(), func.end());
    if (failed(rewriter.convertRegionTypes(&func.getBody(), converter,
                                           &signature)))
      return failure();
    rewriter.setInsertionPointToStart(&func.getBody().front());
    if (op->hasAttr(tile::TileDialect::kOverlapPreviousAttrName))
      NVVM::GriddepcontrolOp::create(rewriter, op.getLoc(),
                                     NVVM::GridDepActionKind::wait);
    if (op->hasAttr(tile::TileDialect::kOverlapNextAttrName))
      NVVM::GriddepcontrolOp::create(
          rewriter, op.getLoc(), NVVM::GridDepActionKind::launch_dependents);
    rewriter.eraseOp(op);
    return success();
  }

  /// Marks operands as not aliasing each other, which lets loads pass stores,
  /// except where a result may take the memory of an operand.
  static void setArgumentAttributes(tile::KernelOp op, LLVM::LLVMFuncOp func,
                                    unsigned index) {
    if (!isa<LLVM::LLVMPointerType>(op.getArgumentTypes()[index]))
      return;
    Builder builder(op.getContext());
    bool isReadOnly =
        bool(op.getArgAttr(index, tile::TileDialect::kReadOnlyAttrName));
    if (isReadOnly || !op->hasAttr(tile::TileDialect::kInPlaceAttrName))
      func.setArgAttr(index, LLVM::LLVMDialect::getNoAliasAttrName(),
                      builder.getUnitAttr());
    if (isReadOnly)
      func.setArgAttr(index, LLVM::LLVMDialect::getReadonlyAttrName(),
                      builder.getUnitAttr());
    if (Attribute alignment =
            op.getArgAttr(index, tile::TileDialect::kAlignmentAttrName))
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

/// Whether the kernel of `op`, lowered already or not, runs on clusters.
bool hasCluster(Operation *op) {
  if (auto kernel = op->getParentOfType<tile::KernelOp>())
    return kernel.getSchedule()->getBlocks() > 1;
  auto function = op->getParentOfType<LLVM::LLVMFuncOp>();
  return function &&
         function->hasAttr(NVVM::NVVMDialect::getClusterDimAttrName());
}

/// Lowers the number of a program, or of all programs, to that of the blocks or
/// clusters along the grid's first dimension, the only one that reaches 2^31 -
/// 1 blocks.
template <typename SourceOp, typename BlockOp, typename ClusterOp>
struct LowerProgramOp : public OpConversionPattern<SourceOp> {
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

/// Checks that the schedule of `kernel` says how many threads a block has.
LogicalResult verifyThreads(tile::KernelOp kernel) {
  std::optional<tile::ScheduleAttr> schedule = kernel.getSchedule();
  if (schedule && schedule->getThreads() > 0)
    return success();
  return kernel.emitError("has no number of threads; run the 'schedule' pass "
                          "first");
}

struct LowerToNVVMPass
    : public bastile::impl::LowerToNVVMBase<LowerToNVVMPass> {
  using LowerToNVVMBase::LowerToNVVMBase;

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<tile::KernelOp>())
      if (failed(verifyIsLowered(kernel)) || failed(verifyThreads(kernel)))
        return signalPassFailure();
    eraseLaunchPlan(getOperation());
    auto addPatterns = [&](LLVMTypeConverter &converter,
                           RewritePatternSet &patterns,
                           ConversionTarget &legality) {
      configureGpuToNVVMTypeConverter(converter);
      legality.addLegalDialect<NVVM::NVVMDialect>();
      populateGpuToNVVMConversionPatterns(converter, patterns);
      patterns.add<LowerKernel, LowerReturn,
                   LowerProgramOp<tile::ProgramIdOp, NVVM::BlockIdXOp,
                                  NVVM::ClusterIdXOp>,
                   LowerProgramOp<tile::ProgramCountOp, NVVM::GridDimXOp,
                                  NVVM::ClusterDimXOp>>(converter,
                                                        &getContext());
    };
    if (failed(convertToLLVM(getOperation(), addPatterns)))
      signalPassFailure();
  }
};

} // namespace
