//===- ScheduleProduct.h - The tiles of products ----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_SCHEDULE_SCHEDULEPRODUCT_H
#define BASTILE_PASSES_SCHEDULE_SCHEDULEPRODUCT_H

#include "bastile/Target.h"
#include "dialect/Tile.h"

namespace bastile {

/// Gives `kernel`, which multiplies, a schedule: the rows and columns of the
/// product that a program computes, and the threads that share them. `pinned`,
/// if it is not null, has fields that the user chose for this kernel; products
/// take none yet.
llvm::LogicalResult scheduleProduct(tile::KernelOp kernel,
                                    tile::ScheduleAttr pinned,
                                    const Target &target);

} // namespace bastile

#endif // BASTILE_PASSES_SCHEDULE_SCHEDULEPRODUCT_H
