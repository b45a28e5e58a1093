//===- TileAccesses.cpp - Loads and stores of a program -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/tile/CopyAhead.h"
#include "passes/tile/TileEmitter.h"

using namespace mlir;
using namespace bastile;

/// The elements of one of `count` contiguous parts of a row of `value`.
static int64_t getPartLength(Value value, int64_t count) {
  return cast<RankedTensorType>(value.getType()).getShape().back() / count;
}

/// How many neighbouring pieces of `op` are interleaved, element by element, in
/// each part of the row. Pieces of a single element count as lying one after
/// another.
template <typename Op>
static int64_t getStrands(Op op) {
  auto piece = cast<RankedTensorType>(op.getPieces().front().getType());
  return piece.getShape().back() == 1 ? 1 : op.getStrands();
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

void TileEmitter::emitStore(unsigned index) {
  Value value = tiling.getReturn()->getOperand(index);
  // Partial results are stored at the end, when the program has gone through
  // all of its rows.
  if (auto reduce = value.getDefiningOp<tile::ReduceRowsOp>();
      reduce && reduce.getPartial())
    return;
  Value memory = getResultMemory(index);
  if (auto pack = value.getDefiningOp<tile::PackBandsOp>())
    return emitStore(emit(pack.getInput()), memory, row, value, /*piece=*/0,
                     /*pieces=*/1, pack.getBand());
  auto join = value.getDefiningOp<tile::JoinOp>();
  if (!join)
    return emitStore(emit(value), memory, row, value);
  SmallVector<Value> pieces = llvm::map_to_vector(
      join.getPieces(), [&](Value piece) { return emit(piece); });
  int64_t strands = getStrands(join);
  int64_t parts = pieces.size() / strands;
  for (int64_t part = 0; part < parts; ++part) {
    auto some = ArrayRef(pieces).slice(part * strands, strands);
    Value tile = some.front();
    if (strands > 1)
      tile =
          tile::JoinOp::create(builder, join.getLoc(),
                               tiling.getTileType(value, parts), strands, some);
    emitStore(tile, memory, row, value, part, parts);
  }
}

void TileEmitter::emitStores() {
  for (unsigned index = 0; index < tiling.getReturn()->getNumOperands();
       ++index)
    emitStore(index);
}

void TileEmitter::emitStore(Value tile, Value memory, Value firstRow,
                            Value value, int64_t piece, int64_t pieces,
                            std::optional<int64_t> band) {
  int64_t length = getPartLength(value, pieces);
  int64_t width = cast<RankedTensorType>(tile.getType()).getDimSize(1);
  SmallVector<Value> indices{tiling.isStatistic(value, pieces)
                                 ? constantIndex(0)
                                 : getFirstColumn(width)};
  if (cast<MemRefType>(memory.getType()).getRank() >= 2)
    indices.insert(indices.begin(), firstRow);
  tile::StoreOp::create(
      builder, tile.getLoc(), tile, memory, indices,
      tiling.isMisaligned(value, pieces) ? misalignment : Value(),
      builder.getI64IntegerAttr(tiling.getAccessAlignment(value, pieces)),
      pieces > 1 ? builder.getI64IntegerAttr(piece * length) : nullptr,
      pieces > 1 ? builder.getI64IntegerAttr(length) : nullptr,
      tiling.getSpace(value),
      band ? builder.getI64IntegerAttr(*band) : nullptr);
}

/// The first column of a tile that is `width` wide.
Value TileEmitter::getFirstColumn(int64_t width) {
  if (width < tiling.schedule.getColumns())
    return arith::DivUIOp::create(
        builder, column, constantIndex(tiling.schedule.getColumns() / width));
  int64_t factor = width / tiling.schedule.getColumns();
  if (factor <= 1)
    return column;
  return arith::MulIOp::create(builder, column, constantIndex(factor));
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// Returns the load that was made ahead for `argument`, if there is one, or
/// makes a new load.
Value TileEmitter::emitLoad(BlockArgument argument, int64_t piece,
                            int64_t pieces, std::optional<int64_t> band) {
  bool isAhead = tiling.isLoadedAhead(argument);
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

Value TileEmitter::createLoad(BlockArgument argument, int64_t piece,
                              int64_t pieces, std::optional<int64_t> band) {
  int64_t length = getPartLength(argument, pieces);
  RankedTensorType tileType = tiling.getTileType(argument, pieces);
  unsigned index = argument.getArgNumber();
  SmallVector<Value> indices{tiling.isStatistic(argument, pieces)
                                 ? constantIndex(0)
                                 : getFirstColumn(tileType.getDimSize(1))};
  if (isRowTensor(argument))
    indices.insert(indices.begin(), row);
  const bool isInvariant = program.isArgReadOnly(program.getNumSizes() + index);
  auto load = tile::LoadOp::create(
      builder, argument.getLoc(), tileType, getMemory(index), indices,
      tiling.isMisaligned(argument, pieces) ? misalignment : Value(),
      builder.getI64IntegerAttr(tiling.getAccessAlignment(argument, pieces)),
      isInvariant ? builder.getUnitAttr() : nullptr,
      pieces > 1 ? builder.getI64IntegerAttr(piece * length) : nullptr,
      pieces > 1 ? builder.getI64IntegerAttr(length) : nullptr,
      tiling.getSpace(argument),
      band ? builder.getI64IntegerAttr(*band) : nullptr,
      /*transposed=*/nullptr);
  markRowTiles(load, argument, piece, pieces);
  return load;
}

/// Says of `load`, in a loop along the row, which tiles it loads, if the
/// schedule has rows stay in shared memory for the next sweep. Several threads
/// hold each statistic, which is left out.
void TileEmitter::markRowTiles(tile::LoadOp load, BlockArgument argument,
                               int64_t piece, int64_t pieces) {
  if (!tiles.getLoop() || tiling.schedule.getReread() != tile::Reread::Shared ||
      !isRowTensor(argument) || tiling.isStatistic(argument, pieces) ||
      tiling.space.getGroup(argument) > 1)
    return;
  const std::tuple loaded(argument.getArgNumber(), piece, pieces);
  loadedTiles.insert(loaded);
  const auto number = llvm::find(loadedTiles, loaded) - loadedTiles.begin();
  load->setAttr(kRowTilesAttrName, builder.getI64IntegerAttr(number));
}

/// Loads the interleaved pieces of a part together, other pieces one by one.
Value TileEmitter::emitSplit(tile::SplitOp split, int64_t piece) {
  auto argument = cast<BlockArgument>(split.getInput());
  int64_t strands = getStrands(split);
  int64_t part = piece / strands;
  Value load = emitLoad(argument, part, split.getNumResults() / strands);
  if (strands == 1)
    return load;
  SmallVector<Type> types(strands,
                          tiling.getTileType(split.getPieces().front()));
  auto loaded =
      tile::SplitOp::create(builder, split.getLoc(), types, strands, load);
  for (auto [value, tile] :
       llvm::zip_equal(split.getPieces().slice(part * strands, strands),
                       loaded.getPieces()))
    tiles.map(value, tile, /*isInside=*/true);
  return loaded.getPieces()[piece % strands];
}
