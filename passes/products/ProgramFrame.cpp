//===- ProgramFrame.cpp - What all programs over dimensions have ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/products/ProgramFrame.h"

#include "dialect/ElementBytes.h"
#include "dialect/OperandMemory.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/products/Boxes.h"
#include "passes/products/IndexArithmetic.h"
#include "passes/products/StagedTiles.h"
#include "passes/schedule/MatmulRules.h"

using namespace mlir;
using namespace bastile;

/// The rows of a box of a left factor, of a program for at most `mostRows`
/// rows, or for any number if these are 0. The copy engine takes longer for
/// rows beyond the operand than for others, so that boxes are left out where
/// they have none; of more rows, several boxes take longer than one.
static int64_t getBoxRows(tile::KernelOp kernel, const KernelSpace &space,
                          tile::MatmulAttr schedule, int64_t mostRows) {
  constexpr int64_t box = tile::MmaAttr::kWarpRows, ofWarpgroup = 64;
  const int64_t rows = schedule.getRows();
  Block &body = kernel.getBody().front();
  // Rows that nobody has copied are no zeros where a tile before had them.
  if (mostRows == 0 || space.hasComputedLeft() ||
      !body.getOps<tile::ReduceRowsOp>().empty())
    return rows;
  return 2 * mostRows <= rows ? box : std::min(rows, ofWarpgroup);
}

ProgramFrame::ProgramFrame(tile::KernelOp kernel, tile::MatmulAttr schedule,
                           bool onHost, int64_t mostRows)
    : kernel(kernel), schedule(schedule), space(kernel),
      builder(kernel.getLoc(), kernel),
      layout(getSpaceLayout(kernel, schedule, onHost)),
      extents{schedule.getRows(), schedule.getColumns(), schedule.getDepth(),
              getBoxRows(kernel, space, schedule, mostRows),
              schedule.getTileMatrices()},
      operands(kernel, space),
      emitter(builder, kernel, space, operands, layout, extents),
      names(operands.getNames()) {}

//===----------------------------------------------------------------------===//
// What the program takes
//===----------------------------------------------------------------------===//

bool ProgramFrame::isStoredStaged(const Operand &operand) const {
  return operand.isResult && schedule.isStaged() &&
         operand.column != Axis::Streamed &&
         isStagedStore(emitter.getTileType(operand.type, /*ofFactor=*/false));
}

/// Copies to and from shared memory are of 16 bytes where the alignment allows
/// it, and loads of 16-bit elements of pairs.
int64_t ProgramFrame::getAlignment(const Operand &operand) const {
  constexpr int64_t copyBytes = 16, pairBytes = 4;
  const int64_t bytes = getElementBytes(operand.type);
  if (!schedule.isStaged() || operand.column == Axis::None ||
      operand.type.getShape().back() == 1)
    return bytes;
  if (operand.isFactor || isStoredStaged(operand) ||
      (!operand.isResult && operand.column == Axis::Streamed && bytes == 2 &&
       !schedule.isSpecialized()))
    return copyBytes;
  return !operand.isResult && bytes == 2 ? pairBytes : bytes;
}

void ProgramFrame::addOperandType(const Operand &operand) {
  const MemRefType memory = tile::getStridedType(operand.type.getShape(),
                                                 operand.type.getElementType());
  SmallVector<Attribute> dimensions;
  for (unsigned place = 0; place < operand.type.getRank(); ++place)
    dimensions.push_back(operands.getDimension(operand, place));
  NamedAttrList marks;
  marks.set(tile::ProgramOp::kDimensionsAttrName,
            builder.getArrayAttr(dimensions));
  if (operand.isResult &&
      kernel.getResultAttr(operand.index,
                           tile::TileDialect::kApproximateAttrName))
    marks.set(tile::TileDialect::kApproximateAttrName, builder.getUnitAttr());
  const bool isFactor = operand.isFactor && schedule.isSpecialized();
  if (isFactor || (schedule.isSpecialized() && isStoredStaged(operand))) {
    types.push_back(getMapType(memory,
                               isFactor
                                   ? getFactorBox(operand, extents, schedule)
                                   : getResultBox(*this),
                               extents.matrices > 1 && operand.row == Axis::Rows
                                   ? extents.getMatrixRows()
                                   : 0));
  } else {
    types.push_back(memory);
    marks.set(tile::ProgramOp::kAlignmentAttrName,
              builder.getI64IntegerAttr(getAlignment(operand)));
    if (!operand.isResult &&
        !kernel.getArgAttr(operand.index, tile::TileDialect::kInPlaceAttrName))
      marks.set(tile::ProgramOp::kReadOnlyAttrName, builder.getUnitAttr());
  }
  attributes.push_back(marks.getDictionary(builder.getContext()));
}

