//===- SlotRing.h - Slots that are filled in turn ---------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ROLES_SLOTRING_H
#define BASTILE_PASSES_ROLES_SLOTRING_H

#include "dialect/Tile.h"

namespace bastile {

/// Slots of shared memory that are filled one after the other, again and again,
/// each with barriers whose phases are the rounds.
class SlotRing {
public:
  SlotRing(mlir::ImplicitLocOpBuilder &builder, int64_t slots)
      : builder(builder), slots(slots) {}

  int64_t getSlots() const { return slots; }
  /// Makes a barrier for each slot that waits for so many arrivals.
  mlir::Value makeBarriers(int64_t arrivals) const;
  /// The slot of fill `number`.
  mlir::Value getSlot(mlir::Value number) const;
  /// The parity of the phase `ahead` phases behind that in which the slot of
  /// fill `number` is filled.
  mlir::Value getParity(mlir::Value number, int64_t ahead) const;

private:
  mlir::ImplicitLocOpBuilder &builder;
  const int64_t slots;
};

} // namespace bastile

#endif // BASTILE_PASSES_ROLES_SLOTRING_H
