//===- AdvanceAddresses.cpp - Addresses that go along with loops ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/codegen/AdvanceAddresses.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/PatternMatch.h"

using namespace llvm;
using namespace llvm::PatternMatch;
using namespace bastile;

namespace {

/// A row that takes a new value in each iteration of a loop.
struct Row {
  Value *value = nullptr;
  /// The loop's own row, which `step` is added to.
  PHINode *current = nullptr;
  Value *step = nullptr;
  /// Whether `value` is the next row, or the current one where that is the
  /// last.
  Value *hasNext = nullptr;
};

/// An address of `row` times `stride` elements behind `base`.
struct RowAddress {
  GetElementPtrInst *address = nullptr;
  Value *base = nullptr, *stride = nullptr;
};

class LoopAddresses {
public:
  LoopAddresses(Loop &loop, LoopInfo &loops, DominatorTree &dominators)
      : loop(loop), loops(loops), dominators(dominators) {}

  bool run();

private:
  bool findRow(Value *value, Row &row) const;
  /// Whether the loop goes on exactly where `hasNext` holds.
  bool goesOnIf(Value *hasNext) const;
  void advance(const Row &row, ArrayRef<RowAddress> addresses);

  Loop &loop;
  LoopInfo &loops;
  DominatorTree &dominators;
};

} // namespace

bool LoopAddresses::goesOnIf(Value *hasNext) const {
  auto *branch = dyn_cast<BranchInst>(loop.getLoopLatch()->getTerminator());
  if (!branch || !branch->isConditional() ||
      branch->getSuccessor(0) != loop.getHeader())
    return false;
  if (branch->getCondition() == hasNext)
    return true;
  // Rows are far fewer than 2^63, so that their comparisons agree with and
  // without a sign.
  auto *lhs = dyn_cast<ICmpInst>(hasNext);
  auto *rhs = dyn_cast<ICmpInst>(branch->getCondition());
  return lhs && rhs && lhs->getOperand(0) == rhs->getOperand(0) &&
         lhs->getOperand(1) == rhs->getOperand(1) &&
         ICmpInst::getUnsignedPredicate(lhs->getPredicate()) ==
             ICmpInst::getUnsignedPredicate(rhs->getPredicate());
}

bool LoopAddresses::findRow(Value *value, Row &row) const {
  row.value = value;
  Value *current = value, *next = nullptr;
  if (match(value,
            m_Select(m_Value(row.hasNext), m_Value(next), m_Value(current))) &&
      !goesOnIf(row.hasNext))
    return false;
  row.current = dyn_cast<PHINode>(current);
  if (!row.current || row.current->getParent() != loop.getHeader())
    return false;
  Value *after = row.current->getIncomingValueForBlock(loop.getLoopLatch());
  if (next && next != after)
    return false;
  return match(after, m_c_Add(m_Specific(row.current), m_Value(row.step))) &&
         loop.isLoopInvariant(row.step);
}

/// Replaces addresses of `row` by such that the loop carries along.
void LoopAddresses::advance(const Row &row, ArrayRef<RowAddress> addresses) {
  BasicBlock *preheader = loop.getLoopPreheader();
  BasicBlock *header = loop.getHeader(), *latch = loop.getLoopLatch();
  IRBuilder<> ahead(preheader->getTerminator());
  IRBuilder<> atHeader(header, header->begin());
  Value *first = row.current->getIncomingValueForBlock(preheader);
  Value *step = row.step;
  if (row.hasNext) {
    auto *definition = cast<Instruction>(row.value);
    IRBuilder<> behind(definition->getParent(),
                       std::next(definition->getIterator()));
    step = behind.CreateSelect(row.hasNext, step, ahead.getInt64(0));
  }
  auto createAddress = [](IRBuilder<> &builder, const RowAddress &found,
                          Value *base, Value *rows) {
    return builder.CreateGEP(found.address->getSourceElementType(), base,
                             builder.CreateMul(rows, found.stride));
  };
  for (const RowAddress &found : addresses) {
    PHINode *address = atHeader.CreatePHI(found.base->getType(), 2);
    address->addIncoming(createAddress(ahead, found, found.base, first),
                         preheader);
    IRBuilder<> builder(found.address);
    Value *next = createAddress(builder, found, address, step);
    address->addIncoming(next, latch);
    found.address->replaceAllUsesWith(row.hasNext ? next : address);
  }
  for (const RowAddress &found : addresses)
    found.address->eraseFromParent();
}

bool LoopAddresses::run() {
  constexpr unsigned globalMemory = 1;
  BasicBlock *latch = loop.getLoopLatch();
  if (!latch || !loop.getLoopPreheader())
    return false;
  MapVector<Value *, SmallVector<RowAddress>> rows;
  for (BasicBlock *block : loop.blocks()) {
    if (loops.getLoopFor(block) != &loop || !dominators.dominates(block, latch))
      continue;
    for (Instruction &instruction : *block) {
      RowAddress found;
      found.address = dyn_cast<GetElementPtrInst>(&instruction);
      Value *lhs = nullptr, *rhs = nullptr;
      if (!found.address || found.address->getNumIndices() != 1 ||
          found.address->getAddressSpace() != globalMemory ||
          !loop.isLoopInvariant(found.address->getPointerOperand()) ||
          !match(found.address->getOperand(1),
                 m_Mul(m_Value(lhs), m_Value(rhs))))
        continue;
      found.base = found.address->getPointerOperand();
      if (loop.isLoopInvariant(lhs))
        std::swap(lhs, rhs);
      if (loop.isLoopInvariant(lhs) || !loop.isLoopInvariant(rhs))
        continue;
      found.stride = rhs;
      rows[lhs].push_back(found);
    }
  }
  bool hasChanged = false;
  for (auto &[value, addresses] : rows) {
    Row row;
    if (!findRow(value, row))
      continue;
    advance(row, addresses);
    hasChanged = true;
  }
  return hasChanged;
}

PreservedAnalyses AdvanceAddressesPass::run(Function &function,
                                            FunctionAnalysisManager &manager) {
  auto &loops = manager.getResult<LoopAnalysis>(function);
  auto &dominators = manager.getResult<DominatorTreeAnalysis>(function);
  bool hasChanged = false;
  for (Loop *loop : loops.getLoopsInPreorder())
    if (!loop->isInnermost())
      hasChanged |= LoopAddresses(*loop, loops, dominators).run();
  if (!hasChanged)
    return PreservedAnalyses::all();
  PreservedAnalyses preserved;
  preserved.preserveSet<CFGAnalyses>();
  return preserved;
}
