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

/// How many elements of the streamed dimension a step of `kernel` has.
int64_t getStreamedExtent(tile::KernelOp kernel, bool onHost);

/// The layout of the tiles of `kernel`, by its schedule.
mlir::Attribute getSpaceLayout(tile::KernelOp kernel, bool onHost);

/// Gives `kernel`, which is over dimensions, a schedule: the rows and columns
/// of the product that a program computes, and the threads that share them.
/// `pinned`, if it is not null, has fields that the user chose for this kernel;
/// products take none yet.
llvm::LogicalResult scheduleProduct(tile::KernelOp kernel,
                                    tile::ScheduleAttr pinned,
                                    const Target &target);

} // namespace bastile

#endif // BASTILE_PASSES_SCHEDULE_SCHEDULEPRODUCT_H
