//===- KernelTiling.cpp - Which tiles values become -----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tile/KernelTiling.h"

#include "dialect/ElementBytes.h"
#include "dialect/Rows.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

/// The widest access that any target has.
static constexpr int64_t kMaxAlignment = 16;

bool KernelTiling::hasColumns(Value value, int64_t parts) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type)
    return false;
  return !space.getColumns() ||
         (space.getColumns(value) && type.getShape().back() != parts);
}

RankedTensorType KernelTiling::getTileType(Value value, int64_t parts) const {
  auto type = cast<RankedTensorType>(value.getType());
  // Where rows are misaligned, a column of a row vector is at another place in
  // each row of the tile, so its tile has all rows.
  bool hasRows = (type.getRank() >= 2 && !isKept(value)) || isMisaligned(value);
  int64_t rows = hasRows ? schedule.getRows() : 1;
  int64_t columns = schedule.getColumns(), group = space.getGroup(value);
  // Where groups do not divide the tile, the layout holds the size of a group,
  // which does not follow from the shape.
  if (columns % group != 0) {
    const ThreadGrid grid = variant.grid.value_or(ThreadGrid{1, 1, 1});
    return RankedTensorType::get(
        {rows, static_cast<int64_t>(llvm::divideCeil(columns, group))},
        type.getElementType(),
        tile::BlockedAttr::get(type.getContext(), schedule.getVector(),
                               grid.rows, grid.columns, grid.blocks, group,
                               columns));
  }
  columns = hasColumns(value, parts)
                ? columns / group * space.getPieces(value) / parts
                : 1;
  return RankedTensorType::get({rows, columns}, type.getElementType());
}

bool KernelTiling::hasPhase(Value value) const {
  auto argument = dyn_cast<BlockArgument>(value);
  return isMisaligned(value) && isRowTensor(value) &&
         (!argument || isRead(argument));
}

int64_t KernelTiling::getAccessAlignment(Value value, int64_t parts) const {
  if (isMisaligned(value, parts) && isRowTensor(value))
    return std::min(kMaxAlignment, schedule.getVector() *
                                       getElementBytes(cast<RankedTensorType>(
                                           value.getType())));
  return getAlignment(value, parts);
}

int64_t KernelTiling::getAlignment(Value value, int64_t parts) const {
  int64_t bytes = getElementBytes(cast<RankedTensorType>(value.getType()));
  bool vectorized = space.getColumns(value) && hasColumns(value, parts) &&
                    space.getGroup(value) == 1;
  if (!variant.aligned || !vectorized)
    return bytes;
  return std::min(kMaxAlignment, schedule.getVector() * bytes);
}

bool KernelTiling::isKept(Value value) const {
  return !shape.keptRows.empty() && isRowTensor(value) &&
         space.getProjection(value).drop_back() == ArrayRef(shape.keptRows);
}

IntegerAttr KernelTiling::getSpace(Value value) const {
  return isKept(value) ? Builder(value.getContext()).getI64IntegerAttr(1)
                       : nullptr;
}

bool KernelTiling::isLoadedAhead(BlockArgument argument) const {
  return schedule.getStages() > 1 && isRowTensor(argument) &&
         !isKept(argument) &&
         (schedule.getStages() == 2 || !hasColumns(argument));
}
