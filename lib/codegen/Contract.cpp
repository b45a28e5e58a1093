//===- Contract.cpp - How sums of products are rounded once ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/codegen/Contract.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace bastile;
using namespace llvm::PatternMatch;

/// The instructions of `module` that `isWanted` accepts.
static llvm::SmallVector<llvm::Instruction *>
collect(llvm::Module &module,
        llvm::function_ref<bool(const llvm::Instruction &)> isWanted) {
  llvm::SmallVector<llvm::Instruction *> found;
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (isWanted(instruction))
        found.push_back(&instruction);
  return found;
}

static void widenProducts(llvm::Module &module) {
  auto isNarrow = [](const llvm::Instruction &instruction) {
    return instruction.getOpcode() == llvm::Instruction::FMul &&
           instruction.getType()->getScalarSizeInBits() == 16;
  };
  for (llvm::Instruction *product : collect(module, isNarrow)) {
    llvm::IRBuilder<> builder(product);
    llvm::Type *narrow = product->getType();
    llvm::Type *wide = narrow->getWithNewType(builder.getFloatTy());
    llvm::Value *result =
        builder.CreateFMul(builder.CreateFPExt(product->getOperand(0), wide),
                           builder.CreateFPExt(product->getOperand(1), wide));
    product->replaceAllUsesWith(builder.CreateFPTrunc(result, narrow));
    product->eraseFromParent();
  }
}

static llvm::Value *multiplyAdd(llvm::IRBuilder<> &builder, llvm::Value *x,
                                llvm::Value *y, llvm::Value *addend) {
  return builder.CreateIntrinsic(llvm::Intrinsic::fmuladd, {x->getType()},
                                 {x, y, addend});
}

/// The contraction of a sum or a difference, or null if none of its operands is
/// a product. Of two products the first is contracted.
static llvm::Value *contractSum(llvm::Instruction *sum) {
  llvm::IRBuilder<> builder(sum);
  llvm::Value *first = sum->getOperand(0), *second = sum->getOperand(1);
  const bool subtracts = sum->getOpcode() == llvm::Instruction::FSub;
  llvm::Value *x, *y;
  auto isProduct = [&](llvm::Value *value, bool &isNegative) {
    isNegative = match(value, m_FNeg(m_FMul(m_Value(x), m_Value(y))));
    return isNegative || match(value, m_FMul(m_Value(x), m_Value(y)));
  };
  bool isNegative;
  if (isProduct(first, isNegative))
    return multiplyAdd(builder, isNegative ? builder.CreateFNeg(x) : x, y,
                       subtracts ? builder.CreateFNeg(second) : second);
  if (isProduct(second, isNegative))
    return multiplyAdd(
        builder, isNegative != subtracts ? builder.CreateFNeg(x) : x, y, first);
  return nullptr;
}

/// Lets code generation contract the sum of a vector's elements with the
/// products that these are. Such a sum has no fixed order, so no bits depend on
/// it.
static void licenseContraction(llvm::CallInst *sum) {
  sum->setHasAllowContract(true);
  llvm::Value *value = sum->getArgOperand(1);
  while (match(value, m_Intrinsic<llvm::Intrinsic::fmuladd>(
                          m_Value(), m_Value(), m_Value())))
    value = llvm::cast<llvm::CallInst>(value)->getArgOperand(2);
  if (match(value, m_FMul(m_Value(), m_Value())))
    llvm::cast<llvm::Instruction>(value)->setHasAllowContract(true);
}

void bastile::contract(llvm::Module &module) {
  widenProducts(module);
  // Those that allow reciprocals are exact differences
  // (`passes/analysis/ExactDifferences.h`).
  auto isSum = [](const llvm::Instruction &instruction) {
    return (instruction.getOpcode() == llvm::Instruction::FAdd ||
            instruction.getOpcode() == llvm::Instruction::FSub) &&
           instruction.getType()->getScalarSizeInBits() >= 32 &&
           !instruction.hasAllowReciprocal();
  };
  for (llvm::Instruction *sum : collect(module, isSum))
    if (llvm::Value *contraction = contractSum(sum)) {
      sum->replaceAllUsesWith(contraction);
      llvm::RecursivelyDeleteTriviallyDeadInstructions(sum);
    }
  auto isUnordered = [](const llvm::Instruction &instruction) {
    auto *call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    return call &&
           call->getIntrinsicID() == llvm::Intrinsic::vector_reduce_fadd &&
           call->hasAllowReassoc();
  };
  for (llvm::Instruction *sum : collect(module, isUnordered))
    licenseContraction(llvm::cast<llvm::CallInst>(sum));
}