/// The lengths of the parts of dimensions of which each combination has a
/// program.
DictionaryAttr ProgramFrame::getParts() {
  tile::DotOp dot = space.getDot();
  ArrayRef<Attribute> leader =
      dot ? space.getProjection(dot)
          : operands.getAll()[operands.getResult(0)].projection.getValue();
  NamedAttrList parts;
  for (Attribute place : leader) {
    auto name = dyn_cast<StringAttr>(place);
    if (!name || name == "k")
      continue;
    const int64_t length =
        name == "m"   ? extents.getMatrixRows() * schedule.getRowBlocks()
        : name == "n" ? extents.columns
                      : getPlaces(name);
    parts.set(name, builder.getI64IntegerAttr(length));
  }
  return parts.getDictionary(builder.getContext());
}

tile::ProgramOp ProgramFrame::create(StringRef name) {
  types.append(names.size(), builder.getIndexType());
  attributes.append(names.size(), builder.getDictionaryAttr({}));
  for (const Operand &operand : operands.getAll())
    addOperandType(operand);
  program =
      tile::ProgramOp::create(builder, name, builder.getFunctionType(types, {}),
                              /*leading=*/0, schedule);
  program.setArgAttrsAttr(builder.getArrayAttr(attributes));
  program.setDimensionsAttr(builder.getArrayAttr(names.getArrayRef()));
  program.setProgramsAttr(getParts());
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
    if (kernel.getArgAttr(index, tile::TileDialect::kInPlaceAttrName))
      program.setInPlace(true);
  // Operands of any other alignment are copied in smaller parts.
  if (schedule.isStaged() && !schedule.isSpecialized()) {
    int64_t least = 2;
    for (const Operand &operand : operands.getAll())
      least = std::min(least, getElementBytes(operand.type));
    program.setAlignments(ArrayRef<int64_t>{4, least});
  }
  Block *body = builder.createBlock(&program.getBody());
  for (Type type : types)
    body->addArgument(type, builder.getLoc());
  emitter.setProgram(program);
  return program;
}

//===----------------------------------------------------------------------===//
// Where it is
//===----------------------------------------------------------------------===//

SmallVector<StringAttr> ProgramFrame::getBatch() {
  constexpr unsigned mostAhead = 16;
  const DictionaryAttr parts = *program.getPrograms();
  SmallVector<StringAttr> batch;
  for (unsigned ahead = 0; ahead < mostAhead; ++ahead)
    if (auto name = StringAttr::get(kernel.getContext(), getBatchName(ahead));
        parts.contains(name))
      batch.push_back(name);
  return batch;
}

void ProgramFrame::countTiles() {
  const DictionaryAttr parts = *program.getPrograms();
  auto count = [&](StringRef name) -> Value {
    auto length = parts.getAs<IntegerAttr>(name);
    if (!length)
      return constant(1);
    return arith::CeilDivUIOp::create(builder, emitter.getSize(name),
                                      constant(length.getInt()));
  };
  rowTiles = count("m");
  columnTiles = count("n");
  matrixTiles = arith::MulIOp::create(builder, rowTiles, columnTiles);
}

/// How many places a tile has along dimension `name` of the batch.
int64_t ProgramFrame::getPlaces(StringAttr name) {
  return name.getValue() == getBatchName(0) ? extents.matrices : 1;
}

/// How many parts dimension `name` of the batch has.
Value ProgramFrame::countParts(StringAttr name) {
  Value size = emitter.getSize(name);
  const int64_t places = getPlaces(name);
  return places == 1 ? size
                     : arith::DivUIOp::create(builder, size, constant(places))
                           .getResult();
}

Value ProgramFrame::countMatrices() {
  Value all = constant(1);
  for (StringAttr name : getBatch())
    all = arith::MulIOp::create(builder, all, countParts(name));
  return all;
}

