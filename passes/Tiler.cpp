//===- Tiler.cpp - The program of one variant of a kernel -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Tiler.h"

#include "dialect/ElementBytes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "passes/RowMask.h"
#include "passes/Sizes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

/// The widest access that any target has.
static constexpr int64_t kMaxAlignment = 16;

static int64_t getLength(Type type) {
  return cast<RankedTensorType>(type).getShape().back();
}

/// The type of one of `count` contiguous parts of a row of `type`.
static RankedTensorType getPartType(RankedTensorType type, int64_t count) {
  SmallVector<int64_t> sizes(type.getShape());
  sizes.back() /= count;
  return type.clone(sizes);
}

/// How many neighbouring pieces of `op` share a part of the row, element by
/// element. Pieces of a single element lie one after another.
template <typename Op>
static int64_t getStrands(Op op) {
  return getLength(op.getPieces().front().getType()) == 1 ? 1 : op.getStrands();
}

Tiler::Tiler(tile::KernelOp kernel, const TileVariant &variant)
    : kernel(kernel), variant(variant), shape(KernelShape::get(kernel)),
      schedule(variant.schedule), builder(kernel.getLoc(), kernel) {}

Value Tiler::constantIndex(int64_t value) {
  return arith::ConstantIndexOp::create(builder, value);
}

Value Tiler::getNeutralTile(RankedTensorType type, tile::ReduceKind kind) {
  Attribute neutral = tile::ReduceOp::getNeutral(kind, type.getElementType());
  return arith::ConstantOp::create(builder,
                                   DenseElementsAttr::get(type, neutral));
}

Value Tiler::getRowCount() {
  return buildRowCount(builder, builder.getLoc(), program);
}

/// The rows that share a row of `argument`, if it is read as packed bands.
static std::optional<int64_t> getBand(BlockArgument argument) {
  for (OpOperand &use : argument.getUses())
    if (auto repeat = dyn_cast<tile::RepeatBandsOp>(use.getOwner());
        repeat && getSizeOperand(repeat) != &use)
      return repeat.getBand();
  return std::nullopt;
}

/// Whether `value` differs between the columns of a row.
bool Tiler::isRow(Value value) const {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && (shape.rowLength == 1 || getLength(type) != 1);
}

/// Whether a tile of a value of `type` is shifted.
bool Tiler::isShifted(RankedTensorType type) const {
  return isShifted() && getLength(type) == shape.rowLength;
}

/// Whether `value` is an operand whose rows are to begin behind an aligned
/// address as far as those of the others.
bool Tiler::hasPhase(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  auto argument = dyn_cast<BlockArgument>(value);
  return isShifted(type) && type.getRank() >= 2 &&
         (!argument || isRead(argument));
}

/// Goes on with the tile whose first row is `newRow`.
void Tiler::setRow(Value newRow) {
  row = newRow;
  if (!isShifted())
    return;
  // Any operand will do: they agree.
  auto find = [&](auto values) {
    return llvm::find_if(values, [&](Value value) { return hasPhase(value); }) -
           values.begin();
  };
  auto arguments = kernel.getArguments();
  size_t index = find(arguments);
  Value memory = index < arguments.size()
                     ? getMemory(index)
                     : getResultMemory(find(getReturn()->getOperands()));
  shift = tile::ShiftOp::create(
      builder, kernel.getLoc(),
      RankedTensorType::get({schedule.getRows(), 1}, builder.getI32Type()),
      memory, row, schedule.getVector(), /*space=*/0);
}

