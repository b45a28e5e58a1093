//===- CrossedProgram.h - One program of two kernels ------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_CROSSED_CROSSEDPROGRAM_H
#define BASTILE_PASSES_CROSSED_CROSSEDPROGRAM_H

#include "bastile/Target.h"
#include "passes/crossed/CrossedKernels.h"

namespace bastile {

/// Whether one program can have what `crossed` compute where the kernel over
/// rows has the schedule `overRows`, and that over columns `overColumns`; null
/// ones have none that would do.
bool fitsCrossedProgram(const CrossedKernels &crossed,
                        tile::MatmulAttr overRows, tile::MatmulAttr overColumns,
                        const Target &target);

/// Builds the program `name` of both kernels, in front of the one over rows. It
/// takes what programs of that kernel do, and behind it the sums that the
/// kernel over columns returns, which are `sums`, an operand of some program of
/// that kernel, with `marks` by the names of dimensions in the other one; and
/// counters.
tile::ProgramOp buildCrossedProgram(const CrossedKernels &crossed,
                                    mlir::BlockArgument sums,
                                    mlir::DictionaryAttr marks,
                                    llvm::StringRef name);

} // namespace bastile

#endif // BASTILE_PASSES_CROSSED_CROSSEDPROGRAM_H
