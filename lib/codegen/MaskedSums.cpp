//===- MaskedSums.cpp - Sums that leave out what is masked ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/codegen/MaskedSums.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace bastile;
using namespace llvm::PatternMatch;

/// Whether `value` is what a loop has added up: a number that begins as 0 and
/// that `sum` becomes. Such a number is never -0, which adding 0 would change.
static bool isSumOfLoop(llvm::Value *value, llvm::Instruction *sum) {
  auto *phi = llvm::dyn_cast<llvm::PHINode>(value);
  return phi && llvm::all_of(phi->incoming_values(), [&](llvm::Value *from) {
           return from == sum || match(from, m_PosZeroFP());
         });
}

/// Rewrites `sum` if it adds a masked term to what a loop has added up.
static void addWhereMasked(llvm::Instruction *sum) {
  llvm::Value *total, *mask, *term;
  if (!match(sum, m_c_FAdd(m_Value(total),
                           m_OneUse(m_Select(m_Value(mask), m_Value(term),
                                             m_AnyZeroFP())))) ||
      !isSumOfLoop(total, sum))
    return;
  llvm::IRBuilder<> builder(sum);
  builder.setFastMathFlags(sum->getFastMathFlags());
  llvm::Value *added = builder.CreateFAdd(total, term);
  sum->replaceAllUsesWith(builder.CreateSelect(mask, added, total));
  llvm::RecursivelyDeleteTriviallyDeadInstructions(sum);
}

void bastile::addWhereMasked(llvm::Module &module) {
  llvm::SmallVector<llvm::Instruction *> sums;
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (instruction.getOpcode() == llvm::Instruction::FAdd)
        sums.push_back(&instruction);
  for (llvm::Instruction *sum : sums)
    ::addWhereMasked(sum);
}
