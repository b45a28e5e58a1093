//===- SentSums.h - Sums that blocks send to each other ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ROLES_SENTSUMS_H
#define BASTILE_PASSES_ROLES_SENTSUMS_H

#include "passes/products/Epilogue.h"

namespace bastile {

/// The sums of blocks of a cluster, each over some of k. The parts of a tile's
/// columns are completed by the blocks by turns: each block sends what it has
/// of a part to the block that completes it, which adds up all of it in the
/// order of the blocks, so that the sums have the same bits every time.
///
/// A block has a place in shared memory for what each block has of the parts
/// that it completes, and a barrier that counts the bytes that others send. So
/// nobody waits for stores to memory, nor reads the memory of another block. A
/// block sends once the others have arrived at its barrier `free`: they have
/// read what was sent for the tile before. For its first tile it need not wait.
/// Behind its last tile no block arrives, so that each has awaited all that
/// reaches its shared memory when it ends.
class SentSums final : public SplitSums {
public:
  /// Makes the barriers of the block of number `rank`, whose `warpgroups`
  /// multiply, and places for parts of `columns` columns from byte `offset` of
  /// shared memory on. To be called ahead of the roles.
  SentSums(ProgramFrame &frame, mlir::Value rank, int64_t warpgroups,
           int64_t columns, int64_t offset);

  int64_t getBytes() const { return bytes; }

  /// Makes `turn` the number of the tile whose sums are shared next.
  void setTurn(mlir::Value newTurn) { turn = newTurn; }
  void share(mlir::ValueRange sums) override;
  void await() override;
  void buildOverParts(llvm::function_ref<void(mlir::Value part)> body) override;
  mlir::Value take(size_t dot, mlir::Value part) override;
  /// Lets the other blocks send for the next tile, if `hasNext` holds.
  void release(mlir::Value hasNext);

private:
  mlir::Value getSlot(mlir::Value part);
  void expect();
  void awaitFree();

  ProgramFrame &frame;
  mlir::ImplicitLocOpBuilder &builder;
  mlir::Value rank, turn;
  int64_t blocks, parts;
  mlir::RankedTensorType partType;
  /// For each product, slots for the parts that the block completes, of each
  /// one for every block.
  llvm::SmallVector<mlir::Value> slots;
  int64_t bytes = 0;
  /// Barriers whose phases are tiles: those whose sums have come, and those
  /// ahead of which all blocks have read the sums of the tile before.
  mlir::Value received, free;
};

} // namespace bastile

#endif // BASTILE_PASSES_ROLES_SENTSUMS_H