Value ProgramFrame::countMatrices(ArrayRef<unsigned> inputs) {
  SmallVector<StringAttr> names = getBatch();
  llvm::append_range(names, getSummedBatch());
  Value all = constant(1);
  for (StringAttr name : names)
    if (llvm::any_of(inputs, [&](unsigned input) {
          return llvm::is_contained(operands.getAll()[input].projection, name);
        }))
      all = arith::MulIOp::create(builder, all, countParts(name));
  return all;
}

Value ProgramFrame::getAllTiles() {
  return arith::MulIOp::create(builder, matrixTiles, countMatrices());
}

void ProgramFrame::findPlace(Value number, Value blockRow) {
  Value inMatrix = arith::RemUIOp::create(builder, number, matrixTiles);
  number = arith::DivUIOp::create(builder, number, matrixTiles);

  const int64_t bandTiles = 16 / schedule.getRowBlocks();
  Value inBands =
      arith::MulIOp::create(builder, columnTiles, constant(bandTiles));
  Value band = arith::DivUIOp::create(builder, inMatrix, inBands);
  Value inBand = arith::RemUIOp::create(builder, inMatrix, inBands);
  Value first = arith::MulIOp::create(builder, band, constant(bandTiles));
  Value inThisBand =
      arith::MinUIOp::create(builder, constant(bandTiles),
                             arith::SubIOp::create(builder, rowTiles, first));
  Value rowTile = arith::AddIOp::create(
      builder, first, arith::RemUIOp::create(builder, inBand, inThisBand));
  Value columnTile = arith::DivUIOp::create(builder, inBand, inThisBand);
  emitter.row = arith::MulIOp::create(
      builder, rowTile,
      constant(extents.getMatrixRows() * schedule.getRowBlocks()));
  if (blockRow)
    emitter.row = arith::AddIOp::create(builder, emitter.row, blockRow);
  emitter.setColumns(
      arith::MulIOp::create(builder, columnTile, constant(extents.columns)),
      extents.columns);
  findMatrix(number);
}

/// Lets the emitter compute matrix `number` of the batch, or as many matrices
/// as a tile has rows of.
void ProgramFrame::findMatrix(Value number) {
  for (StringAttr name : getBatch()) {
    Value parts = countParts(name);
    emitter.batch[name] = arith::RemUIOp::create(builder, number, parts);
    if (const int64_t places = getPlaces(name); places != 1)
      emitter.batch[name] =
          arith::MulIOp::create(builder, emitter.batch[name], constant(places));
    number = arith::DivUIOp::create(builder, number, parts);
  }
}

void ProgramFrame::findPlaceOfPairs(Value number, bool lastFirst) {
  Value one = constant(1), two = constant(2);
  IndexArithmetic index(builder);
  // Two matrices have their pairs one after the other, and then their tiles in
  // the middle, if these have no pair.
  Value pairedTiles = index.multiply(index.divide(rowTiles, two), two);
  Value ofTwo = index.multiply(rowTiles, two);
  Value firstMatrix = index.multiply(index.divide(number, ofTwo), two);
  Value inTwo = index.getRest(number, ofTwo);
  Value paired = index.multiply(
      index.getSmaller(two, index.subtract(countMatrices(), firstMatrix)),
      pairedTiles);
  Value isPaired =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, inTwo, paired);
  Value divisor = arith::MaxUIOp::create(builder, pairedTiles, one);
  Value matrix =
      arith::SelectOp::create(builder, isPaired, index.divide(inTwo, divisor),
                              index.subtract(inTwo, paired));
  Value place = arith::SelectOp::create(
      builder, isPaired, index.getRest(inTwo, divisor), pairedTiles);
  Value fromEnd = index.divide(place, two);
  Value fromOtherEnd = index.subtract(index.subtract(rowTiles, one), fromEnd);
  Value isLonger =
      arith::CmpIOp::create(builder, arith::CmpIPredicate::eq,
                            index.getRest(place, two), constant(0));
  Value rowTile =
      lastFirst
          ? arith::SelectOp::create(builder, isLonger, fromOtherEnd, fromEnd)
          : arith::SelectOp::create(builder, isLonger, fromEnd, fromOtherEnd);
  setTile(rowTile, index.add(firstMatrix, matrix));
}

