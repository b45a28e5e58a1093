//===- ScheduleSpace.cpp - The schedules worth timing ---------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/ScheduleSpace.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "passes/schedule/KernelSchedule.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace bastile;

/// The search space of a launch, with the heuristic's choice alone.
static LaunchSpace makeSpace(func::FuncOp func, tile::ProgramOp program,
                             SmallVectorImpl<std::string> &kernels) {
  kernels.push_back(program.getSymName().str());
  if (std::optional<ArrayAttr> merged = program.getMerged())
    for (auto name : merged->getAsRange<StringAttr>())
      kernels.push_back(name.str());
  return {func.getSymName().str(), kernels.front(), {}};
}

/// Whether the passes after `schedule` take the kernels as they are pinned.
static bool isAccepted(ModuleOp fused, const CompileOptions &options,
                       const std::string &pins) {
  ScopedDiagnosticHandler silence(fused.getContext(),
                                  [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> copy = fused.clone();
  PassManager passes(fused.getContext());
  passes.addPass(createSchedule({options.target->name, pins}));
  passes.addPass(createTile({options.target->name}));
  passes.addPass(createMergeLaunches());
  if (failed(passes.run(*copy)))
    return false;
  return llvm::all_of(copy->getOps<tile::ProgramOp>(), [&](auto program) {
    return program.getAllSharedBytes() <=
           options.target->maxSharedBytesPerBlock;
  });
}

FailureOr<std::vector<LaunchSpace>>
bastile::getScheduleSpaces(ModuleOp module, const CompileOptions &options) {
  OwningOpRef<ModuleOp> fused = module.clone();
  if (failed(lower(*fused, Level::Fused, options)))
    return failure();
  OwningOpRef<ModuleOp> tiled = module.clone();
  if (failed(lower(*tiled, Level::Tiled, options)))
    return failure();

  const Target &target = *options.target;
  SymbolTable fusedKernels(*fused), programs(*tiled);
  std::vector<LaunchSpace> spaces;
  for (auto func : tiled->getOps<func::FuncOp>())
    for (auto launch : func.getOps<tile::LaunchOp>()) {
      SmallVector<std::string> kernels;
      LaunchSpace space = makeSpace(
          func, programs.lookup<tile::ProgramOp>(launch.getFirstName()),
          kernels);
      auto kernel = fusedKernels.lookup<tile::KernelOp>(kernels.front());
      const ScheduleCandidates candidates =
          getOpenSchedule(kernel).getCandidates(kernel, target);
      for (tile::ScheduleInterface schedule : candidates.schedules) {
        std::string fields = printFields(schedule), pins;
        bool isFirst = space.choices.empty();
        if (target.isHost() && !isFirst)
          break;
        if (!isFirst)
          for (const std::string &member : kernels)
            pins.append(pins.empty() ? "" : "; ")
                .append(member)
                .append(": ")
                .append(fields);
        if (!isFirst && !isAccepted(*fused, options, pins))
          continue;
        space.choices.push_back({std::move(pins), std::move(fields)});
        if (space.choices.size() ==
            std::min(candidates.most, kMostScheduleChoices))
          break;
      }
      spaces.push_back(std::move(space));
    }
  return spaces;
}
