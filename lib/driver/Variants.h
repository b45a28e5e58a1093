//===- Variants.h - Variants of programs ------------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_DRIVER_VARIANTS_H
#define BASTILE_LIB_DRIVER_VARIANTS_H

#include "bastile/Target.h"
#include "mlir/IR/BuiltinOps.h"

namespace bastile {

/// Makes the variants that the programs of `module` ask for (`alignments`), and
/// names them in launches behind the programs that they are variants of.
void addAlignedVariants(mlir::ModuleOp module);

/// Erases the programs whose instructions `target` lacks from the launches of
/// `module`. Where a launch names no other, they stay, for the pass that lowers
/// them to say what is missing.
void eraseOtherVariants(mlir::ModuleOp module, const Target &target);

} // namespace bastile

#endif // BASTILE_LIB_DRIVER_VARIANTS_H
