//===- BoxStages.h - Stages of shared memory for boxes ----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One thread copies boxes into a stage once all warpgroups of the cluster have
// read what it held, and warpgroups multiply what is in it once it is full.
// Both count the copies from the program's start on, over all tiles that it
// computes. Where a stage has numbers of rows, too, the warp that copies them
// arrives as well, and each warp that has read them.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ROLES_BOXSTAGES_H
#define BASTILE_PASSES_ROLES_BOXSTAGES_H

#include "passes/products/ProgramFrame.h"
#include "passes/roles/NumberStages.h"
#include "passes/roles/SlotRing.h"

namespace bastile {

/// The stages of factors that are needed at the same time.
class BoxStages {
public:
  /// Creates slots for `stages` tiles of each of the operands `factors`, from
  /// byte `offset` of the shared memory on, and barriers, ahead of the roles.
  /// `rank` is the number of the block in its cluster, null without one, and
  /// `numbers` what the stages have of numbers of rows, if anything.
  BoxStages(ProgramFrame &frame, llvm::ArrayRef<unsigned> factors,
            int64_t stages, mlir::Value rank, int64_t offset,
            const NumberStages *numbers = nullptr);
  /// The bytes of all slots.
  int64_t getBytes() const { return ring.getSlots() * stageBytes; }
  /// The operands whose boxes go through the stages.
  llvm::SmallVector<unsigned> getOperands() const;
  /// The bytes of the boxes of one copy.
  int64_t getStepBytes() const { return stageBytes; }
  /// The warpgroups of the cluster, all of which read what a block copies.
  static int64_t getReaders(tile::MatmulAttr schedule) {
    return schedule.getDotWarps() / 4 * schedule.getRowBlocks();
  }

  /// Begins copy `number` of all factors, where the emitter is.
  void copy(mlir::Value number);
  /// Copies the numbers of copy `number`, which has begun.
  void copyNumbers(mlir::Value number);
  /// Waits for copy `number`; the tile of factor `operand` is there then.
  void await(mlir::Value number);
  /// Makes the tiles those of copy `number`, which has been waited for before.
  void select(mlir::Value number);
  mlir::Value getTile(unsigned operand) const;
  /// Reads the numbers of operand `operand` of the copy that was waited for
  /// last; null for an operand that has none.
  mlir::Value takeNumbers(unsigned operand) const;
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
  /// The slots of all factors, and the types of their tiles.
  std::pair<llvm::SmallVector<mlir::Value>, llvm::SmallVector<mlir::Type>>
  getSlots() const;
  void setTiles(mlir::ValueRange tiles);
  void addFactor(unsigned operand, mlir::Value rank, int64_t offset);
  /// Begins to copy the first `boxes` boxes of rows of each tile that has
  /// several, and all of other tiles, to a slot.
  void copyBoxes(int64_t boxes, mlir::Value slot,
                 llvm::ArrayRef<llvm::SmallVector<mlir::Value>> indices);

  ProgramFrame &frame;
  mlir::ImplicitLocOpBuilder &builder;
  const SlotRing ring;
  llvm::SmallVector<Factor> factors;
  /// The numbers that the stages have as well, or null.
  const NumberStages *numbers;
  mlir::Value full, empty;
  /// The slot that was waited for last.
  mlir::Value awaited;
  int64_t stageBytes = 0;
  /// The most boxes that the rows of a tile have.
  int64_t mostBoxes = 1;
};

} // namespace bastile

#endif // BASTILE_PASSES_ROLES_BOXSTAGES_H
