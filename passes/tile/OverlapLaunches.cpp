//===- OverlapLaunches.cpp - Start a launch before the last one ends ------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/TargetLookup.h"

namespace bastile {
#define GEN_PASS_DEF_OVERLAPLAUNCHES
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

namespace {

struct OverlapLaunchesPass
    : public bastile::impl::OverlapLaunchesBase<OverlapLaunchesPass> {
  using OverlapLaunchesBase::OverlapLaunchesBase;

  void runOnOperation() override {
    const Target *found = lookupTarget(getOperation(), this->target);
    if (!found)
      return signalPassFailure();
    if (!found->hasDependentLaunch())
      return;
    SymbolTable symbols(getOperation());
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      tile::LaunchOp previous;
      for (auto launch : func.getOps<tile::LaunchOp>()) {
        if (previous && isResident(previous, symbols) &&
            isTiled(launch, symbols) && reads(launch, previous))
          overlap(previous, launch, symbols);
        previous = launch;
      }
    }
  }

  static SmallVector<tile::ProgramOp> getPrograms(tile::LaunchOp launch,
                                                  const SymbolTable &symbols) {
    return llvm::map_to_vector(launch.getNames(), [&](StringRef name) {
      return symbols.lookup<tile::ProgramOp>(name);
    });
  }

  /// Whether `launch` runs programs over rows. Those over named dimensions do
  /// not wait for the launch before theirs.
  static bool isTiled(tile::LaunchOp launch, const SymbolTable &symbols) {
    return llvm::all_of(getPrograms(launch, symbols),
                        [](tile::ProgramOp program) {
                          return program && !program.getDimensions();
                        });
  }

  /// Whether all programs of a launch run at once, so that programs of the next
  /// launch that come early take no place from them.
  static bool isResident(tile::LaunchOp launch, const SymbolTable &symbols) {
    return isTiled(launch, symbols) &&
           llvm::all_of(getPrograms(launch, symbols),
                        [](tile::ProgramOp program) {
                          return !program.getCombines() &&
                                 program.getSchedule().getPersistent() > 0;
                        });
  }

  static bool reads(tile::LaunchOp launch, tile::LaunchOp previous) {
    return llvm::any_of(launch.getInputs(), [&](Value input) {
      return input.getDefiningOp() == previous;
    });
  }

  static void overlap(tile::LaunchOp previous, tile::LaunchOp launch,
                      const SymbolTable &symbols) {
    previous.setOverlapNext(true);
    for (tile::ProgramOp program : getPrograms(previous, symbols))
      program.setOverlapNext(true);
    for (tile::ProgramOp program : getPrograms(launch, symbols)) {
      program.setOverlapPrevious(true);
      for (auto [index, input] : llvm::enumerate(launch.getInputs()))
        if (input.getDefiningOp() == previous)
          markWritten(program, program.getNumSizes() + index);
    }
  }

  /// Until the program has waited for the launch before it, the operands are
  /// still written to, and no load may be moved ahead of the wait: so they are
  /// not marked read-only.
  static void markWritten(tile::ProgramOp program, unsigned argument) {
    program.removeArgAttr(argument, tile::ProgramOp::kReadOnlyAttrName);
    for (Operation *user : program.getArgument(argument).getUsers())
      if (auto load = dyn_cast<tile::LoadOp>(user))
        load.setInvariant(false);
  }
};

} // namespace
