//===- MaskBounds.h - Which steps of a loop a mask leaves -------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PRODUCTS_MASKBOUNDS_H
#define BASTILE_PASSES_PRODUCTS_MASKBOUNDS_H

#include "passes/analysis/MaskConditions.h"
#include "passes/products/SpaceEmitter.h"

namespace bastile {

/// The steps of a loop over k that a program makes: from `first` on, ahead of
/// `end`.
struct StepRange {
  mlir::Value first, end;
  /// The place along k where step 0 begins; null for the first one.
  mlir::Value origin;
};

/// Emits, ahead of the loop, the fewest steps that neighbour each other and
/// that have all elements which are `visited` in some row of the tile. Steps
/// are the same ones for all tiles, or step 0 begins with the first such
/// element if `fromFirst`: then a band of few elements lies in as few steps as
/// its length takes.
StepRange emitStepRange(mlir::ImplicitLocOpBuilder &builder,
                        SpaceEmitter &emitter, const KernelSpace &space,
                        const Visited &visited, bool fromFirst = false);

/// Emits, inside of the loop over k of a transposed factor, the last row of the
/// kernel whose tile makes the step where the emitter is, if the steps of rows
/// end nowhere ahead of others (emitStepRange): none does if that is negative.
mlir::Value emitLastVisitor(mlir::ImplicitLocOpBuilder &builder,
                            SpaceEmitter &emitter, const KernelSpace &space,
                            const Visited &visited);

/// Emits, inside of the loop, whether `conditions` hold for all elements of the
/// tile: whether its step is between two that follow from them ahead of it.
mlir::Value emitIsShown(mlir::ImplicitLocOpBuilder &builder,
                        SpaceEmitter &emitter,
                        const MaskConditions &conditions);

} // namespace bastile

#endif // BASTILE_PASSES_PRODUCTS_MASKBOUNDS_H
