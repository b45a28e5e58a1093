//===- LowerToLLVM.cpp - What lowering to both targets shares -------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/target/LowerToLLVM.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/ValueOrder.h"

using namespace mlir;

namespace bastile {

void eraseLaunchPlan(ModuleOp module) {
  for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    func.erase();
}

/// Checks that `lower-tiles` has made `program` a program of one thread.
static LogicalResult verifyProgram(tile::ProgramOp program) {
  for (auto [index, type] : llvm::enumerate(program.getArgumentTypes()))
    if (!type.isIndex() && !LLVM::isCompatibleType(type))
      return program.emitError("argument ")
             << index << " of type " << type
             << " is not lowered; run the 'lower-tiles' pass first";
  // Each element of a vector may become an op, so long vectors would take long
  // to compile.
  constexpr int64_t maxElements = 4096;
  auto result = program.walk([maxElements](Operation *op) {
    for (Type type : op->getResultTypes())
      if (auto vector = dyn_cast<VectorType>(type);
          vector && vector.getNumElements() > maxElements) {
        op->emitOpError("has a vector of type ")
            << vector << "; at most " << maxElements
            << " elements are compiled";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult verifyIsLowered(ModuleOp module) {
  for (auto kernel : module.getOps<tile::KernelOp>())
    return kernel.emitError("is not tiled; run the 'tile' pass first");
  for (auto program : module.getOps<tile::ProgramOp>())
    if (failed(verifyProgram(program)))
      return failure();
  return success();
}

/// Lowers structured control flow to branches before the rest, because the
/// conversion to the LLVM dialect knows only branches.
static LogicalResult lowerControlFlow(ModuleOp module) {
  MLIRContext *context = module.getContext();
  RewritePatternSet patterns(context);
  populateSCFToControlFlowConversionPatterns(patterns);
  ConversionTarget legality(*context);
  legality.addIllegalDialect<scf::SCFDialect>();
  legality.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  return applyPartialConversion(module, legality, std::move(patterns));
}

LogicalResult convertToLLVM(ModuleOp module, AddPatternsFn addPatterns) {
  if (failed(verifyOrder(module)) || failed(lowerControlFlow(module)))
    return failure();
  MLIRContext *context = module.getContext();
  LowerToLLVMOptions options(context);
  options.overrideIndexBitwidth(64);
  LLVMTypeConverter converter(context, options);
  RewritePatternSet patterns(context);
  ConversionTarget legality(*context);
  legality.addLegalDialect<LLVM::LLVMDialect>();
  legality.addLegalOp<ModuleOp>();

  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  // These patterns come ahead of those that call a math library.
  populateMathToLLVMConversionPatterns(converter, patterns,
                                       /*approximateLog1p=*/true,
                                       /*benefit=*/2);
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  vector::populateVectorBroadcastLoweringPatterns(patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  addPatterns(converter, patterns, legality);
  return applyFullConversion(module, legality, std::move(patterns));
}

} // namespace bastile
