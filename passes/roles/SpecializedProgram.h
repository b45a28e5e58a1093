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
/// one thread of it copies, and warpgroups multiply.
tile::ProgramOp buildSpecializedProgram(tile::KernelOp kernel,
                                        tile::MatmulAttr schedule,
                                        llvm::StringRef name);

} // namespace bastile

#endif // BASTILE_PASSES_ROLES_SPECIALIZEDPROGRAM_H
