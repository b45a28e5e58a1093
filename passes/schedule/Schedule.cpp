//===- Schedule.cpp - Choose how kernels are laid over the machine --------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/KernelSpace.h"
#include "dialect/Rows.h"
#include "dialect/space/SpaceBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/TargetLookup.h"
#include "passes/schedule/KernelSchedule.h"
#include "passes/schedule/KernelShape.h"
#include "passes/schedule/MatmulRules.h"
#include "passes/schedule/SchedulePins.h"

namespace bastile {
#define GEN_PASS_DEF_SCHEDULE
#include "passes/Passes.h.inc"
} // namespace bastile
using namespace mlir;
using namespace bastile;

namespace {
struct SchedulePass : public bastile::impl::ScheduleBase<SchedulePass> {
  using ScheduleBase::ScheduleBase;

  void runOnOperation() override {
    const Target *target = lookupTarget(getOperation(), this->target);
    if (!target)
      return signalPassFailure();
    FailureOr<SchedulePins> pins =
        SchedulePins::parse(schedule, getOperation());
    if (failed(pins))
      return signalPassFailure();
    if (failed(completeSpaces(getOperation())))
      return signalPassFailure();
    findAuxiliary();
    for (auto kernel : getOperation().getOps<tile::KernelOp>()) {
      const bool isOwn(pins->getOwn(kernel.getSymName()));
      if (failed(getPinned(kernel, *pins)
                     .assign(kernel, isOwn, *target,
                             getAnalysisManager().nest(kernel))))
        return signalPassFailure();
    }
    // Kernels have got schedules, and no other body or space.
    markAnalysesPreserved<KernelSpace, KernelShape, MatmulShape>();
  }

  /// Whether `kernel` scales in place, by a factor that is mostly 1.
  static bool isScaling(tile::KernelOp kernel) {
    return llvm::any_of(
        llvm::seq(kernel.getNumArguments()), [&](unsigned index) {
          return bool(
              kernel.getArgAttr(index, tile::TileDialect::kFactorAttrName));
        });
  }

  /// How long the rows are that `kernel` goes through; 0 if it has none, or
  /// finishes what others began.
  int64_t getRowLength(tile::KernelOp kernel) {
    Block &body = kernel.getBody().front();
    auto isOfRows = [](Operation &op) {
      return llvm::any_of(op.getResults(), isRowTensor);
    };
    auto combinesRows = [](tile::ReduceRowsOp reduce) {
      return !reduce.getPartial();
    };
    if ((llvm::none_of(body.getArguments(), isRowTensor) &&
         llvm::none_of(body, isOfRows)) ||
        llvm::any_of(body.getOps<tile::ReduceRowsOp>(), combinesRows))
      return 0;
    const tile::SpaceDimension *columns =
        getAnalysisManager()
            .getChildAnalysis<KernelSpace, tile::KernelOp>(kernel)
            .getColumns();
    return columns ? columns->size : 1;
  }

  /// Finds the kernels that fields pinned for every kernel do not mean: those
  /// that finish what others began, have no rows or scale in place, and those
  /// whose rows are shorter than other rows of the function.
  void findAuxiliary() {
    auxiliary.clear();
    SymbolTable symbols(getOperation());
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      SmallVector<std::pair<tile::KernelOp, int64_t>> kernels;
      int64_t longest = 0;
      for (auto launch : func.getOps<tile::LaunchOp>())
        for (StringRef name : launch.getNames()) {
          auto kernel = symbols.lookup<tile::KernelOp>(name);
          if (!kernel || isOverDimensions(kernel))
            continue;
          if (isScaling(kernel))
            auxiliary.insert(kernel);
          kernels.push_back({kernel, getRowLength(kernel)});
          longest = std::max(longest, kernels.back().second);
        }
      for (auto [kernel, length] : kernels)
        if (length < longest)
          auxiliary.insert(kernel);
    }
  }

  /// The fields that are pinned for `kernel`, in a schedule of its kind.
  KernelScheduleInterface getPinned(tile::KernelOp kernel,
                                    const SchedulePins &pins) {
    KernelScheduleInterface open = getOpenSchedule(kernel);
    if (KernelScheduleInterface own = pins.getOwn(kernel.getSymName()))
      return own;
    if (auxiliary.contains(kernel))
      return open;
    if (KernelScheduleInterface common = pins.getCommon(open.getTypeID()))
      return common;
    // What is given for a function is meant for its kernels of that kind.
    if (std::optional<tile::ScheduleInterface> given = kernel.getSchedule();
        given && given->getTypeID() == open.getTypeID())
      return cast<KernelScheduleInterface>(*given);
    return open;
  }

  DenseSet<Operation *> auxiliary;
};

} // namespace
