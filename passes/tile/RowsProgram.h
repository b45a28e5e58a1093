//===- RowsProgram.h - The program of a kernel on rows ----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TILE_ROWSPROGRAM_H
#define BASTILE_PASSES_TILE_ROWSPROGRAM_H

#include "passes/tile/KernelTiling.h"

namespace bastile {

/// Builds the program of `variant` of `kernel`, a kernel on tensors of `shape`,
/// in front of the kernel.
tile::ProgramOp buildRowsProgram(tile::KernelOp kernel,
                                 const KernelSpace &space,
                                 const KernelShape &shape,
                                 const TileVariant &variant);

} // namespace bastile

#endif // BASTILE_PASSES_TILE_ROWSPROGRAM_H
