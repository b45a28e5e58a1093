//===- SinkConditions.h - Conditions next to what they decide ---*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_CODEGEN_SINKCONDITIONS_H
#define BASTILE_LIB_CODEGEN_SINKCONDITIONS_H

#include "llvm/IR/PassManager.h"

namespace bastile {

/// Moves comparisons of integers, and what joins them, next to their first use.
/// A tile's op is unrolled before the op that reads it, so that a mask would
/// have the conditions of all elements of a thread ahead of the first element
/// that is masked. A thread has seven predicates; ptxas keeps the others as
/// bits of registers, at two instructions to write a bit and one to read it.
/// For the same reason, blocks that read more conditions of another one than
/// there are predicates compare again.
class SinkConditionsPass : public llvm::PassInfoMixin<SinkConditionsPass> {
public:
  static llvm::PreservedAnalyses run(llvm::Function &function,
                                     llvm::FunctionAnalysisManager &manager);
};

/// Whether the pass had blocks of `module` compare again: what finds common
/// expressions would take that back.
bool repeatsConditions(const llvm::Module &module);

} // namespace bastile

#endif // BASTILE_LIB_CODEGEN_SINKCONDITIONS_H
