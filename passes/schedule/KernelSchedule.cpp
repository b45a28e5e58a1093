//===- KernelSchedule.cpp - Schedules of kernels --------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/KernelSchedule.h"

#include "dialect/KernelSpace.h"
#include "passes/schedule/MatmulRules.h"
#include "passes/schedule/ScheduleFields.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace bastile;

#include "passes/schedule/KernelSchedule.cpp.inc"

KernelScheduleInterface bastile::getOpenSchedule(tile::KernelOp kernel) {
  MLIRContext *context = kernel.getContext();
  if (isOverDimensions(kernel))
    return cast<KernelScheduleInterface>(MatmulFields().getAttr(context));
  return cast<KernelScheduleInterface>(ScheduleFields().getAttr(context));
}

void bastile::registerKernelSchedules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, tile::TileDialect *) {
    registerRowsSchedule(*context);
    registerMatmulSchedule(*context);
  });
}

LogicalResult bastile::verifyThreads(function_ref<InFlightDiagnostic()> error,
                                     int64_t threads, const Target &target) {
  if (threads > target.maxThreadsPerBlock)
    return error() << threads << " threads are more than the "
                   << target.maxThreadsPerBlock << " of a block";
  if (threads % kWarp != 0)
    return error() << threads << " threads are not a multiple of the warp of "
                   << kWarp;
  return success();
}

std::string bastile::getKindName(Attribute schedule) {
  return ("#" + schedule.getAbstractAttribute().getName()).str();
}

std::string bastile::printFields(tile::ScheduleInterface schedule) {
  std::string text;
  llvm::raw_string_ostream(text) << schedule;
  StringRef fields(text);
  // A schedule without fields has no brackets.
  if (!fields.consume_front(getKindName(schedule) + "<") ||
      !fields.consume_back(">"))
    return "";
  return fields.str();
}

ScheduleProbe::ScheduleProbe(tile::KernelOp kernel, const Target &target)
    : kernel(kernel.clone()), target(target),
      analyses(this->kernel, /*passInstrumentor=*/nullptr) {}

ScheduleProbe::~ScheduleProbe() { kernel->erase(); }

tile::ScheduleInterface
ScheduleProbe::complete(KernelScheduleInterface schedule) {
  // The rejection of a schedule is an answer here, not an error.
  ScopedDiagnosticHandler silence(kernel.getContext(),
                                  [](Diagnostic &) { return success(); });
  if (failed(schedule.assign(kernel, /*isOwn=*/false, target, analyses)))
    return nullptr;
  return *kernel.getSchedule();
}

SmallVector<tile::ScheduleInterface>
bastile::getSchedules(tile::KernelOp kernel) {
  SmallVector<tile::ScheduleInterface> schedules;
  for (tile::ScheduleInterface schedule :
       {kernel.getScheduleAttr(), kernel.getUnalignedScheduleAttr()})
    if (schedule)
      schedules.push_back(schedule);
  if (ArrayAttr few = kernel.getFewRowsSchedulesAttr())
    llvm::append_range(schedules, few.getAsRange<tile::ScheduleInterface>());
  return schedules;
}

LogicalResult bastile::verifyIsScheduled(tile::KernelOp kernel) {
  if (!kernel.getSchedule())
    return kernel.emitError("has no schedule; run the 'schedule' pass first");
  const std::string kind = getKindName(getOpenSchedule(kernel));
  for (tile::ScheduleInterface schedule : getSchedules(kernel)) {
    if (getKindName(schedule) != kind)
      return kernel.emitError("takes a schedule ")
             << kind << ", not " << schedule;
    if (!schedule.isComplete())
      return kernel.emitError("schedule ")
             << schedule
             << " leaves fields to be chosen; run the 'schedule' pass first";
  }
  return success();
}
