//===- BoxStages.h - Stages of shared memory for boxes ----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One thread copies boxes into a stage once all warpgroups of the cluster have
// read what it held, and warpgroups multiply what is in it once it is full.
// Both count the copies from the program's start on, over all tiles that it
// computes.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ROLES_BOXSTAGES_H
#define BASTILE_PASSES_ROLES_BOXSTAGES_H

#include "passes/products/ProgramFrame.h"
#include "passes/roles/SlotRing.h"

namespace bastile {

/// The stages of factors that are needed at the same time.
class BoxStages {
public:
  /// Creates slots for `stages` tiles of each of the operands `factors`, from
  /// byte `offset` of the shared memory on, and barriers, ahead of the roles.
  /// `rank` is the number of the block in its cluster, null without one.
  BoxStages(ProgramFrame &frame, llvm::ArrayRef<unsigned> factors,
            int64_t stages, mlir::Value rank, int64_t offset);
  /// The bytes of all slots.
  int64_t getBytes() const { return ring.getSlots() * stageBytes; }
  /// The warpgroups of the cluster, all of which read what a block copies.
  static int64_t getReaders(tile::MatmulAttr schedule) {
    return schedule.getDotWarps() / 4 * schedule.getRowBlocks();
  }

  /// Begins copy `number` of all factors, where the emitter is.
  void copy(mlir::Value number);
  /// Waits for copy `number`; the tile of factor `operand` is there then.
  void await(mlir::Value number);
  mlir::Value getTile(unsigned operand) const;
  /// Says that the warpgroup has read copy `number`.
  void release(mlir::Value number);

private:
  struct Factor {
    unsigned operand;
    mlir::Value slots;
    mlir::Type type;
    /// The first row that the block copies, of a factor that the cluster
    /// shares; null otherwise.
    mlir::Value firstRow;
    /// The rows of a box, and the bytes of all boxes next to each other.
    int64_t boxRows, boxBytes;
    /// How many such boxes have the rows of a tile.
    int64_t numBoxes = 1;
    /// What was awaited last.
    mlir::Value tile;
  };
  mlir::Value constant(int64_t value) { return frame.constant(value); }
  void addFactor(unsigned operand, mlir::Value rank, int64_t offset);
  /// Begins to copy the first `boxes` boxes of rows of each tile that has
  /// several, and all of other tiles, to a slot.
  void copyBoxes(int64_t boxes, mlir::Value slot,
                 llvm::ArrayRef<llvm::SmallVector<mlir::Value>> indices);

  ProgramFrame &frame;
  mlir::ImplicitLocOpBuilder &builder;
  const SlotRing ring;
  llvm::SmallVector<Factor> factors;
  mlir::Value full, empty;
  int64_t stageBytes = 0;
  /// The most boxes that the rows of a tile have.
  int64_t mostBoxes = 1;
};

} // namespace bastile

#endif // BASTILE_PASSES_ROLES_BOXSTAGES_H
