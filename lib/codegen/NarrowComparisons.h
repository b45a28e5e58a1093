//===- NarrowComparisons.h - Comparisons of 32 bits -------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_CODEGEN_NARROWCOMPARISONS_H
#define BASTILE_LIB_CODEGEN_NARROWCOMPARISONS_H

#include "llvm/IR/PassManager.h"

namespace bastile {

/// Compares numbers of 64 bits by their lower halves where the upper ones are
/// known to be 0, as those of lanes, warps and columns are. A GPU compares the
/// halves one after the other, and neither LLVM nor the assembler leaves the
/// upper ones out.
class NarrowComparisonsPass
    : public llvm::PassInfoMixin<NarrowComparisonsPass> {
public:
  static llvm::PreservedAnalyses run(llvm::Function &function,
                                     llvm::FunctionAnalysisManager &manager);
};

} // namespace bastile

#endif // BASTILE_LIB_CODEGEN_NARROWCOMPARISONS_H
