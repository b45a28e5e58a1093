//===- LowerToLLVM.h - What lowering to both targets shares -----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TARGET_LOWERTOLLVM_H
#define BASTILE_PASSES_TARGET_LOWERTOLLVM_H

#include "dialect/Tile.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace bastile {

/// Adds the patterns and legality of one target to the common ones.
using AddPatternsFn = llvm::function_ref<void(mlir::LLVMTypeConverter &,
                                              mlir::RewritePatternSet &,
                                              mlir::ConversionTarget &)>;

/// Converts everything in `module` to the LLVM dialect with upstream's patterns
/// and those that `addPatterns` adds.
llvm::LogicalResult convertToLLVM(mlir::ModuleOp module,
                                  AddPatternsFn addPatterns);

/// Checks that `tile` has made programs of the kernels in `module`, and
/// `lower-tiles` of each a program of one thread.
llvm::LogicalResult verifyIsLowered(mlir::ModuleOp module);

/// Erases the functions that launch kernels, which the launch metadata
/// describes.
void eraseLaunchPlan(mlir::ModuleOp module);

} // namespace bastile

#endif // BASTILE_PASSES_TARGET_LOWERTOLLVM_H
