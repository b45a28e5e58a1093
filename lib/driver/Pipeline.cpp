//===- Pipeline.cpp - The passes from tensors to a target -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/CodeGen.h"
#include "bastile/Compiler.h"
#include "dialect/Tile.h"
#include "lib/driver/Metadata.h"
#include "lib/driver/ProgramVerifier.h"
#include "lib/driver/Variants.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "passes/tensors/FunctionVerifier.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace bastile;

/// Adds the passes that remove what the passes ahead of them left over.
static void addSimplification(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}

/// Adds the passes that take a module to `level`, at most to tiles.
static void addTensorPasses(OpPassManager &passes, Level level,
                            const CompileOptions &options) {
  if (level >= Level::Decomposed) {
    passes.addPass(createDecompose());
    addSimplification(passes);
    const GradientOptions &gradients = options.gradients;
    passes.addPass(createDifferentiate(
        {SmallVector<std::string>(gradients.arguments.begin(),
                                  gradients.arguments.end()),
         gradients.together, gradients.inPlace, gradients.dropValue}));
    if (!gradients.arguments.empty())
      addSimplification(passes);
  }
  if (level >= Level::Fused) {
    passes.addNestedPass<func::FuncOp>(createSplitRows());
    passes.addPass(createFuse({options.target->name}));
    passes.addPass(createSplitCrossed({options.target->name}));
  }
  if (level >= Level::Scheduled)
    passes.addPass(createSchedule({options.target->name, options.schedule}));
  if (level >= Level::Tiled) {
    passes.addPass(createTile({options.target->name}));
    passes.addPass(createKeepRows());
    passes.addPass(createMergeLaunches());
    passes.addPass(createOverlapLaunches({options.target->name}));
    addSimplification(passes.nest<func::FuncOp>());
  }
  // Schedules are chosen and explained for each launch, code is for programs.
  if (level > Level::Tiled)
    passes.addPass(createSharePrograms());
}

/// Adds the passes from tiles on.
static void addTilePasses(OpPassManager &passes, Level level,
                          const CompileOptions &options) {
  const std::string &target = options.target->name;
  if (level >= Level::Distributed)
    passes.addPass(createDistribute({target}));
  if (level < Level::NVVM)
    return;
  passes.addPass(createLowerTiles({target}));
  passes.addPass(createExpandMath({target}));
  passes.addPass(createCSEPass());
  if (options.target->isHost())
    passes.addPass(createLowerToHost());
  else
    passes.addPass(createLowerToNVVM());
  if (options.lineInfo)
    addLineInfo(passes);
}

static LogicalResult runPasses(ModuleOp module, const CompileOptions &options,
                               llvm::function_ref<void(OpPassManager &)> add) {
  PassManager passes(module.getContext());
  passes.enableVerifier(options.verifyPasses);
  add(passes);
  if (options.configure && failed(options.configure(passes)))
    return failure();
  return passes.run(module);
}

/// Erases the programs that no code is asked for, and the functions that launch
/// them, which the metadata describes.
static LogicalResult eraseOtherPrograms(ModuleOp module,
                                        const KernelSelection &selection) {
  if (selection.isAll())
    return success();
  llvm::StringSet<> kept;
  if (selection.isFirstVariants())
    module.walk(
        [&](tile::LaunchOp launch) { kept.insert(launch.getFirstName()); });
  else if (module.lookupSymbol<tile::ProgramOp>(selection.name()))
    kept.insert(selection.name());
  else
    return module.emitError("there is no kernel '") << selection.name() << "'";
  for (auto func : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    func.erase();
  for (auto program :
       llvm::make_early_inc_range(module.getOps<tile::ProgramOp>()))
    if (!kept.contains(program.getSymName()))
      program.erase();
  return success();
}

bool bastile::hasPrograms(ModuleOp module) {
  return !module.getOps<tile::ProgramOp>().empty();
}

/// Takes `module` to `level`, at most to programs as the pass `tile` makes
/// them, all variants of which the metadata describes.
static LogicalResult lowerTensors(ModuleOp module, Level level,
                                  const CompileOptions &options,
                                  llvm::json::Value *metadata) {
  // Programs that somebody wrote by hand go on where the pass `tile` ends.
  if (!hasPrograms(module)) {
    if (level >= Level::Decomposed && failed(verifyOnlyFunctions(module)))
      return failure();
    if (failed(runPasses(module, options, [&](OpPassManager &passes) {
          addTensorPasses(passes, level, options);
        })))
      return failure();
  } else {
    if (failed(verifyPrograms(module)))
      return failure();
    eraseOtherVariants(module, *options.target);
  }
  addAlignedVariants(module);
  // The launches are known once kernels are tiled and gone once they are
  // lowered.
  if (metadata && level >= Level::Tiled)
    *metadata = buildMetadata(module, *options.target);
  return success();
}

LogicalResult bastile::lower(ModuleOp module, Level level,
                             const CompileOptions &options,
                             llvm::json::Value *metadata) {
  const bool areWritten = hasPrograms(module);
  if (failed(lowerTensors(module, level, options, metadata)))
    return failure();
  if (level > Level::Tiled &&
      failed(eraseOtherPrograms(module, options.kernels)))
    return failure();
  return level < Level::Tiled
             ? success()
             : lowerPrograms(module, level, options, areWritten);
}

LogicalResult bastile::lowerToPrograms(ModuleOp module,
                                       const CompileOptions &options,
                                       llvm::json::Value &metadata) {
  if (failed(lowerTensors(module, Level::NVVM, options, &metadata)))
    return failure();
  return eraseOtherPrograms(module, options.kernels);
}

LogicalResult bastile::lowerPrograms(ModuleOp module, Level level,
                                     const CompileOptions &options,
                                     bool areWritten) {
  return runPasses(module, options, [&](OpPassManager &passes) {
    if (!areWritten)
      addSimplification(passes);
    addTilePasses(passes, level, options);
  });
}
