//===- AddedSums.h - Sums that several programs add up ----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A product over the columns of a transposed factor sums over the rows of
// tiles, and so over programs. In each step, the warpgroups leave the factor of
// the step in shared memory, and each of them multiplies all of it, for as many
// of the product's columns as it has rows of tiles:
//
//   part[k, n] = factor[k, m] whole[m, n]      computed as its transpose
//
// What that is, another role adds to memory.
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

  /// Creates slots from byte `offset` of the shared memory on, and barriers,
  /// ahead of the roles. The factor is that of `sharing`, a product of the
  /// kernel, and `whole` the operand that has what it is multiplied by as the
  /// rows of the tile. One thread adds parts to memory.
  AddedSums(ProgramFrame &frame, tile::DotOp sharing, unsigned whole,
            int64_t offset);

  /// Whether the left factor of `dot` is taken.
  bool takes(tile::DotOp dot) const { return dot == sharing; }
  unsigned getWhole() const { return whole; }
  /// The bytes of all slots for factors of `streamed` x `rows` elements, and
  /// for sums of them with `columns` columns.
  static int64_t getBytes(const Extents &extents, int64_t elementBytes);

  /// In the warpgroups, begins to multiply the factor `left` of step `number`
  /// by `tile`. The product sums over the rows of both. Beyond the last row,
  /// `tile` is 0, and `left` has to be: what a formula makes of zeros need not
  /// be finite.
  mlir::Value begin(mlir::Value left, mlir::Value tile, mlir::Value number);
  /// Leaves `part`, what that has been, to the other role.
  void leave(mlir::Value part, mlir::Value number);

  /// In the other role, waits for the part of step `number`.
  void await(mlir::Value number);
  /// The slots of parts, and that of step `number`.
  mlir::Value getParts() const { return parts; }
  mlir::Value getSlot(mlir::Value number) const { return ring.getSlot(number); }
  /// Says that nobody reads the part of step `number` any more.
  void release(mlir::Value number);

private:
  ProgramFrame &frame;
  mlir::ImplicitLocOpBuilder &builder;
  const Extents extents;
  tile::DotOp sharing;
  const unsigned whole;
  const SlotRing ring;
  mlir::Value factors, parts, factorFull, full, empty;
};

} // namespace bastile

#endif // BASTILE_PASSES_ROLES_ADDEDSUMS_H
