//===- TileNumbers.h - What one role tells another of a tile ----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ROLES_TILENUMBERS_H
#define BASTILE_PASSES_ROLES_TILENUMBERS_H

#include "passes/roles/SlotRing.h"

namespace bastile {

/// The numbers of a tile, such as its place, which the role that copies finds
/// a tile ahead and leaves in shared memory for the one that computes. So the
/// latter has neither divisions nor loads to wait for between two tiles.
class TileNumbers {
public:
  /// Makes the memory for `count` numbers and its barriers, ahead of the roles.
  /// `warps` warps read them.
  TileNumbers(mlir::ImplicitLocOpBuilder &builder, int64_t count,
              int64_t warps);

  /// Leaves the numbers of the tile of `turn`, which are integers of 32 bits.
  void put(mlir::Value turn, llvm::ArrayRef<mlir::Value> values);
  /// Waits for them.
  void await(mlir::Value turn);
  /// Reads them, as often as is better than to keep them in registers.
  llvm::SmallVector<mlir::Value> get(mlir::Value turn);
  /// Says that they are not read any more.
  void release(mlir::Value turn);

private:
  void arrive(mlir::Value barriers, mlir::Value slot, bool isOfWarps);

  mlir::ImplicitLocOpBuilder &builder;
  const int64_t count;
  const SlotRing ring;
  mlir::Value numbers, full, empty;
};

} // namespace bastile

#endif // BASTILE_PASSES_ROLES_TILENUMBERS_H
