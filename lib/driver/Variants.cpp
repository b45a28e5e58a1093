//===- Variants.cpp - Variants of programs --------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Variants.h"

#include "dialect/ElementBytes.h"
#include "dialect/OperandMemory.h"
#include "passes/fragments/Fragments.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace bastile;

/// A copy of `program`, whose operands have at most `alignment`.
static tile::ProgramOp copyFor(tile::ProgramOp program, int64_t alignment,
                               SymbolTable &symbols) {
  tile::ProgramOp copy = program.clone();
  copy.setSymName(
      (program.getSymName() + "_align" + llvm::Twine(alignment)).str());
  copy.removeAlignmentsAttr();
  const StringAttr name(
      StringAttr::get(copy.getContext(), tile::ProgramOp::kAlignmentAttrName));
  for (unsigned index = copy.getNumSizes(); index < copy.getNumArguments();
       ++index) {
    // Elements lie at multiples of their own bytes.
    Type memory = tile::getMemoryType(copy.getArgumentTypes()[index]);
    const int64_t own = std::max(alignment, getElementBytes(memory));
    if (copy.getArgAlignment(index) > own)
      copy.setArgAttr(index, name,
                      Builder(copy.getContext()).getI64IntegerAttr(own));
  }
  symbols.insert(copy);
  return copy;
}

void bastile::addAlignedVariants(ModuleOp module) {
  SymbolTable symbols(module);
  DenseMap<StringAttr, SmallVector<Attribute>> variants;
  for (auto program : llvm::to_vector(module.getOps<tile::ProgramOp>())) {
    std::optional<ArrayRef<int64_t>> alignments = program.getAlignments();
    if (!alignments)
      continue;
    SmallVector<Attribute> &all = variants[program.getSymNameAttr()];
    for (int64_t alignment : *alignments)
      all.push_back(
          FlatSymbolRefAttr::get(copyFor(program, alignment, symbols)));
    program.removeAlignmentsAttr();
  }
  if (variants.empty())
    return;
  module.walk([&](tile::LaunchOp launch) {
    SmallVector<Attribute> kernels;
    for (auto name : launch.getKernels().getAsRange<FlatSymbolRefAttr>()) {
      kernels.push_back(name);
      llvm::append_range(kernels, variants.lookup(name.getAttr()));
    }
    launch.setKernelsAttr(ArrayAttr::get(module.getContext(), kernels));
  });
}

void bastile::eraseOtherVariants(ModuleOp module, const Target &target) {
  SetVector<Operation *> erased, needed;
  module.walk([&](tile::LaunchOp launch) {
    SmallVector<Attribute> kept;
    SetVector<Operation *> others;
    for (auto name : launch.getKernels().getAsRange<FlatSymbolRefAttr>()) {
      auto program = module.lookupSymbol<tile::ProgramOp>(name.getAttr());
      if (program && !hasInstructions(target, program))
        others.insert(program);
      else
        kept.push_back(name);
    }
    if (kept.empty()) {
      needed.insert(others.begin(), others.end());
      return;
    }
    launch.setKernelsAttr(ArrayAttr::get(module.getContext(), kept));
    erased.insert(others.begin(), others.end());
  });
  for (Operation *program : erased)
    if (!needed.contains(program))
      program->erase();
}
