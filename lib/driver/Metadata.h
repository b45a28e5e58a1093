//===- Metadata.h - Describing launches -------------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_DRIVER_METADATA_H
#define BASTILE_LIB_DRIVER_METADATA_H

#include "bastile/Target.h"
#include "llvm/Support/JSON.h"

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace bastile {

/// Describes the functions of a module whose kernels are tiled, in the format
/// of docs/metadata.md.
llvm::json::Value buildMetadata(mlir::ModuleOp module, const Target &target);

} // namespace bastile

#endif // BASTILE_LIB_DRIVER_METADATA_H
