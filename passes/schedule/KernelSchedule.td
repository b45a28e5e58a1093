//===- KernelSchedule.td - Schedules of kernels -------------*- tablegen -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_SCHEDULE_KERNELSCHEDULE_TD
#define BASTILE_PASSES_SCHEDULE_KERNELSCHEDULE_TD

include "mlir/IR/Interfaces.td"

def KernelScheduleInterface : AttrInterface<"KernelScheduleInterface"> {
  let cppNamespace = "::bastile";
  let description = [{
    A kind of schedule that kernels have, with what belongs to this kind alone:
    how fields that are left out are chosen, which schedules a target can run,
    and which others are worth timing. The attributes of the dialect get it from
    this room (`registerKernelSchedules`), since kernels are described here. What
    they have to know of a kernel, such as its `KernelShape`, are analyses of the
    kernel, which `analyses` has or finds.
  }];
  let methods = [
    InterfaceMethod<[{
        Gives `kernel` this schedule with the fields that it leaves open chosen
        for `target`. `isOwn` says that it was pinned for this kernel by name,
        as a tuner does, who times aligned operands. Fails, with a diagnostic,
        where `target` cannot run `kernel` by it.
      }],
      "::llvm::LogicalResult", "assign",
      (ins "::bastile::tile::KernelOp":$kernel, "bool":$isOwn,
           "const ::bastile::Target &":$target,
           "::mlir::AnalysisManager":$analyses)>,
    InterfaceMethod<[{
        Whether `target` can run `kernel` by this schedule, which is complete; if
        not, a diagnostic says why.
      }],
      "::llvm::LogicalResult", "verifyFor",
      (ins "::bastile::tile::KernelOp":$kernel,
           "const ::bastile::Target &":$target,
           "::mlir::AnalysisManager":$analyses)>,
    InterfaceMethod<[{
        The schedules of this kind that are worth timing for `kernel`: the
        neighbours of what the heuristic chooses.
      }],
      "::bastile::ScheduleCandidates", "getCandidates",
      (ins "::bastile::tile::KernelOp":$kernel,
           "const ::bastile::Target &":$target)>
  ];
}

#endif // BASTILE_PASSES_SCHEDULE_KERNELSCHEDULE_TD
