//===- TargetLookup.h - The target that a pass is told --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TARGETLOOKUP_H
#define BASTILE_PASSES_TARGETLOOKUP_H

#include "bastile/Target.h"

namespace mlir {
class Operation;
} // namespace mlir

namespace bastile {

/// The target called `name`, or null after an error at `op`.
const Target *lookupTarget(mlir::Operation *op, llvm::StringRef name);

} // namespace bastile

#endif // BASTILE_PASSES_TARGETLOOKUP_H
