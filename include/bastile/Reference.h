//===- Reference.h - What functions compute without rounding ----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_REFERENCE_H
#define BASTILE_REFERENCE_H

#include "bastile/Compiler.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"

namespace bastile {

/// A module to measure the errors of another one by.
struct Reference {
  /// The same functions with float64 in place of every narrower float type:
  /// arguments, results, constants and all that lies between, so that casts in
  /// the middle of a formula round no more. It can be compiled for the host.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// How many values of each function are rounded to 16 bits on the way to
  /// another value. Each of them costs about one more rounding of the result
  /// than the reference knows of.
  llvm::StringMap<unsigned> innerRoundings;
};

/// Builds the reference of `module`, which holds functions as written (see
/// `Stage::Tile`) and is left as it is, with what `gradients` adds to it. Errors
/// are reported as diagnostics.
llvm::FailureOr<Reference>
buildReference(mlir::ModuleOp module, const GradientOptions &gradients = {});

} // namespace bastile

#endif // BASTILE_REFERENCE_H
