//===- ProgramSignature.h - What a program takes ----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TILE_PROGRAMSIGNATURE_H
#define BASTILE_PASSES_TILE_PROGRAMSIGNATURE_H

#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/tile/KernelTiling.h"

namespace bastile {

/// Creates the program of `tiling`, `columnBlocks` of which share a group of
/// rows, and leaves `builder` in its body, which is empty. The arguments are
/// the leading sizes, then the kernel's arguments and results in memory.
tile::ProgramOp createProgram(mlir::ImplicitLocOpBuilder &builder,
                              const KernelTiling &tiling, int64_t columnBlocks);

} // namespace bastile

#endif // BASTILE_PASSES_TILE_PROGRAMSIGNATURE_H
