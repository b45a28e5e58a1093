//===- TilerMemory.cpp - Loads and stores of a program --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tile/Tiler.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bastile;

/// The widest access that any target has.
static constexpr int64_t kMaxAlignment = 16;

/// The type of one of `count` contiguous parts of a row of `type`.
static RankedTensorType getPartType(RankedTensorType type, int64_t count) {
  SmallVector<int64_t> sizes(type.getShape());
  sizes.back() /= count;
  return type.clone(sizes);
}

/// How many neighbouring pieces of `op` are interleaved, element by element, in
/// each part of the row. Pieces of a single element count as lying one after
/// another.
template <typename Op>
static int64_t getStrands(Op op) {
  auto piece = cast<RankedTensorType>(op.getPieces().front().getType());
  return piece.getShape().back() == 1 ? 1 : op.getStrands();
}

/// The alignment of an access to rows of `type`: where rows are misaligned,
/// accesses are aligned to the vector all the same.
int64_t Tiler::getAccessAlignment(RankedTensorType type) const {
  int64_t bytes = getElementBytes(type);
  if (isMisaligned(type) && type.getRank() >= 2)
    return std::min(kMaxAlignment, schedule.getVector() * bytes);
  return getAlignment(type);
}

int64_t Tiler::getAlignment(RankedTensorType type) const {
  int64_t bytes = getElementBytes(type);
  bool vectorized = getLength(type) != 1 && getLength(type) >= shape.rowLength;
  if (!variant.aligned || !vectorized)
    return bytes;
  return std::min(kMaxAlignment, schedule.getVector() * bytes);
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

void Tiler::emitStore(unsigned resultIndex) {
  Value value = getReturn()->getOperand(resultIndex);
  // Partial results are stored at the end, when the program has gone through
  // all of its rows.
  if (auto reduce = value.getDefiningOp<tile::ReduceRowsOp>();
      reduce && reduce.getPartial())
    return;
  auto type = cast<RankedTensorType>(value.getType());
  Value memory = getResultMemory(resultIndex);
  if (auto pack = value.getDefiningOp<tile::PackBandsOp>())
    return emitStore(emit(pack.getInput()), memory, row, type, /*piece=*/0,
                     /*pieces=*/1, pack.getBand());
  auto join = value.getDefiningOp<tile::JoinOp>();
  if (!join)
    return emitStore(emit(value), memory, row, type);
  SmallVector<Value> pieces = llvm::map_to_vector(
      join.getPieces(), [&](Value piece) { return emit(piece); });
  int64_t strands = getStrands(join);
  int64_t parts = pieces.size() / strands;
  for (int64_t part = 0; part < parts; ++part) {
    auto some = ArrayRef(pieces).slice(part * strands, strands);
    Value tile = some.front();
    if (strands > 1)
      tile = tile::JoinOp::create(builder, join.getLoc(),
                                  getTileType(getPartType(type, parts)),
                                  strands, some);
    emitStore(tile, memory, row, type, part, parts);
  }
}

void Tiler::emitStore(Value tile, Value memory, Value firstRow,
                      RankedTensorType type, int64_t piece, int64_t pieces,
                      std::optional<int64_t> band) {
  RankedTensorType part = getPartType(type, pieces);
  int64_t length = getLength(part);
  bool isStatistic = shape.rowLength != 1 && length == 1;
  int64_t width = cast<RankedTensorType>(tile.getType()).getDimSize(1);
  SmallVector<Value> indices{isStatistic ? constantIndex(0) : getColumn(width)};
  if (cast<MemRefType>(memory.getType()).getRank() >= 2)
    indices.insert(indices.begin(), firstRow);
  tile::StoreOp::create(
      builder, tile.getLoc(), tile, memory, indices,
      isMisaligned(part) ? misalignment : Value(),
      builder.getI64IntegerAttr(getAccessAlignment(part)),
      pieces > 1 ? builder.getI64IntegerAttr(piece * length) : nullptr,
      pieces > 1 ? builder.getI64IntegerAttr(length) : nullptr, getSpace(type),
      band ? builder.getI64IntegerAttr(*band) : nullptr);
}

/// The first column of a tile that is `width` wide.
Value Tiler::getColumn(int64_t width) {
  if (width < schedule.getColumns())
    return arith::DivUIOp::create(builder, column,
                                  constantIndex(schedule.getColumns() / width));
  int64_t factor = width / schedule.getColumns();
  if (factor <= 1)
    return column;
  return arith::MulIOp::create(builder, column, constantIndex(factor));
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// Whether `argument` is loaded into registers one group of rows ahead of its
/// use. Where a schedule has more than two stages, whole rows are copied to
/// shared memory instead. An assembler moves a load of memory that never
/// changes past barriers, down to its first use, so loads that are ahead are
/// not marked invariant.
bool Tiler::isLoadedAhead(BlockArgument argument) const {
  auto type = cast<RankedTensorType>(argument.getType());
  return schedule.getStages() > 1 && type.getRank() >= 2 &&
         !shape.isKept(type) && (schedule.getStages() == 2 || !isRow(argument));
}

/// Returns the load that was made ahead for `argument`, if there is one, or
/// makes a new load.
Value Tiler::emitLoad(BlockArgument argument, int64_t piece, int64_t pieces,
                      std::optional<int64_t> band) {
  bool isAhead = isLoadedAhead(argument);
  if (isAhead && !ahead.empty()) {
    Value load = ahead.front();
    ahead = ahead.drop_front();
    return load;
  }
  Value load = createLoad(argument, piece, pieces, band);
  if (isAhead && collected)
    collected->push_back(load);
  return load;
}

Value Tiler::createLoad(BlockArgument argument, int64_t piece, int64_t pieces,
                        std::optional<int64_t> band) {
  auto type = cast<RankedTensorType>(argument.getType());
  RankedTensorType part = getPartType(type, pieces);
  int64_t length = getLength(part);
  RankedTensorType tileType = getTileType(part);
  unsigned index = argument.getArgNumber();
  bool isStatistic = shape.rowLength != 1 && length == 1;
  SmallVector<Value> indices{isStatistic ? constantIndex(0)
                                         : getColumn(tileType.getDimSize(1))};
  if (type.getRank() >= 2)
    indices.insert(indices.begin(), row);
  bool mayChange =
      kernel.getArgAttr(index, tile::TileDialect::kInPlaceAttrName) ||
      isLoadedAhead(argument);
  return tile::LoadOp::create(
      builder, argument.getLoc(), tileType, getMemory(index), indices,
      isMisaligned(part) ? misalignment : Value(),
      builder.getI64IntegerAttr(getAccessAlignment(part)),
      mayChange ? nullptr : builder.getUnitAttr(),
      pieces > 1 ? builder.getI64IntegerAttr(piece * length) : nullptr,
      pieces > 1 ? builder.getI64IntegerAttr(length) : nullptr, getSpace(type),
      band ? builder.getI64IntegerAttr(*band) : nullptr);
}

/// Loads the interleaved pieces of a part together, other pieces one by one.
Value Tiler::emitSplit(tile::SplitOp split, int64_t piece) {
  auto argument = cast<BlockArgument>(split.getInput());
  int64_t strands = getStrands(split);
  int64_t part = piece / strands;
  Value load = emitLoad(argument, part, split.getNumResults() / strands);
  if (strands == 1)
    return load;
  auto type = cast<RankedTensorType>(split.getResultTypes().front());
  SmallVector<Type> types(strands, getTileType(type));
  auto tiles =
      tile::SplitOp::create(builder, split.getLoc(), types, strands, load);
  for (auto [value, tile] : llvm::zip_equal(
           split.getPieces().slice(part * strands, strands), tiles.getPieces()))
    columnScope.map(value, tile);
  return tiles.getPieces()[piece % strands];
}
