//===- SourceLimits.h - What the parser has no limit for --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_SOURCELIMITS_H
#define BASTILE_SOURCELIMITS_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/LogicalResult.h"

namespace llvm {
class SourceMgr;
} // namespace llvm

namespace bastile {

/// Refuses, with a diagnostic, a source whose main file would take more stack
/// or memory to parse than a process has, or that MLIR's parser dies of.
llvm::LogicalResult checkLimits(const llvm::SourceMgr &source,
                                mlir::MLIRContext &context);

} // namespace bastile

#endif // BASTILE_SOURCELIMITS_H
