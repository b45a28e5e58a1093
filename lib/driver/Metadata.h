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
namespace func {
class FuncOp;
} // namespace func
} // namespace mlir

namespace bastile {

/// Describes the functions of a module whose kernels are tiled, in the format
/// of docs/metadata.md.
llvm::json::Value buildMetadata(mlir::ModuleOp module, const Target &target);

/// Describes what `func` takes and returns, whether it is lowered or not: its
/// name, and its inputs and outputs in the form that metadata has for inputs.
/// An output that is to take the memory of an input has its number as
/// "in_place".
llvm::json::Object describeSignature(mlir::func::FuncOp func);

} // namespace bastile

#endif // BASTILE_LIB_DRIVER_METADATA_H
