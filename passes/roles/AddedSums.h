//===- AddedSums.h - Sums that several programs add up ----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A product over the columns of a transposed factor sums over the rows of
// tiles, and so over programs:
//
//   part[k, n] = factor[k, m] whole[m, n]
//
// In each step, the warpgroups give the factor of the step to shared memory.
// Who multiplies it is a question of registers:
//
//   the warpgroups   each multiplies all of it, for as many of the part's
//                    columns as it has rows of tiles: the transpose of the part
//   a role           of four warps, the multiplier, multiplies all of it by all
//                    columns, while the warpgroups are in later steps
//
// The part goes through shared memory as well, to a role that adds it to
// memory.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ROLES_ADDEDSUMS_H
#define BASTILE_PASSES_ROLES_ADDEDSUMS_H

#include "passes/products/ProgramFrame.h"
#include "passes/roles/SlotRing.h"

namespace bastile {

class AddedSums {
public:
  /// The columns of float32 sums next to each other in shared memory, as many
  /// bytes as a swizzle mixes.
  static constexpr int64_t kPanelColumns = 32;

  /// How many factors and parts shared memory has, and whether a role of its
  /// own multiplies.
  struct Slots {
    int64_t factors, parts;
    bool hasMultiplier;

    /// The bytes of factors of `streamed` x `rows` elements, and of sums of
    /// them with `columns` columns.
    int64_t getBytes(const Extents &extents, int64_t elementBytes) const;
  };

  /// Creates slots from byte `offset` of the shared memory on, and barriers,
  /// ahead of the roles. The factor is that of `sharing`, a product of the
  /// kernel, and `whole` the operand that has what it is multiplied by as the
  /// rows of the tile. One thread adds parts to memory.
  AddedSums(ProgramFrame &frame, tile::DotOp sharing, unsigned whole,
            const Slots &slots, int64_t offset);

  bool hasMultiplier() const { return slots.hasMultiplier; }
  /// Whether the left factor of `dot` is taken.
  bool takes(tile::DotOp dot) const { return dot == sharing; }
  unsigned getWhole() const { return whole; }

  /// The tile that the product of a step is: a part, or its transpose.
  mlir::RankedTensorType getPartType() const;

  /// In the warpgroups, gives the factor `left` of step `number`.
  void give(mlir::Value left, mlir::Value number);
  /// Begins to multiply the factor of step `number` by `tile`, once all of it
  /// is there. The product sums over the rows of both. Beyond the last row,
  /// `tile` is 0, and the factor has to be: what a formula makes of zeros need
  /// not be finite.
  mlir::Value multiply(mlir::Value tile, mlir::Value number);
  /// Leaves `part`, what that has been, to the role that adds.
  void leave(mlir::Value part, mlir::Value number);

  /// In the multiplier, says that it has read the factor of step `number`.
  void releaseFactor(mlir::Value number);
  /// In the warpgroups, waits until the multiplier has read all factors ahead
  /// of that of step `number`, and so what it multiplies them by.
  void awaitMultiplier(mlir::Value number);

  /// In the role that adds, waits for the part of step `number`.
  void await(mlir::Value number);
  /// The slots of parts, and that of step `number`.
  mlir::Value getParts() const { return parts; }
  mlir::Value getSlot(mlir::Value number) const {
    return partRing.getSlot(number);
  }
  /// Says that nobody reads the part of step `number` any more.
  void release(mlir::Value number);

private:
  void awaitFree(const SlotRing &ring, mlir::Value barriers,
                 mlir::Value number);

  ProgramFrame &frame;
  mlir::ImplicitLocOpBuilder &builder;
  const Extents extents;
  tile::DotOp sharing;
  const unsigned whole;
  const Slots slots;
  const SlotRing factorRing, partRing;
  mlir::Value factors, parts;
  /// Barriers of the slots. Factors of which the warpgroups read all have no
  /// empty ones.
  mlir::Value factorFull, factorEmpty, partFull, partEmpty;
};

} // namespace bastile

#endif // BASTILE_PASSES_ROLES_ADDEDSUMS_H
