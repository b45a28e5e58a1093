//===- SinkConditions.cpp - Conditions next to what they decide -----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/codegen/SinkConditions.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/Instructions.h"

using namespace llvm;
using namespace bastile;

/// The attribute of functions whose conditions are repeated.
static constexpr StringLiteral kRepeats = "bastile-repeats-conditions";

bool bastile::repeatsConditions(const Module &module) {
  return llvm::any_of(module, [](const Function &function) {
    return function.hasFnAttribute(kRepeats);
  });
}

/// A block with as many conditions or fewer is left alone: most are read soon,
/// and ptxas finds seven predicates for the others.
static constexpr unsigned kMostHeld = 16;

/// Whether `instruction` takes some bits of an integer, only to compare them.
static bool takesBits(const Instruction *instruction) {
  return instruction->getOpcode() == Instruction::And &&
         isa<Constant>(instruction->getOperand(1)) &&
         llvm::all_of(instruction->users(),
                      [](const User *user) { return isa<ICmpInst>(user); });
}

/// Whether `value` is a comparison of integers, takes the bits for one, or
/// joins comparisons.
static bool isCondition(const Value *value) {
  const auto *instruction = dyn_cast<Instruction>(value);
  if (!instruction || !instruction->getType()->isIntOrIntVectorTy())
    return false;
  if (!instruction->getType()->isIntOrIntVectorTy(1))
    return takesBits(instruction);
  return isa<ICmpInst>(instruction) || isa<SelectInst>(instruction) ||
         instruction->isBitwiseLogicOp();
}

/// How many predicates `condition` takes.
static unsigned countPredicates(const Value *condition) {
  if (!condition->getType()->isIntOrIntVectorTy(1))
    return 0;
  const auto *vector = dyn_cast<FixedVectorType>(condition->getType());
  return vector ? vector->getNumElements() : 1;
}

/// Computes `condition` once more, ahead of `reader`, with the conditions that
/// it joins.
static Instruction *cloneAhead(Instruction *condition, Instruction *reader) {
  Instruction *copy = condition->clone();
  copy->insertBefore(reader->getIterator());
  for (Use &operand : copy->operands())
    if (isCondition(operand.get()))
      operand.set(cloneAhead(cast<Instruction>(operand.get()), copy));
  return copy;
}

/// Gives each block that reads `condition` one of its own.
static void repeatForReaders(Instruction *condition) {
  MapVector<BasicBlock *, SmallVector<Use *>> uses;
  for (Use &use : condition->uses()) {
    auto *reader = cast<Instruction>(use.getUser());
    if (reader->getParent() != condition->getParent() && !isa<PHINode>(reader))
      uses[reader->getParent()].push_back(&use);
  }
  for (auto &[block, ofBlock] : uses) {
    auto *first = cast<Instruction>(ofBlock.front()->getUser());
    for (Use *use : ofBlock)
      if (auto *reader = cast<Instruction>(use->getUser());
          reader->comesBefore(first))
        first = reader;
    Instruction *copy = cloneAhead(condition, first);
    for (Use *use : ofBlock)
      use->set(copy);
  }
}

/// Repeats the conditions of blocks that have more of them for other blocks
/// than fit predicates.
static bool repeatConditions(Function &function) {
  SmallVector<Instruction *> repeated;
  for (BasicBlock &block : function) {
    SmallVector<Instruction *> shared;
    unsigned count = 0;
    for (Instruction &instruction : block)
      if (isCondition(&instruction) &&
          instruction.isUsedOutsideOfBlock(&block)) {
        shared.push_back(&instruction);
        count += countPredicates(&instruction);
      }
    if (count > kMostHeld)
      repeated.append(shared);
  }
  for (Instruction *condition : repeated)
    repeatForReaders(condition);
  // What joins conditions comes behind them.
  for (Instruction *condition : llvm::reverse(repeated))
    if (condition->use_empty())
      condition->eraseFromParent();
  if (repeated.empty())
    return false;
  function.addFnAttr(kRepeats);
  return true;
}

/// Moves the conditions that `block` alone reads next to their first reader, if
/// they are more than fit predicates.
static bool sinkConditions(BasicBlock &block) {
  unsigned predicates = 0;
  for (const Instruction &instruction : block)
    predicates += isCondition(&instruction) ? countPredicates(&instruction) : 0;
  if (predicates <= kMostHeld)
    return false;
  // From the end on, so that what joins conditions is in its place ahead of
  // them.
  DenseMap<const Instruction *, size_t> places;
  size_t count = 0;
  for (Instruction &instruction : llvm::reverse(block))
    places[&instruction] = count++;
  bool hasMoved = false;
  for (Instruction &instruction :
       llvm::make_early_inc_range(llvm::reverse(block))) {
    if (!isCondition(&instruction))
      continue;
    Instruction *first = nullptr;
    bool isLocal = true;
    for (User *user : instruction.users()) {
      auto *reader = cast<Instruction>(user);
      isLocal &= reader->getParent() == &block && !isa<PHINode>(reader);
      if (isLocal && (!first || places.at(reader) > places.at(first)))
        first = reader;
    }
    if (!isLocal || !first || instruction.getNextNode() == first)
      continue;
    instruction.moveBefore(first->getIterator());
    // Those that are ahead of `first` come in any order.
    places[&instruction] = places.at(first);
    hasMoved = true;
  }
  return hasMoved;
}

PreservedAnalyses
SinkConditionsPass::run(Function &function,
                        FunctionAnalysisManager & /*manager*/) {
  bool hasChanged = repeatConditions(function);
  for (BasicBlock &block : function)
    hasChanged |= sinkConditions(block);
  if (!hasChanged)
    return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
