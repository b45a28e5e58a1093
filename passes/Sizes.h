//===- Sizes.h - Where the sizes of tensors come from -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_SIZES_H
#define BASTILE_PASSES_SIZES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace bastile {

/// The function's argument whose leading sizes `value`, a row tensor, has.
mlir::Value getSizeRoot(mlir::Value value);

/// Lets the ops in `block` that are like a row tensor, for its sizes alone, be
/// like what `choose` gives for the argument that has these sizes. No value
/// should be computed, kept or waited for because of its sizes.
void replaceSizeSources(mlir::Block &block,
                        llvm::function_ref<mlir::Value(mlir::Value)> choose);

} // namespace bastile

#endif // BASTILE_PASSES_SIZES_H
