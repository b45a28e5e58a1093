//===- AdvanceAddresses.cpp - Addresses that go along with loops ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/codegen/AdvanceAddresses.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace llvm::PatternMatch;
using namespace bastile;

namespace {

/// An address of `row` times `stride` elements behind `base`.
struct RowAddress {
  GetElementPtrInst *address = nullptr;
  Value *base = nullptr, *row = nullptr, *stride = nullptr;
};

class LoopAddresses {
public:
  LoopAddresses(Loop &loop, LoopInfo &loops, DominatorTree &dominators)
      : loop(loop), loops(loops), dominators(dominators) {}

  bool run();

private:
  bool loadsAhead() const;
  SmallVector<RowAddress> findAddresses() const;
  void multiplyBytes(const RowAddress &found) const;
  bool advance(const RowAddress &found) const;

  Loop &loop;
  LoopInfo &loops;
  DominatorTree &dominators;
};

} // namespace

/// Whether the loop loads the next row while it computes on the current one,
/// which it loads once more where that is the last.
bool LoopAddresses::loadsAhead() const {
  return any_of(loop.getHeader()->phis(), [&](PHINode &row) {
    Value *next = row.getIncomingValueForBlock(loop.getLoopLatch());
    return any_of(row.users(), [&](User *user) {
      return match(user,
                   m_Select(m_Value(), m_Specific(next), m_Specific(&row)));
    });
  });
}

SmallVector<RowAddress> LoopAddresses::findAddresses() const {
  constexpr unsigned globalMemory = 1;
  SmallVector<RowAddress> addresses;
  for (BasicBlock *block : loop.blocks()) {
    if (loops.getLoopFor(block) != &loop)
      continue;
    for (Instruction &instruction : *block) {
      RowAddress found;
      found.address = dyn_cast<GetElementPtrInst>(&instruction);
      if (!found.address || found.address->getNumIndices() != 1 ||
          found.address->getAddressSpace() != globalMemory ||
          !loop.isLoopInvariant(found.address->getPointerOperand()) ||
          !match(found.address->getOperand(1),
                 m_Mul(m_Value(found.row), m_Value(found.stride))))
        continue;
      found.base = found.address->getPointerOperand();
      if (loop.isLoopInvariant(found.row))
        std::swap(found.row, found.stride);
      if (!loop.isLoopInvariant(found.row) &&
          loop.isLoopInvariant(found.stride))
        addresses.push_back(found);
    }
  }
  return addresses;
}

/// Multiplies the row by a distance in bytes, which is found ahead of the loop.
void LoopAddresses::multiplyBytes(const RowAddress &found) const {
  IRBuilder<> ahead(loop.getLoopPreheader()->getTerminator());
  IRBuilder<> builder(found.address);
  const uint64_t bytes = found.address->getDataLayout().getTypeAllocSize(
      found.address->getSourceElementType());
  Value *distance = ahead.CreateMul(
      found.stride, ConstantInt::get(found.stride->getType(), bytes));
  found.address->replaceAllUsesWith(
      builder.CreatePtrAdd(found.base, builder.CreateMul(found.row, distance)));
  RecursivelyDeleteTriviallyDeadInstructions(found.address);
}

/// Replaces the address by one that the loop carries along, if the row takes
/// the same step in each iteration.
bool LoopAddresses::advance(const RowAddress &found) const {
  BasicBlock *preheader = loop.getLoopPreheader();
  BasicBlock *header = loop.getHeader(), *latch = loop.getLoopLatch();
  auto *row = dyn_cast<PHINode>(found.row);
  Value *step = nullptr;
  if (!row || row->getParent() != header ||
      !match(row->getIncomingValueForBlock(latch),
             m_c_Add(m_Specific(row), m_Value(step))) ||
      !loop.isLoopInvariant(step) ||
      !dominators.dominates(found.address->getParent(), latch))
    return false;
  auto createAddress = [&](IRBuilder<> &builder, Value *base, Value *rows) {
    return builder.CreateGEP(found.address->getSourceElementType(), base,
                             builder.CreateMul(rows, found.stride));
  };
  IRBuilder<> ahead(preheader->getTerminator());
  IRBuilder<> atHeader(header, header->begin());
  PHINode *address = atHeader.CreatePHI(found.base->getType(), 2);
  address->addIncoming(createAddress(ahead, found.base,
                                     row->getIncomingValueForBlock(preheader)),
                       preheader);
  IRBuilder<> builder(found.address);
  address->addIncoming(createAddress(builder, address, step), latch);
  found.address->replaceAllUsesWith(address);
  RecursivelyDeleteTriviallyDeadInstructions(found.address);
  return true;
}

bool LoopAddresses::run() {
  if (!loop.getLoopLatch() || !loop.getLoopPreheader())
    return false;
  const bool hasBytes = loadsAhead();
  if (!hasBytes && loop.isInnermost())
    return false;
  bool hasChanged = false;
  for (const RowAddress &found : findAddresses()) {
    if (hasBytes)
      multiplyBytes(found);
    hasChanged |= hasBytes || advance(found);
  }
  return hasChanged;
}

PreservedAnalyses AdvanceAddressesPass::run(Function &function,
                                            FunctionAnalysisManager &manager) {
  auto &loops = manager.getResult<LoopAnalysis>(function);
  auto &dominators = manager.getResult<DominatorTreeAnalysis>(function);
  bool hasChanged = false;
  for (Loop *loop : loops.getLoopsInPreorder())
    hasChanged |= LoopAddresses(*loop, loops, dominators).run();
  if (!hasChanged)
    return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