void ProgramFrame::findPlaceOfRows(Value number, bool lastFirst) {
  Value matrices = countMatrices();
  Value rowTile = arith::DivUIOp::create(builder, number, matrices);
  if (lastFirst)
    rowTile = arith::SubIOp::create(
        builder, arith::SubIOp::create(builder, rowTiles, constant(1)),
        rowTile);
  setTile(rowTile, arith::RemUIOp::create(builder, number, matrices));
}

void ProgramFrame::setTile(Value rowTile, Value matrix) {
  emitter.row = arith::MulIOp::create(builder, rowTile,
                                      constant(extents.getMatrixRows()));
  emitter.setColumns(constant(0), extents.columns);
  findMatrix(matrix);
}

SmallVector<Value> ProgramFrame::getPlace() {
  SmallVector<Value> place{emitter.row};
  if (hasColumnTiles())
    place.push_back(emitter.column);
  for (StringAttr name : getBatch())
    place.push_back(emitter.batch[name]);
  return place;
}

int64_t ProgramFrame::countPlace() {
  return (hasColumnTiles() ? 2 : 1) + static_cast<int64_t>(getBatch().size());
}

ArrayRef<Value> ProgramFrame::setPlace(ArrayRef<Value> place) {
  auto take = [&]() {
    Value first = place.front();
    place = place.drop_front();
    return first;
  };
  emitter.row = take();
  emitter.setColumns(hasColumnTiles() ? take() : constant(0), extents.columns);
  for (StringAttr name : getBatch())
    emitter.batch[name] = take();
  return place;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

SmallVector<StringAttr> ProgramFrame::getSummedBatch() {
  const DictionaryAttr parts = *program.getPrograms();
  SmallVector<StringAttr> summed;
  for (Attribute name : names)
    if (auto text = cast<StringAttr>(name);
        text.getValue().starts_with("b") && !parts.contains(text))
      summed.push_back(text);
  return summed;
}

SmallVector<Value> ProgramFrame::buildOverBatch(ArrayRef<StringAttr> summed,
                                                ValueRange initial, Body body) {
  if (summed.empty())
    return body(initial);
  // What the loop computes ahead of another one is not there behind it.
  SpaceEmitter::Scope scope(emitter);
  auto loop =
      scf::ForOp::create(builder, constant(0), emitter.getSize(summed.front()),
                         constant(1), initial);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  emitter.batch[summed.front()] = mirror(loop.getInductionVar(), constant(0),
                                         emitter.getSize(summed.front()));
  SmallVector<Value> after =
      buildOverBatch(summed.drop_front(), loop.getRegionIterArgs(), body);
  scf::YieldOp::create(builder, after);
  return SmallVector<Value>(loop.getResults());
}

Value ProgramFrame::mirror(Value place, Value first, Value end) {
  if (!reversed)
    return place;
  Value last = arith::SubIOp::create(
      builder, arith::AddIOp::create(builder, first, end), constant(1));
  return arith::SelectOp::create(
      builder, reversed, arith::SubIOp::create(builder, last, place), place);
}

/// The place along k where `step` begins.
Value ProgramFrame::getStream(Value step, Value origin) {
  Value place =
      arith::MulIOp::create(builder, step, constant(extents.streamed));
  return origin ? arith::AddIOp::create(builder, origin, place).getResult()
                : place;
}

SmallVector<Value> ProgramFrame::buildOverSteps(Value first, Value end,
                                                ValueRange initial, Body body,
                                                Value origin, int64_t ahead) {
  Value begin = first;
  if (ahead != 0)
    begin = arith::AddIOp::create(builder, first, constant(ahead));
  auto loop = scf::ForOp::create(builder, begin, end, constant(1), initial);
  emitter.enterLoop(loop);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    emitter.stream =
        getStream(mirror(loop.getInductionVar(), first, end), origin);
    scf::YieldOp::create(builder, body(loop.getRegionIterArgs()));
  }
  emitter.leaveLoop();
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value> ProgramFrame::buildStep(
    Value number, llvm::function_ref<SmallVector<Value>()> body, Value origin) {
  emitter.stream = getStream(number, origin);
  // What is not streamed belongs ahead of the step, as of a loop.
  emitter.enterLoop(emitter.stream.getDefiningOp());
  SmallVector<Value> after = body();
  emitter.leaveLoop();
  return after;
}
