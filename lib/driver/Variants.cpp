//===- Variants.cpp - Variants that a target cannot run -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Variants.h"

#include "dialect/Tile.h"
#include "passes/fragments/Fragments.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace bastile;

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
