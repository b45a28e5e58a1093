//===- TilePipeline.h - How the sums of a tile come about -------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ROLES_TILEPIPELINE_H
#define BASTILE_PASSES_ROLES_TILEPIPELINE_H

#include "passes/products/ProgramFrame.h"

namespace bastile {

/// Waits for `sum`, of products that are on their way, and so for all products
/// but the last `pending` ones, once the tiles of `after` are there.
inline mlir::Value waitForSum(mlir::ImplicitLocOpBuilder &builder,
                              mlir::Value sum, int64_t pending = 0,
                              mlir::ValueRange after = {}) {
  mlir::SmallVector<mlir::Type> types{
      mlir::cast<tile::PendingType>(sum.getType()).getTile()};
  llvm::append_range(types, after.getTypes());
  return tile::WaitDotsOp::create(
             builder, types, builder.getI64IntegerAttr(pending), sum, after)
      .getResult(0);
}

/// Has `tile` computed ahead of the branches and waits that follow, where all
/// products but the last `pending` ones have ended.
inline mlir::Value keepInFront(mlir::ImplicitLocOpBuilder &builder,
                               mlir::Value tile, int64_t pending = 0) {
  return tile::WaitDotsOp::create(builder, mlir::TypeRange(tile.getType()),
                                  builder.getI64IntegerAttr(pending),
                                  mlir::ValueRange(), tile)
      .getResult(0);
}

/// What the roles of a program do for one tile: one copies factors through
/// shared memory, the other computes the sums of the tile of them. Both begin
/// with the number of steps along k that the tiles before have taken, and
/// return it with their own. `turn` is the number of the tile in the program.
class TilePipeline {
public:
  virtual ~TilePipeline() = default;

  /// The bytes of shared memory that it takes, from byte 0 on.
  virtual int64_t getBytes() const = 0;
  virtual mlir::Value copy(mlir::Value at, mlir::Value turn) = 0;
  /// Gives the emitter the tiles of the sums.
  virtual mlir::Value compute(mlir::Value at, mlir::Value turn) = 0;
  /// Lets the emitter compute the tile that a program comes to at `place`,
  /// which is its own number and as many times the number of programs as it has
  /// had a turn.
  virtual void findPlace(mlir::Value place, mlir::Value blockRow) = 0;
  /// The operands of which both roles need the least and the greatest number
  /// that they have for a row of the tile.
  virtual llvm::ArrayRef<mlir::BlockArgument> getNumbersOfRows() const {
    return {};
  }
  /// How many threads of the role that copies run its code; the first one of
  /// them copies.
  virtual int64_t getCopyThreads() const { return 1; }
};

} // namespace bastile

#endif // BASTILE_PASSES_ROLES_TILEPIPELINE_H
