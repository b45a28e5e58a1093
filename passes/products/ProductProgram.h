//===- ProductProgram.h - The programs of a product -------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PRODUCTS_PRODUCTPROGRAM_H
#define BASTILE_PASSES_PRODUCTS_PRODUCTPROGRAM_H

#include "dialect/Tile.h"

namespace bastile {

/// Builds the programs of `kernel`, which multiplies, in front of the kernel:
/// variants of each other, the fastest first. An operand that has two parts in
/// the kernel, such as both factors, becomes another input of `launch` for each
/// part but the first.
llvm::SmallVector<tile::ProgramOp>
buildProductPrograms(tile::LaunchOp launch, tile::KernelOp kernel, bool onHost);

/// Builds the program `name` of `kernel` whose warps have roles: one thread
/// copies, and warpgroups multiply.
tile::ProgramOp buildSpecializedProgram(tile::KernelOp kernel,
                                        tile::MatmulAttr schedule,
                                        llvm::StringRef name);

} // namespace bastile

#endif // BASTILE_PASSES_PRODUCTS_PRODUCTPROGRAM_H
