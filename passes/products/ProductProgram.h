//===- ProductProgram.h - The program of a product --------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PRODUCTS_PRODUCTPROGRAM_H
#define BASTILE_PASSES_PRODUCTS_PRODUCTPROGRAM_H

#include "dialect/Tile.h"

namespace bastile {

/// Builds the program of `kernel`, which multiplies, in front of the kernel. An
/// operand that has two parts in the kernel, such as both factors, becomes
/// another input of `launch` for each part but the first.
tile::ProgramOp buildProductProgram(tile::LaunchOp launch,
                                    tile::KernelOp kernel, bool onHost);

} // namespace bastile

#endif // BASTILE_PASSES_PRODUCTS_PRODUCTPROGRAM_H
