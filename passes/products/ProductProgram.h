//===- ProductProgram.h - The program of a product --------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PRODUCTS_PRODUCTPROGRAM_H
#define BASTILE_PASSES_PRODUCTS_PRODUCTPROGRAM_H

#include "dialect/Tile.h"

namespace bastile {

/// Builds the program `name` of `kernel` by `schedule`, in front of the kernel:
/// one all of whose threads copy and compute.
tile::ProgramOp buildProductProgram(tile::KernelOp kernel,
                                    tile::MatmulAttr schedule,
                                    llvm::StringRef name, bool onHost);

} // namespace bastile

#endif // BASTILE_PASSES_PRODUCTS_PRODUCTPROGRAM_H