/// What a shifted access begins at is aligned, not the row.
int64_t Tiler::getAccessAlignment(RankedTensorType type) const {
  int64_t bytes = getElementBytes(type);
  if (isShifted(type) && type.getRank() >= 2)
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

/// A whole row that is taken apart in registers has a tile as many times wider,
/// a group statistic one as many times narrower.
RankedTensorType Tiler::getTileType(RankedTensorType type) const {
  // Rows that are shifted have the columns that all share at other places each.
  bool hasRows =
      (type.getRank() >= 2 && !shape.isKept(type)) || isShifted(type);
  int64_t rows = hasRows ? schedule.getRows() : 1;
  int64_t length = getLength(type), columns = schedule.getColumns();
  // Where groups do not divide the tile, the layout says how many columns they
  // have: the shape does not.
  if (int64_t group = shape.rowLength / length;
      length != 1 && group > 1 && columns % group != 0) {
    const ThreadGrid grid = variant.grid.value_or(ThreadGrid{1, 1, 1});
    return RankedTensorType::get(
        {rows, static_cast<int64_t>(llvm::divideCeil(columns, group))},
        type.getElementType(),
        tile::BlockedAttr::get(builder.getContext(), schedule.getVector(),
                               grid.rows, grid.columns, grid.blocks, group,
                               columns));
  }
  columns = shape.rowLength == 1 || length != 1
                ? columns * length / shape.rowLength
                : 1;
  return RankedTensorType::get({rows, columns}, type.getElementType());
}

//===----------------------------------------------------------------------===//
// The program's signature
//===----------------------------------------------------------------------===//

void Tiler::addOperand(RankedTensorType type, bool isWithoutGaps,
                       NamedAttrList marks) {
  MemRefLayoutAttrInterface layout;
  SmallVector<int64_t> sizes{getLength(type)};
  if (isWithoutGaps) {
    sizes.insert(sizes.begin(), ShapedType::kDynamic);
  } else if (type.getRank() >= 2) {
    sizes.insert(sizes.begin(), variant.leading, ShapedType::kDynamic);
    SmallVector<int64_t> strides(variant.leading, ShapedType::kDynamic);
    strides.push_back(1);
    layout = StridedLayoutAttr::get(builder.getContext(), 0, strides);
  }
  operandTypes.push_back(MemRefType::get(sizes, type.getElementType(), layout));
  if (IntegerAttr space = getSpace(type))
    marks.set(tile::TileDialect::kSpaceAttrName, space);
  marks.set(tile::TileDialect::kAlignmentAttrName,
            builder.getI64IntegerAttr(getAlignment(type)));
  operandMarks.push_back(marks.getDictionary(builder.getContext()));
}

void Tiler::createProgram() {
  bool keepsRows = !shape.combinedDimensions.empty();
  int64_t spaces = keepsRows ? 2 : 1;
  operandTypes.append(spaces * variant.leading, builder.getIndexType());
  operandMarks.append(spaces * variant.leading, builder.getDictionaryAttr({}));
  bool isInPlace = false;
  auto setPhase = [&](NamedAttrList &marks, Value value) {
    if (hasPhase(value))
      marks.set(tile::TileDialect::kPhaseAttrName,
                builder.getI64IntegerAttr(schedule.getVector()));
  };
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
    NamedAttrList marks;
    if (kernel.getArgAttr(index, tile::TileDialect::kInPlaceAttrName))
      isInPlace = true;
    else if (!isLoadedAhead(kernel.getArgument(index)))
      marks.set(tile::TileDialect::kReadOnlyAttrName, builder.getUnitAttr());
    std::optional<int64_t> band = getBand(kernel.getArgument(index));
    if (band)
      marks.set(tile::TileDialect::kBandAttrName,
                builder.getI64IntegerAttr(*band));
    setPhase(marks, kernel.getArgument(index));
    addOperand(cast<RankedTensorType>(kernel.getArgumentTypes()[index]),
               band.has_value(), marks);
  }
  for (auto [index, result] : llvm::enumerate(getReturn()->getOperands())) {
    NamedAttrList marks;
    auto reduce = result.getDefiningOp<tile::ReduceRowsOp>();
    if (reduce && reduce.getPartial())
      marks.set(tile::TileDialect::kPartialAttrName, builder.getUnitAttr());
    if (auto pack = result.getDefiningOp<tile::PackBandsOp>())
      marks.set(tile::TileDialect::kBandAttrName, pack.getBandAttr());
    bool isWithoutGaps = !marks.empty();
    if (kernel.getResultAttr(index, tile::TileDialect::kApproximateAttrName))
      marks.set(tile::TileDialect::kApproximateAttrName, builder.getUnitAttr());
    setPhase(marks, result);
    addOperand(cast<RankedTensorType>(result.getType()), isWithoutGaps, marks);
  }

  program = tile::KernelOp::create(builder, variant.name,
                                   builder.getFunctionType(operandTypes, {}));
  program.setScheduleAttr(schedule);
  program.setLeadingAttr(builder.getI64IntegerAttr(variant.leading));
  program.setArgAttrsAttr(builder.getArrayAttr(operandMarks));
  if (columnBlocks > 1)
    program.setColumnBlocksAttr(builder.getI64IntegerAttr(columnBlocks));
  if (shape.band)
    program.setBandAttr(builder.getI64IntegerAttr(shape.band));
  if (keepsRows) {
    program.setSpacesAttr(builder.getI64IntegerAttr(spaces));
    program.setCombines(ArrayRef(shape.combinedDimensions));
  } else if (shape.numCombinedRows > 0) {
    program.setRowProgramsAttr(builder.getI64IntegerAttr(1));
  }
  if (isInPlace)
    program->setAttr(tile::TileDialect::kInPlaceAttrName,
                     builder.getUnitAttr());
  Block *body = builder.createBlock(&program.getBody());
  for (Type type : operandTypes)
    body->addArgument(type, kernel.getLoc());
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

tile::KernelOp Tiler::run() {
  // Without reductions, tiles are independent along the row too.
  if (shape.numReductions == 0)
    columnBlocks = llvm::divideCeil(getSpan(), schedule.getColumns());
  rowReductions =
      llvm::to_vector(kernel.getBody().front().getOps<tile::ReduceRowsOp>());
  createProgram();
  scf::IfOp work = buildGuard();

  Value id = tile::ProgramIdOp::create(builder);
  column = constantIndex(0);
  if (columnBlocks > 1) {
    Value count = constantIndex(columnBlocks);
    column = arith::RemUIOp::create(builder, id, count);
    column = arith::MulIOp::create(builder, column,
                                   constantIndex(schedule.getColumns()));
    id = arith::DivUIOp::create(builder, id, count);
  }
  if (schedule.getPersistent() == 0) {
    rowProgram = id;
    buildRows(id);
    finishAccumulators(accumulated);
  } else {
    buildPersistentRows(id);
  }
  if (work)
    builder.setInsertionPointAfter(work);
  tile::ReturnOp::create(builder, ValueRange());
  return program;
}

/// Where an operand is a factor, builds the branch that its being 1 in place
/// leaves out, and goes on inside.
scf::IfOp Tiler::buildGuard() {
  Value factor;
  SmallVector<Value> inputs, outputs;
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
    if (kernel.getArgAttr(index, tile::TileDialect::kFactorAttrName))
      factor = getMemory(index);
    if (auto result = kernel.getArgAttrOfType<IntegerAttr>(
            index, tile::TileDialect::kInPlaceAttrName)) {
      inputs.push_back(getMemory(index));
      outputs.push_back(getResultMemory(result.getInt()));
    }
  }
  if (!factor)
    return {};
  Value isDone = tile::IsDoneOp::create(builder, factor, inputs, outputs);
  Value isLeft = arith::XOrIOp::create(
      builder, isDone, arith::ConstantIntOp::create(builder, 1, /*width=*/1));
  auto branch = scf::IfOp::create(builder, isLeft, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(branch.thenBlock());
  return branch;
}

void Tiler::buildPersistentRows(Value id) {
  rowProgram = id;
  Value step = constantIndex(1), first = rowProgram, rows;
  if (shape.numCombinedRows > 0) {
    first = constantIndex(0);
    if (!shape.combinedDimensions.empty())
      rows = buildCombinedRows();
  } else {
    step = tile::ProgramCountOp::create(builder);
    if (columnBlocks > 1)
      step = arith::DivUIOp::create(builder, step, constantIndex(columnBlocks));
  }
  if (!rows)
    rows = getRowCount();
  Value groups = arith::CeilDivUIOp::create(
      builder, rows, constantIndex(program.getRowsPerProgram()));
  for (tile::ReduceRowsOp reduce : rowReductions)
    if (!isInRegisters(reduce))
      clearInMemory(reduce);
  SmallVector<Value> sums;
  if (llvm::any_of(rowReductions, [&](tile::ReduceRowsOp reduce) {
        return isCompensated(reduce);
      }))
    sums = buildBlocksOfRows(first, groups, step);
  else if (schedule.getStages() > 1)
    sums = buildStagedLoop(first, groups, step);
  else
    sums = buildLoopOverRows(first, groups, step);
  rowScope.clear();
  columnScope.clear();
  finishAccumulators(sums);
}

/// Combines the groups of rows from `first` on, every `step`-th, up to `last`.
SmallVector<Value> Tiler::buildLoopOverRows(Value first, Value last,
                                            Value step) {
  SmallVector<Value> initial = createAccumulators();
  auto loop = scf::ForOp::create(builder, first, last, step, initial);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  accumulators = loop.getRegionIterArgs();
  buildRows(loop.getInductionVar());
  if (!initial.empty())
    scf::YieldOp::create(builder, accumulated);
  return llvm::to_vector_of<Value>(loop.getResults());
}

/// Finds the rows that the program combines to one, and returns how many they
/// are. They follow each other: sizes of what is combined come last.
Value Tiler::buildCombinedRows() {
  Value count = constantIndex(1);
  for (Value size :
       program.getSizes().take_back(shape.combinedDimensions.size()))
    count = arith::MulIOp::create(builder, count, size);
  firstCombined = arith::MulIOp::create(builder, rowProgram, count);
  endCombined = arith::AddIOp::create(builder, firstCombined, count);
  return count;
}

/// The first row of a group of them.
Value Tiler::getFirstRow(Value group) {
  Value first =
      arith::MulIOp::create(builder, group, constantIndex(schedule.getRows()));
  return firstCombined ? arith::AddIOp::create(builder, firstCombined, first)
                       : first;
}

void Tiler::buildRows(Value group) {
  if (shape.band > schedule.getRows())
    return buildBand(group);
  setRow(getFirstRow(group));
  if (shape.numReductions == 0 || schedule.getColumns() >= getSpan())
    buildWholeRow();
  else
    buildPasses();
}

void Tiler::buildWholeRow() {
  // Loads first, so that all of them are under way before the first value is
  // needed, and none waits behind a reduction's barrier.
  emitArguments();
  // What follows a combination of all rows waits for the end of the loop.
  if (shape.numCombinedRows == 0) {
    for (Operation &op : kernel.getBody().front().without_terminator())
      if (!isa<tile::ReduceRowsOp, tile::JoinOp, tile::PackBandsOp>(op))
        for (OpResult result : op.getResults())
          emit(result);
    for (unsigned index = 0; index < getReturn()->getNumOperands(); ++index)
      emitStore(index);
  }
  accumulate();
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Value Tiler::emitMasked(tile::ReduceOp reduce) {
  Value input = emit(reduce.getInput());
  // A group lies inside the row or outside as a whole.
  if (reduce.isOfGroups() ||
      (!isShifted() && shape.rowLength % schedule.getColumns() == 0))
    return input;
  return maskBeyondRow(builder, reduce, input,
                       {column, shape.rowLength, shift});
}

void Tiler::emitStore(unsigned resultIndex) {
  Value value = getReturn()->getOperand(resultIndex);
  // Partial results are stored once the program has seen all of its rows.
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
      isShifted(part) ? shift : Value(),
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

/// Whether `argument` is loaded into registers ahead of its use, beyond
/// barriers; what more than two stages read of rows goes through shared memory.
/// An assembler would delay the load of what never changes until it is needed.
bool Tiler::isLoadedAhead(BlockArgument argument) const {
  auto type = cast<RankedTensorType>(argument.getType());
  return schedule.getStages() > 1 && type.getRank() >= 2 &&
         !shape.isKept(type) && (schedule.getStages() == 2 || !isRow(argument));
}

/// Loads that depend on the row may have been made ahead.
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
      isShifted(part) ? shift : Value(),
      builder.getI64IntegerAttr(getAccessAlignment(part)),
      mayChange ? nullptr : builder.getUnitAttr(),
      pieces > 1 ? builder.getI64IntegerAttr(piece * length) : nullptr,
      pieces > 1 ? builder.getI64IntegerAttr(length) : nullptr, getSpace(type),
      band ? builder.getI64IntegerAttr(*band) : nullptr);
}

void Tiler::emitArguments() {
  for (BlockArgument argument : kernel.getArguments()) {
    // Rows that are left are read once those that are combined are.
    if (shape.isKept(cast<RankedTensorType>(argument.getType())))
      continue;
    bool isRead = false;
    for (OpOperand &use : argument.getUses()) {
      Operation *user = use.getOwner();
      if (auto split = dyn_cast<tile::SplitOp>(user))
        for (Value piece : split.getPieces())
          emit(piece);
      else if (isa<tile::RepeatBandsOp>(user) && getSizeOperand(user) != &use)
        emit(user->getResult(0));
      else if (getSizeOperand(user) != &use)
        isRead = true;
    }
    if (isRead)
      emit(argument);
  }
}

Value Tiler::emit(Value value) {
  if (Value tile = bandScope.lookupOrNull(value))
    return tile;
  IRMapping &scope = isRow(value) ? columnScope : rowScope;
  if (Value tile = scope.lookupOrNull(value))
    return tile;
  OpBuilder::InsertionGuard guard(builder);
  if (columnLoop && !isRow(value))
    builder.setInsertionPoint(columnLoop);

  Value tile;
  if (auto argument = dyn_cast<BlockArgument>(value))
    tile = emitLoad(argument);
  else
    tile = emitOp(value.getDefiningOp(), cast<OpResult>(value));
  scope.map(value, tile);
  return tile;
}

/// The interleaved pieces of a part come out of one load, others are loaded
/// apart.
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

Value Tiler::emitOp(Operation *op, OpResult result) {
  auto type = dyn_cast<RankedTensorType>(result.getType());
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return emitReduction(reduce);
  if (auto reduce = dyn_cast<tile::ReduceBandsOp>(op))
    return emitBandReduction(reduce);
  if (auto repeat = dyn_cast<tile::RepeatBandsOp>(op))
    return emitLoad(cast<BlockArgument>(repeat.getSource()), /*piece=*/0,
                    /*pieces=*/1, repeat.getBand());
  if (auto split = dyn_cast<tile::SplitOp>(op))
    return emitSplit(split, result.getResultNumber());
  // The one element of a row that is no longer is its first, wherever the
  // program is along the others.
  if (isa<tile::IotaOp>(op))
    return tile::IotaOp::create(builder, op->getLoc(), getTileType(type),
                                /*like=*/Value(),
                                isRow(result) ? column : constantIndex(0),
                                isRow(result) ? shift : Value());
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op)) {
    Value source = emit(broadcast.getSource());
    if (source.getType() == getTileType(type))
      return source;
    return tile::BroadcastOp::create(builder, op->getLoc(), getTileType(type),
                                     source, Value());
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(op); constant && type) {
    auto splat = cast<SplatElementsAttr>(constant.getValue());
    return arith::ConstantOp::create(builder, op->getLoc(),
                                     splat.resizeSplat(getTileType(type)));
  }
  IRMapping operands;
  for (Value operand : op->getOperands())
    operands.map(operand, emit(operand));
  Operation *clone = builder.clone(*op, operands);
  for (Value cloned : clone->getResults())
    if (auto tensor = dyn_cast<RankedTensorType>(cloned.getType()))
      cloned.setType(getTileType(tensor));
  return clone->getResult(result.getResultNumber());
}
