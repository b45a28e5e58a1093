//===- TargetLookup.cpp - The target that a pass is told ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/TargetLookup.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Operation.h"

const bastile::Target *bastile::lookupTarget(mlir::Operation *op,
                                             llvm::StringRef name) {
  llvm::Expected<const Target &> target = Target::lookup(name);
  if (target)
    return &*target;
  op->emitError(llvm::toString(target.takeError()));
  return nullptr;
}
