//===- Tiler.cpp - The program of one variant of a kernel -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tile/Tiler.h"

#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "passes/tile/RowMask.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

int64_t Tiler::getLength(Type type) {
  return cast<RankedTensorType>(type).getShape().back();
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

/// Whether tiles of a value of `type` are misaligned.
bool Tiler::isMisaligned(RankedTensorType type) const {
  return isMisaligned() && getLength(type) == shape.rowLength;
}

/// Whether `value` is an operand whose rows must have the same misalignment as
/// those of the other operands.
bool Tiler::hasPhase(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  auto argument = dyn_cast<BlockArgument>(value);
  return isMisaligned(type) && type.getRank() >= 2 &&
         (!argument || isRead(argument));
}

/// Makes `newRow` the first row of the current tile.
void Tiler::setRow(Value newRow) {
  row = newRow;
  if (!isMisaligned())
    return;
  // The misalignment is that of any operand, since all agree.
  auto find = [&](auto values) {
    return llvm::find_if(values, [&](Value value) { return hasPhase(value); }) -
           values.begin();
  };
  auto arguments = kernel.getArguments();
  size_t index = find(arguments);
  Value memory = index < arguments.size()
                     ? getMemory(index)
                     : getResultMemory(find(getReturn()->getOperands()));
  misalignment = tile::MisalignmentOp::create(
      builder, kernel.getLoc(),
      RankedTensorType::get({schedule.getRows(), 1}, builder.getI32Type()),
      memory, row, schedule.getVector(), /*space=*/0);
}

/// The tile type of a value of `type`. A row that is split in registers has a
/// tile as many times wider as it has pieces, a group statistic a tile as many
/// times narrower as a group has columns.
RankedTensorType Tiler::getTileType(RankedTensorType type) const {
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
    marks.set(tile::ProgramOp::kSpaceAttrName, space);
  marks.set(tile::ProgramOp::kAlignmentAttrName,
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
      marks.set(tile::ProgramOp::kPhaseAttrName,
                builder.getI64IntegerAttr(schedule.getVector()));
  };
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index) {
    NamedAttrList marks;
    if (kernel.getArgAttr(index, tile::TileDialect::kInPlaceAttrName))
      isInPlace = true;
    else if (!isLoadedAhead(kernel.getArgument(index)))
      marks.set(tile::ProgramOp::kReadOnlyAttrName, builder.getUnitAttr());
    std::optional<int64_t> band = getBand(kernel.getArgument(index));
    if (band)
      marks.set(tile::ProgramOp::kBandAttrName,
                builder.getI64IntegerAttr(*band));
    setPhase(marks, kernel.getArgument(index));
    addOperand(cast<RankedTensorType>(kernel.getArgumentTypes()[index]),
               band.has_value(), marks);
  }
  for (auto [index, result] : llvm::enumerate(getReturn()->getOperands())) {
    NamedAttrList marks;
    auto reduce = result.getDefiningOp<tile::ReduceRowsOp>();
    if (reduce && reduce.getPartial())
      marks.set(tile::ProgramOp::kPartialAttrName, builder.getUnitAttr());
    if (auto pack = result.getDefiningOp<tile::PackBandsOp>())
      marks.set(tile::ProgramOp::kBandAttrName, pack.getBandAttr());
    bool isWithoutGaps = !marks.empty();
    if (kernel.getResultAttr(index, tile::TileDialect::kApproximateAttrName))
      marks.set(tile::TileDialect::kApproximateAttrName, builder.getUnitAttr());
    setPhase(marks, result);
    addOperand(cast<RankedTensorType>(result.getType()), isWithoutGaps, marks);
  }

  program = tile::ProgramOp::create(builder, variant.name,
                                    builder.getFunctionType(operandTypes, {}),
                                    variant.leading, schedule);
  program.setArgAttrsAttr(builder.getArrayAttr(operandMarks));
  if (columnBlocks > 1)
    program.setColumnBlocks(columnBlocks);
  if (shape.band)
    program.setBand(shape.band);
  if (keepsRows) {
    program.setSpaces(spaces);
    program.setCombines(ArrayRef(shape.combinedDimensions));
  } else if (shape.numCombinedRows > 0) {
    program.setRowPrograms(1);
  }
  program.setInPlace(isInPlace);
  Block *body = builder.createBlock(&program.getBody());
  for (Type type : operandTypes)
    body->addArgument(type, kernel.getLoc());
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

tile::ProgramOp Tiler::run() {
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

/// Where an operand is a factor for scaling in place, builds a branch that a
/// factor of 1 skips, and leaves the builder inside of it.
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

/// Builds a loop over the groups of rows from `first` up to `last`, every
/// `step`-th, and returns the accumulators.
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

/// Finds the rows that the program combines to one, and returns their number.
/// They are neighbours, as the sizes of the combined dimensions come last.
Value Tiler::buildCombinedRows() {
  Value count = constantIndex(1);
  for (Value size :
       program.getSizes().take_back(shape.combinedDimensions.size()))
    count = arith::MulIOp::create(builder, count, size);
  firstCombined = arith::MulIOp::create(builder, rowProgram, count);
  endCombined = arith::AddIOp::create(builder, firstCombined, count);
  return count;
}

/// The first row of a group of rows.
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
    buildSweeps();
}

void Tiler::buildWholeRow() {
  // Loads come first: so all of them are under way before the first value is
  // needed, and no load waits behind a reduction's barrier.
  emitArguments();
  // Values that depend on a combination of all rows are computed after the
  // loop.
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
  // Elements of groups need no mask, as a group lies inside or outside of the
  // row as a whole.
  if (reduce.isOfGroups() ||
      (!isMisaligned() && shape.rowLength % schedule.getColumns() == 0))
    return input;
  return maskBeyondRow(builder, reduce, input,
                       {column, shape.rowLength, misalignment});
}

void Tiler::emitArguments() {
  for (BlockArgument argument : kernel.getArguments()) {
    // Rows that are left after a combination are read behind the loop that
    // combines.
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
  // The only element of a row of length 1 has the number 0, wherever the
  // program is along longer rows.
  if (isa<tile::IotaOp>(op))
    return tile::IotaOp::create(builder, op->getLoc(), getTileType(type),
                                /*like=*/Value(),
                                isRow(result) ? column : constantIndex(0),
                                isRow(result) ? misalignment : Value());
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
