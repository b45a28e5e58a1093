//===- KernelTiling.h - Which tiles values become ---------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TILE_KERNELTILING_H
#define BASTILE_PASSES_TILE_KERNELTILING_H

#include "dialect/KernelSpace.h"
#include "passes/schedule/KernelShape.h"
#include "passes/schedule/ThreadGrid.h"

namespace bastile {

/// One way in which a kernel's operands may lie in memory.
struct TileVariant {
  std::string name;
  /// Leading dimensions of the rows that the program goes through.
  int64_t leading;
  /// Whether addresses are aligned to the vector width.
  bool aligned;
  /// Whether sums of rows are compensated for what each addition rounds off.
  bool compensated;
  /// The schedule of the program.
  tile::RowsAttr schedule;
  /// The threads that share a program's tiles; none on the host, whose programs
  /// are single threads whatever the schedule says.
  std::optional<ThreadGrid> grid;
};

/// How one variant cuts a kernel into tiles: the tile that each value becomes,
/// and how operands lie in memory. It is known before a program is built.
class KernelTiling {
public:
  KernelTiling(tile::KernelOp kernel, const KernelSpace &space,
               const KernelShape &shape, const TileVariant &variant)
      : variant(variant), space(space), shape(shape),
        schedule(variant.schedule), kernel(kernel) {}

  tile::KernelOp getKernel() const { return kernel; }
  mlir::Block &getBody() const { return getKernel().getBody().front(); }
  mlir::Operation *getReturn() const { return getBody().getTerminator(); }

  /// Whether `value` differs between the columns of a row, or one of `parts`
  /// contiguous parts of its rows does. A part that is one number of each row
  /// does not, even where the kernel goes along the row as a whole, too.
  bool hasColumns(mlir::Value value, int64_t parts = 1) const;
  /// The tile type of `value`, or of one of `parts` contiguous parts of its
  /// rows. A row that is split in registers has a tile as many times wider as
  /// it has pieces, a group statistic a tile as many times narrower as a group
  /// has columns.
  mlir::RankedTensorType getTileType(mlir::Value value,
                                     int64_t parts = 1) const;
  /// Whether `value`, or one of `parts` parts of its rows, has one number for
  /// each row of several columns.
  bool isStatistic(mlir::Value value, int64_t parts = 1) const {
    return !hasColumns(value, parts);
  }

  /// Whether rows are misaligned: the columns of tiles count from an aligned
  /// address ahead of each row.
  bool isMisaligned() const { return shape.isMisaligned(schedule.getVector()); }
  /// Whether tiles of `value`, or of one of `parts` parts, are misaligned.
  bool isMisaligned(mlir::Value value, int64_t parts = 1) const {
    return isMisaligned() && space.isWhole(value) && hasColumns(value, parts);
  }
  /// Whether `value` is an operand whose rows must have the same misalignment
  /// as those of the other operands.
  bool hasPhase(mlir::Value value) const;
  /// The columns that tiles cover.
  int64_t getSpan() const { return shape.getSpan(schedule.getVector()); }
  /// Whether a tile holds whole rows, so that no loop goes along them.
  bool holdsRows() const {
    return shape.numReductions == 0 || schedule.getColumns() >= getSpan();
  }

  /// The bytes that the address of `value`, or of one of `parts` parts of its
  /// rows, is a multiple of in memory.
  int64_t getAlignment(mlir::Value value, int64_t parts = 1) const;
  /// The bytes that an access to rows of `value`, or to one of `parts` parts of
  /// them, is aligned to: where rows are misaligned, accesses are aligned to
  /// the vector all the same.
  int64_t getAccessAlignment(mlir::Value value, int64_t parts = 1) const;
  /// Whether `value` has the rows that are left where rows are combined over
  /// some dimensions.
  bool isKept(mlir::Value value) const;
  /// The row space of an access to rows of `value`; null for the first.
  mlir::IntegerAttr getSpace(mlir::Value value) const;
  /// Whether `argument` is loaded into registers one group of rows ahead of its
  /// use. Where a schedule has more than two stages, whole rows are copied to
  /// shared memory instead. An assembler moves a load of memory that never
  /// changes past barriers, down to its first use, so loads that are ahead are
  /// not marked invariant.
  bool isLoadedAhead(mlir::BlockArgument argument) const;

  /// Whether threads fold columns: in a loop over the columns of a row, each
  /// thread first combines what it loads itself. A sum may then be relative to
  /// the maximum so far and needs no sweep of its own.
  bool isFolded() const { return variant.grid.has_value(); }
  /// Blocks that share a row; the host has no clusters.
  int64_t getBlocks() const { return isFolded() ? variant.grid->blocks : 1; }
  /// What is known of `reduce` if it follows a maximum; otherwise null.
  const FollowingSum *getFollowing(tile::ReduceOp reduce) const {
    return isFolded() ? shape.following.lookup(reduce) : nullptr;
  }

  const TileVariant &variant;
  const KernelSpace &space;
  const KernelShape &shape;
  const tile::RowsAttr schedule;

private:
  const tile::KernelOp kernel;
};

} // namespace bastile

#endif // BASTILE_PASSES_TILE_KERNELTILING_H
