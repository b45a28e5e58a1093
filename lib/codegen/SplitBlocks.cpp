//===- SplitBlocks.cpp - Splitting of very long blocks --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/codegen/SplitBlocks.h"
#include "llvm/IR/BasicBlock.h"
#include "llvm/IR/Function.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Pass.h"

using namespace bastile;

namespace {

/// Several times the length of the longest blocks in common kernels, so that
/// those stay as they are.
constexpr size_t kMaxInstructions = 2048;

class SplitBlocks : public llvm::FunctionPass {
public:
  SplitBlocks() : FunctionPass(id) {}

  llvm::StringRef getPassName() const override { return "Split long blocks"; }

  bool runOnFunction(llvm::Function &function) override {
    bool changed = false;
    // The part that is split off comes next, and is split again.
    for (llvm::BasicBlock &block : function) {
      if (block.size() <= kMaxInstructions)
        continue;
      auto at = std::next(block.begin(), kMaxInstructions);
      // Beyond the entry, an alloca would have no fixed place on the stack.
      while (llvm::isa<llvm::PHINode, llvm::AllocaInst>(*at))
        ++at;
      if (at->isTerminator())
        continue;
      block.splitBasicBlock(at);
      changed = true;
    }
    return changed;
  }

private:
  /// LLVM knows passes by the addresses of such members.
  static char id;
};

char SplitBlocks::id = 0;

} // namespace

llvm::FunctionPass *bastile::createSplitBlocks() { return new SplitBlocks; }
