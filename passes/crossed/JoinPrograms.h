//===- JoinPrograms.h - Several kernels' programs as one --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_CROSSED_JOINPROGRAMS_H
#define BASTILE_PASSES_CROSSED_JOINPROGRAMS_H

#include "passes/crossed/CrossedKernels.h"

namespace bastile {

/// Replaces the launches of `crossed`, whose kernels have schedules and fit a
/// crossed program, by one, and the kernels by its programs, which it returns.
/// The inputs of the launches are those of the kernels' programs.
llvm::SmallVector<tile::ProgramOp>
joinCrossedKernels(const CrossedKernels &crossed, mlir::SymbolTable &symbols);

} // namespace bastile

#endif // BASTILE_PASSES_CROSSED_JOINPROGRAMS_H
