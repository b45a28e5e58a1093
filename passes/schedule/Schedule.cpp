//===- Schedule.cpp - Choose how kernels are laid over the machine --------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/KernelSpace.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/TargetLookup.h"
#include "passes/schedule/ScheduleFields.h"
#include "passes/schedule/SchedulePins.h"
#include "passes/schedule/ScheduleProduct.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

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
    shapes.clear();
    for (auto kernel : getOperation().getOps<tile::KernelOp>())
      if (!isOverDimensions(kernel))
        shapes.try_emplace(kernel, KernelShape::get(kernel));
    findAuxiliary();
    auto nothing = ScheduleFields().getAttr(&getContext());
    for (auto kernel : getOperation().getOps<tile::KernelOp>()) {
      if (isOverDimensions(kernel)) {
        if (failed(scheduleProduct(kernel, pins->getOwn(kernel.getSymName()),
                                   *target)))
          return signalPassFailure();
        continue;
      }
      tile::ScheduleAttr pinned = getPinned(kernel, *pins);
      // A tuner pins fields by the kernel's name, and found them on aligned
      // operands.
      bool isForAligned =
          pinned == nothing || pins->getOwn(kernel.getSymName());
      if (failed(scheduleKernel(kernel, pinned, isForAligned, *target)))
        return signalPassFailure();
    }
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
        for (auto name : launch.getKernels().getAsRange<FlatSymbolRefAttr>()) {
          auto kernel = symbols.lookup<tile::KernelOp>(name.getValue());
          if (!kernel || isOverDimensions(kernel))
            continue;
          const KernelShape &shape = shapes.at(kernel);
          if (shape.hasFactor)
            auxiliary.insert(kernel);
          kernels.push_back(
              {kernel, shape.numCombinedRows > 0 || shape.leading == 0
                           ? 0
                           : shape.rowLength});
          longest = std::max(longest, kernels.back().second);
        }
      for (auto [kernel, length] : kernels)
        if (length < longest)
          auxiliary.insert(kernel);
    }
  }

  /// The fields that are pinned for `kernel`.
  tile::ScheduleAttr getPinned(tile::KernelOp kernel,
                               const SchedulePins &pins) {
    if (tile::ScheduleAttr own = pins.getOwn(kernel.getSymName()))
      return own;
    if (!auxiliary.contains(kernel)) {
      if (tile::ScheduleAttr common = pins.getCommon())
        return common;
      if (std::optional<tile::ScheduleAttr> given = kernel.getSchedule())
        return *given;
    }
    return ScheduleFields().getAttr(&getContext());
  }

  /// `isForAligned` lets operands of any alignment have another schedule.
  LogicalResult scheduleKernel(tile::KernelOp kernel, tile::ScheduleAttr pinned,
                               bool isForAligned, const Target &target) {
    const KernelShape &shape = shapes.at(kernel);
    if (!target.isHost() && shape.usesFloat64)
      return kernel.emitError()
             << "float64 is computed on the host only, not on " << target.name;
    ScheduleFields fields(pinned);
    if (target.isHost())
      completeForHost(fields, shape, target);
    else
      completeForGPU(fields, shape, target, &getContext());
    // No more programs than run at once: where there turns out to be no work,
    // few of them have to find that out.
    if (shape.hasFactor && !target.isHost() && !fields.persistent)
      fields.persistent =
          std::max<int64_t>(1, target.residentThreads / fields.threads);
    MLIRContext *context = &getContext();
    if (pinned == ScheduleFields().getAttr(context) && !shape.groups.empty() &&
        !isValidSchedule(fields, shape, target, context))
      return reportGroups(kernel, shape, target);
    if (failed(verifySchedule(kernel, fields, shape, target)))
      return failure();
    kernel.setScheduleAttr(fields.getAttr(context));
    bool isMisaligned = shape.isMisaligned(fields.vector);
    if (target.isHost() || !(isForAligned || isMisaligned) ||
        fields.vector == 1)
      return success();
    fields = getUnaligned(fields, shape, target, context);
    kernel.setUnalignedScheduleAttr(fields.getAttr(context));
    return isMisaligned ? verifySchedule(kernel, fields, shape, target)
                        : success();
  }

  /// Reports that groups of columns do not fit, where the user pinned no
  /// schedule that the message could name.
  static LogicalResult reportGroups(tile::KernelOp kernel,
                                    const KernelShape &shape,
                                    const Target &target) {
    std::string sizes;
    llvm::ListSeparator separator(" and of ");
    for (int64_t group : shape.groups) {
      sizes += StringRef(separator);
      sizes += std::to_string(group);
    }
    InFlightDiagnostic error = kernel.emitError();
    error << "groups of " << sizes << " columns in rows of " << shape.rowLength
          << " are more than a program of " << target.name
          << " holds of a row at a time; ";
    if (shape.groups.size() > 1)
      return error << "compute those of one size in a function of their own";
    return error << "give the tensor as rows of " << shape.groups.front()
                 << " columns, and reduce these whole";
  }

  DenseMap<Operation *, KernelShape> shapes;
  DenseSet<Operation *> auxiliary;
};

} // namespace
