//===- SpecializedProgram.h - A program whose warps have roles --*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ROLES_SPECIALIZEDPROGRAM_H
#define BASTILE_PASSES_ROLES_SPECIALIZEDPROGRAM_H

#include "dialect/Tile.h"

namespace bastile {

/// Builds the program `name` of `kernel` by `schedule`, in front of the kernel:
/// one thread of it copies, and warpgroups multiply. It is for calls of at most
/// `mostRows` rows, or of any number if these are 0.
tile::ProgramOp buildSpecializedProgram(tile::KernelOp kernel,
                                        tile::MatmulAttr schedule,
                                        llvm::StringRef name,
                                        int64_t mostRows = 0);

} // namespace bastile

#endif // BASTILE_PASSES_ROLES_SPECIALIZEDPROGRAM_H
