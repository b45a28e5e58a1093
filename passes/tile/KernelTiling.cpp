//===- KernelTiling.cpp - Which tiles values become -----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tile/KernelTiling.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

/// The widest access that any target has.
static constexpr int64_t kMaxAlignment = 16;

int64_t KernelTiling::getLength(Type type) {
  return cast<RankedTensorType>(type).getShape().back();
}

bool KernelTiling::hasColumns(Value value) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && (shape.rowLength == 1 || getLength(type) != 1);
}

RankedTensorType KernelTiling::getTileType(RankedTensorType type) const {
  // Where rows are misaligned, a column of a row vector is at another place in
  // each row of the tile, so its tile has all rows.
  bool hasRows =
      (type.getRank() >= 2 && !shape.isKept(type)) || isMisaligned(type);
  int64_t rows = hasRows ? schedule.getRows() : 1;
  int64_t length = getLength(type), columns = schedule.getColumns();
  // Where groups do not divide the tile, the layout holds the size of a group,
  // which does not follow from the shape.
  if (int64_t group = shape.rowLength / length;
      length != 1 && group > 1 && columns % group != 0) {
    const ThreadGrid grid = variant.grid.value_or(ThreadGrid{1, 1, 1});
    return RankedTensorType::get(
        {rows, static_cast<int64_t>(llvm::divideCeil(columns, group))},
        type.getElementType(),
        tile::BlockedAttr::get(type.getContext(), schedule.getVector(),
                               grid.rows, grid.columns, grid.blocks, group,
                               columns));
  }
  columns = shape.rowLength == 1 || length != 1
                ? columns * length / shape.rowLength
                : 1;
  return RankedTensorType::get({rows, columns}, type.getElementType());
}

bool KernelTiling::hasPhase(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  auto argument = dyn_cast<BlockArgument>(value);
  return isMisaligned(type) && type.getRank() >= 2 &&
         (!argument || isRead(argument));
}

int64_t KernelTiling::getAccessAlignment(RankedTensorType type) const {
  int64_t bytes = getElementBytes(type);
  if (isMisaligned(type) && type.getRank() >= 2)
    return std::min(kMaxAlignment, schedule.getVector() * bytes);
  return getAlignment(type);
}

int64_t KernelTiling::getAlignment(RankedTensorType type) const {
  int64_t bytes = getElementBytes(type);
  bool vectorized = getLength(type) != 1 && getLength(type) >= shape.rowLength;
  if (!variant.aligned || !vectorized)
    return bytes;
  return std::min(kMaxAlignment, schedule.getVector() * bytes);
}

IntegerAttr KernelTiling::getSpace(RankedTensorType type) const {
  return shape.isKept(type) ? Builder(type.getContext()).getI64IntegerAttr(1)
                            : nullptr;
}

bool KernelTiling::isLoadedAhead(BlockArgument argument) const {
  auto type = cast<RankedTensorType>(argument.getType());
  return schedule.getStages() > 1 && type.getRank() >= 2 &&
         !shape.isKept(type) &&
         (schedule.getStages() == 2 || !hasColumns(argument));
}

Value bastile::createNeutralTile(OpBuilder &builder, Location loc,
                                 RankedTensorType type, tile::ReduceKind kind) {
  Attribute neutral = tile::ReduceOp::getNeutral(kind, type.getElementType());
  return arith::ConstantOp::create(builder, loc,
                                   DenseElementsAttr::get(type, neutral));
}
