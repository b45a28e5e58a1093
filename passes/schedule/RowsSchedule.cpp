//===- RowsSchedule.cpp - Schedules of kernels on rows --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/ScheduleFields.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace bastile;

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

namespace {

struct RowsSchedule
    : public KernelScheduleInterface::ExternalModel<RowsSchedule,
                                                    tile::RowsAttr> {
  LogicalResult assign(Attribute schedule, tile::KernelOp kernel, bool isOwn,
                       const Target &target, AnalysisManager analyses) const {
    MLIRContext *context = kernel.getContext();
    const auto &shape = analyses.getAnalysis<KernelShape, tile::KernelOp>();
    if (!target.isHost() && shape.usesFloat64)
      return kernel.emitError()
             << "float64 is computed on the host only, not on " << target.name;
    const bool isOpen = schedule == ScheduleFields().getAttr(context);
    ScheduleFields fields(cast<tile::RowsAttr>(schedule));
    if (target.isHost())
      completeForHost(fields, shape, target);
    else
      completeForGPU(fields, shape, target, context);
    // No more programs than run at once: where there turns out to be no work,
    // few of them have to find that out.
    if (shape.hasFactor && !target.isHost() && !fields.persistent)
      fields.persistent =
          std::max<int64_t>(1, target.residentThreads / fields.threads);
    if (isOpen && !shape.groups.empty() &&
        !isValidSchedule(fields, shape, target, context))
      return reportGroups(kernel, shape, target);
    if (failed(verifySchedule(kernel, fields, shape, target)))
      return failure();
    kernel.setScheduleAttr(fields.getAttr(context));
    const bool isMisaligned = shape.isMisaligned(fields.vector);
    // Operands of any alignment have a schedule of their own, unless fields are
    // pinned for all kernels alike.
    if (target.isHost() || !(isOpen || isOwn || isMisaligned) ||
        fields.vector == 1)
      return success();
    fields = getUnaligned(fields, shape, target, context);
    kernel.setUnalignedScheduleAttr(fields.getAttr(context));
    return isMisaligned ? verifySchedule(kernel, fields, shape, target)
                        : success();
  }

  LogicalResult verifyFor(Attribute schedule, tile::KernelOp kernel,
                          const Target &target,
                          AnalysisManager analyses) const {
    return verifySchedule(
        kernel, ScheduleFields(cast<tile::RowsAttr>(schedule)),
        analyses.getAnalysis<KernelShape, tile::KernelOp>(), target);
  }

  ScheduleCandidates getCandidates(Attribute /*schedule*/,
                                   tile::KernelOp kernel,
                                   const Target &target) const {
    return getRowsCandidates(kernel, target);
  }
};

} // namespace

void bastile::registerRowsSchedule(MLIRContext &context) {
  tile::RowsAttr::attachInterface<RowsSchedule>(context);
}
