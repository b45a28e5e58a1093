//===- NarrowComparisons.cpp - Comparisons of 32 bits ---------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/codegen/NarrowComparisons.h"

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;
using namespace bastile;

/// Whether the upper half of `value`, a number of 64 bits, is 0.
static bool isNarrow(Value *value, const DataLayout &layout) {
  return computeKnownBits(value, layout).countMinLeadingZeros() >= 32;
}

/// The lower halves of the operands of `instruction`, if the upper ones are 0.
static bool narrow(Instruction &instruction, Value *(&halves)[2]) {
  const DataLayout &layout = instruction.getDataLayout();
  for (unsigned index : {0, 1})
    if (!instruction.getOperand(index)->getType()->isIntegerTy(64) ||
        !isNarrow(instruction.getOperand(index), layout))
      return false;
  IRBuilder<> builder(&instruction);
  for (unsigned index : {0, 1})
    halves[index] = builder.CreateTrunc(instruction.getOperand(index),
                                        builder.getInt32Ty());
  return true;
}

PreservedAnalyses NarrowComparisonsPass::run(Function &function,
                                             FunctionAnalysisManager &) {
  bool hasChanged = false;
  for (Instruction &instruction :
       make_early_inc_range(instructions(function))) {
    Value *halves[2];
    Value *replacement = nullptr;
    if (auto *comparison = dyn_cast<ICmpInst>(&instruction)) {
      if (!narrow(instruction, halves))
        continue;
      IRBuilder<> builder(&instruction);
      replacement = builder.CreateICmp(comparison->getUnsignedPredicate(),
                                       halves[0], halves[1]);
    } else if (auto *extremum = dyn_cast<MinMaxIntrinsic>(&instruction)) {
      if (extremum->isSigned() || !narrow(instruction, halves))
        continue;
      IRBuilder<> builder(&instruction);
      replacement = builder.CreateZExt(
          builder.CreateBinaryIntrinsic(extremum->getIntrinsicID(), halves[0],
                                        halves[1]),
          instruction.getType());
    } else {
      continue;
    }
    instruction.replaceAllUsesWith(replacement);
    instruction.eraseFromParent();
    hasChanged = true;
  }
  if (!hasChanged)
    return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
