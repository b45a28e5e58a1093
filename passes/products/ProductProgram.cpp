//===- ProductProgram.cpp - The program of a kernel over dimensions -------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// There is a program for each tile of rows, m, and of columns, n, of each
// matrix of the batch, whose dimensions are b0, b1, ... from the last one on.
// It goes along k in a loop, or in several where a reduction waits for another
// one. A value is computed in the innermost loop along whose dimension it has
// elements.
//
//===----------------------------------------------------------------------===//

#include "passes/products/ProductProgram.h"

#include "dialect/ElementBytes.h"
#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/products/StreamLoop.h"
#include "passes/products/StreamSums.h"
#include "passes/schedule/MatmulRules.h"

using namespace mlir;
using namespace bastile;

namespace {

class ProgramBuilder {
public:
  ProgramBuilder(tile::KernelOp kernel, bool onHost)
      : kernel(kernel), space(kernel), following(kernel.getBody().front()),
        schedule(cast<tile::MatmulAttr>(*kernel.getSchedule())),
        builder(kernel.getLoc(), kernel),
        layout(getSpaceLayout(kernel, onHost)),
        extents{schedule.getRows(), schedule.getColumns(), schedule.getDepth()},
        operands(kernel, space), names(operands.getNames()),
        emitter(builder, kernel, space, operands, layout, extents) {
    following.noteDepths(depths);
  }

  tile::ProgramOp build(tile::LaunchOp launch);

private:
  void addOperandType(const Operand &operand);
  DictionaryAttr getParts();
  void createProgram();
  int64_t getAlignment(const Operand &operand) const;
  void findPlace();

  SmallVector<StringAttr> getSummedBatch();
  SmallVector<Value>
  buildOverBatch(ArrayRef<StringAttr> summed, ValueRange initial,
                 llvm::function_ref<SmallVector<Value>(ValueRange)> body);
  void emitLoadedProducts();
  int64_t getSweep(Operation *op);
  void buildSweep(int64_t sweep);
  llvm::SetVector<Operation *> findStreamed(ArrayRef<Value> values);
  void stage(StreamLoop &loop, ArrayRef<Operation *> sums,
             ArrayRef<Value> values);

  int64_t countParts();
  void emitElements();
  void emitInParts(int64_t parts);
  void emitStore(unsigned result, Value tile);
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, value);
  }
  /// Whether tensor cores multiply tiles in shared memory.
  bool isStaged() const { return schedule.isStaged(); }
  Operation *getTerminator() {
    return kernel.getBody().front().getTerminator();
  }

  tile::KernelOp kernel;
  const KernelSpace space;
  const FollowingSums following;
  tile::MatmulAttr schedule;
  ImplicitLocOpBuilder builder;
  Attribute layout;
  const Extents extents;
  const ProgramOperands operands;
  const llvm::SetVector<Attribute> names;
  SmallVector<Type> types;
  SmallVector<Attribute> attributes;
  tile::ProgramOp program;
  SpaceEmitter emitter;
  /// The reductions that values wait for.
  DenseMap<Value, int64_t> depths;
  /// The first byte of shared memory that stores of results may use.
  int64_t freeShared = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// What the program takes
//===----------------------------------------------------------------------===//

/// Copies to and from shared memory are of 16 bytes where the alignment allows
/// it, and loads of 16-bit elements of pairs.
int64_t ProgramBuilder::getAlignment(const Operand &operand) const {
  constexpr int64_t copyBytes = 16, pairBytes = 4;
  const int64_t bytes = getElementBytes(operand.type);
  if (!isStaged() || operand.column == Axis::None)
    return bytes;
  const bool isStored =
      operand.isResult && operand.column != Axis::Streamed &&
      isStagedStore(emitter.getTileType(operand.type, /*ofFactor=*/false));
  if (operand.isFactor || isStored ||
      (!operand.isResult && operand.column == Axis::Streamed && bytes == 2))
    return copyBytes;
  return !operand.isResult && bytes == 2 ? pairBytes : bytes;
}

void ProgramBuilder::addOperandType(const Operand &operand) {
  const int64_t rank = operand.type.getRank();
  MemRefLayoutAttrInterface memoryLayout;
  if (rank > 1) {
    SmallVector<int64_t> strides(rank, ShapedType::kDynamic);
    strides.back() = 1;
    memoryLayout = StridedLayoutAttr::get(builder.getContext(), 0, strides);
  }
  types.push_back(MemRefType::get(operand.type.getShape(),
                                  operand.type.getElementType(), memoryLayout));
  SmallVector<Attribute> dimensions;
  for (unsigned place = 0; place < rank; ++place)
    dimensions.push_back(operands.getDimension(operand, place));
  NamedAttrList marks;
  marks.set(tile::ProgramOp::kDimensionsAttrName,
            builder.getArrayAttr(dimensions));
  marks.set(tile::ProgramOp::kAlignmentAttrName,
            builder.getI64IntegerAttr(getAlignment(operand)));
  if (!operand.isResult &&
      !kernel.getArgAttr(operand.index, tile::TileDialect::kInPlaceAttrName))
    marks.set(tile::ProgramOp::kReadOnlyAttrName, builder.getUnitAttr());
  attributes.push_back(marks.getDictionary(builder.getContext()));
}

/// The lengths of the parts of dimensions of which each combination has a
/// program.
DictionaryAttr ProgramBuilder::getParts() {
  Operand leader = operands.getAll()[operands.getResult(0)];
  if (tile::DotOp dot = space.getDot())
    leader = {dot.getSumType(), Axis::Rows, Axis::Columns, 0,
              /*isResult=*/true};
  NamedAttrList parts;
  for (unsigned place = 0; place < leader.type.getRank(); ++place) {
    auto name = dyn_cast<StringAttr>(operands.getDimension(leader, place));
    if (!name || name == "k")
      continue;
    const int64_t length = name == "m"   ? extents.rows
                           : name == "n" ? extents.columns
                                         : 1;
    parts.set(name, builder.getI64IntegerAttr(length));
  }
  return parts.getDictionary(builder.getContext());
}

void ProgramBuilder::createProgram() {
  types.append(names.size(), builder.getIndexType());
  attributes.append(names.size(), builder.getDictionaryAttr({}));
  for (const Operand &operand : operands.getAll())
    addOperandType(operand);
  program = tile::ProgramOp::create(builder, kernel.getSymName(),
                                    builder.getFunctionType(types, {}),
                                    /*leading=*/0, schedule);
  program.setArgAttrsAttr(builder.getArrayAttr(attributes));
  program.setDimensionsAttr(builder.getArrayAttr(names.getArrayRef()));
  program.setProgramsAttr(getParts());
  for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
    if (kernel.getArgAttr(index, tile::TileDialect::kInPlaceAttrName))
      program.setInPlace(true);
  // Operands of any other alignment are copied in smaller parts.
  if (isStaged())
    program.setAlignments(ArrayRef<int64_t>{4, 2});
  Block *body = builder.createBlock(&program.getBody());
  for (Type type : types)
    body->addArgument(type, builder.getLoc());
  emitter.setProgram(program);
}

//===----------------------------------------------------------------------===//
// Where it is
//===----------------------------------------------------------------------===//

/// Finds the tile and the matrix of this program. Tiles are numbered in bands
/// of several rows of tiles, one column of a band after the other: programs
/// that run at the same time, or one after the other, share what they read of
/// both operands in the cache.
void ProgramBuilder::findPlace() {
  Value number = tile::ProgramIdOp::create(builder);
  const DictionaryAttr parts = *program.getPrograms();
  auto count = [&](StringRef name, int64_t length) -> Value {
    if (!parts.contains(name))
      return constant(1);
    return arith::CeilDivUIOp::create(builder, emitter.getSize(name),
                                      constant(length));
  };
  Value rowTiles = count("m", extents.rows);
  Value columnTiles = count("n", extents.columns);
  Value tiles = arith::MulIOp::create(builder, rowTiles, columnTiles);
  Value inMatrix = arith::RemUIOp::create(builder, number, tiles);
  number = arith::DivUIOp::create(builder, number, tiles);

  constexpr int64_t bandTiles = 16;
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
  emitter.row = arith::MulIOp::create(builder, rowTile, constant(extents.rows));
  emitter.column =
      arith::MulIOp::create(builder, columnTile, constant(extents.columns));

  constexpr unsigned mostAhead = 16;
  for (unsigned ahead = 0; ahead < mostAhead; ++ahead) {
    auto name = builder.getStringAttr(getBatchName(ahead));
    if (!parts.contains(name))
      continue;
    Value size = emitter.getSize(name);
    emitter.batch[name] = arith::RemUIOp::create(builder, number, size);
    number = arith::DivUIOp::create(builder, number, size);
  }
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// The dimensions of the batch over which products are added up.
SmallVector<StringAttr> ProgramBuilder::getSummedBatch() {
  SmallVector<StringAttr> summed;
  for (Attribute name : names)
    if (cast<StringAttr>(name).getValue().starts_with("b") &&
        !emitter.batch.contains(name))
      summed.push_back(cast<StringAttr>(name));
  return summed;
}

/// Builds `body`, which carries values, in loops over dimensions of the batch.
SmallVector<Value> ProgramBuilder::buildOverBatch(
    ArrayRef<StringAttr> summed, ValueRange initial,
    llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
  if (summed.empty())
    return body(initial);
  // What the loop computes ahead of another one is not there behind it.
  SpaceEmitter::Scope scope(emitter);
  auto loop =
      scf::ForOp::create(builder, constant(0), emitter.getSize(summed.front()),
                         constant(1), initial);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  emitter.batch[summed.front()] = loop.getInductionVar();
  SmallVector<Value> after =
      buildOverBatch(summed.drop_front(), loop.getRegionIterArgs(), body);
  scf::YieldOp::create(builder, after);
  return SmallVector<Value>(loop.getResults());
}

/// Without shared memory, products of two operands take them whole.
void ProgramBuilder::emitLoadedProducts() {
  for (tile::DotOp dot : space.getDots()) {
    if (isStaged() || KernelSpace::isLeftComputed(dot))
      continue;
    RankedTensorType type = emitter.getTileType(dot.getSumType(), false);
    Value zero = arith::ConstantOp::create(builder, builder.getZeroAttr(type));
    SmallVector<Value> sums = buildOverBatch(
        getSummedBatch(), zero, [&](ValueRange before) -> SmallVector<Value> {
          emitter.stream = constant(0);
          return {emitter.emitLoadDot(dot, before.front())};
        });
    emitter.map(dot.getResult(), sums.front());
  }
}

/// The loop over k in which `op`, a reduction or a product, sums.
int64_t ProgramBuilder::getSweep(Operation *op) {
  if (auto dot = dyn_cast<tile::DotOp>(op);
      dot && !KernelSpace::isLeftComputed(dot))
    return 0;
  return getReductionDepth(op->getResult(0), depths) - 1;
}

/// The streamed ops that `values` are computed of in a loop.
llvm::SetVector<Operation *>
ProgramBuilder::findStreamed(ArrayRef<Value> values) {
  llvm::SetVector<Operation *> ops;
  auto add = [&](Value value) {
    if (space.isStreamed(value))
      ops.insert(value.getDefiningOp());
  };
  llvm::for_each(values, add);
  for (size_t next = 0; next < ops.size(); ++next)
    if (!isa<tile::DotOp>(ops[next]))
      llvm::for_each(getValueOperands(ops[next]), add);
  return ops;
}

/// Lets `loop` copy the operands of `sums`, and those that `values` and terms
/// of the sums are computed of.
void ProgramBuilder::stage(StreamLoop &loop, ArrayRef<Operation *> sums,
                           ArrayRef<Value> values) {
  SmallVector<Value> streamed(values);
  SmallVector<tile::DotOp> dots;
  for (Operation *op : sums)
    streamed.push_back(op->getOperand(0));
  const llvm::SetVector<Operation *> ops = findStreamed(streamed);
  for (Operation *op : ops)
    if (auto dot = dyn_cast<tile::DotOp>(op))
      dots.push_back(dot);
  for (Operation *op : sums)
    if (auto dot = dyn_cast<tile::DotOp>(op))
      dots.push_back(dot);
  llvm::SmallSetVector<unsigned, 4> elements;
  auto addElements = [&](Operation *op) {
    for (OpOperand &use : op->getOpOperands()) {
      auto type = dyn_cast<RankedTensorType>(use.get().getType());
      if (!isa<BlockArgument>(use.get()) || getSizeOperand(op) == &use ||
          !space.readsStream(use) || space.isTransposed() ||
          type.getRank() < 2 || type.getDimSize(type.getRank() - 2) == 1 ||
          getElementBytes(type) != 2 || !isa<FloatType>(type.getElementType()))
        continue;
      elements.insert(operands.find(use.get(), /*ofFactor=*/true));
    }
  };
  llvm::for_each(ops, addElements);
  llvm::for_each(sums, addElements);
  loop.stage(dots, elements.getArrayRef());
}

/// Builds loop `sweep` over k, with all sums and results that wait for the
/// loops before it.
void ProgramBuilder::buildSweep(int64_t sweep) {
  StreamSums sums(builder, emitter, following);
  SmallVector<std::pair<unsigned, Value>> stored;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    auto dot = dyn_cast<tile::DotOp>(op);
    const bool isLoaded =
        dot && !isStaged() && !KernelSpace::isLeftComputed(dot);
    if (space.reducesStream(&op) && !isLoaded && getSweep(&op) == sweep)
      sums.add(&op);
  }
  for (auto [index, value] : llvm::enumerate(getTerminator()->getOperands()))
    if (space.isStreamed(value) && getReductionDepth(value, depths) == sweep)
      stored.push_back({index, value});
  if (sums.getOps().empty() && stored.empty())
    return;

  SmallVector<Value> totals = buildOverBatch(
      getSummedBatch(), sums.createInitial(), [&](ValueRange initial) {
        StreamLoop loop(builder, emitter, space, operands, layout,
                        schedule.getStages());
        stage(loop, sums.getOps(),
              SmallVector<Value>(llvm::make_second_range(stored)));
        if (stored.empty())
          loop.bound(findVisited(sums.getOps(), following, space));
        emitter.emitInner = [&](tile::DotOp dot) {
          return loop.emitInner(dot);
        };
        emitter.emitStaged = [&](unsigned operand) {
          return loop.takeElements(operand);
        };
        return loop.build(initial, [&](ValueRange before) {
          SmallVector<Value> after =
              sums.combine(before, [&](tile::DotOp dot, Value left, Value sum) {
                return loop.addProducts(dot, left, sum);
              });
          for (auto [index, value] : stored)
            emitStore(index, emitter.emit(value, true));
          return after;
        });
      });
  emitter.emitInner = nullptr;
  emitter.emitStaged = nullptr;
  sums.finish(totals);
}

//===----------------------------------------------------------------------===//
// Behind the loops
//===----------------------------------------------------------------------===//

void ProgramBuilder::emitStore(unsigned result, Value tile) {
  const unsigned operand = operands.getResult(result);
  // Inside of the loop, shared memory holds factors.
  if (isStaged() && !emitter.loop &&
      isStagedStore(cast<RankedTensorType>(tile.getType())))
    return emitStagedStore(builder, tile, emitter.getMemory(operand),
                           emitter.getIndices(operand), freeShared);
  tile::StoreOp::create(builder, tile, emitter.getMemory(operand),
                        emitter.getIndices(operand),
                        /*misalignment=*/Value(), /*alignment=*/IntegerAttr(),
                        /*offset=*/nullptr, /*length=*/nullptr,
                        /*space=*/nullptr, /*band=*/nullptr);
}

/// In how many parts, one after the other, the program computes what follows
/// the products: threads hold so many elements of a tile for tensor cores that
/// there is no room for many values of all of them, and code for each would
/// take long to compile.
int64_t ProgramBuilder::countParts() {
  constexpr int64_t few = 4, ofPart = 16;
  const int64_t parts = extents.columns / ofPart;
  if (!isStaged() || extents.columns % ofPart != 0)
    return 1;
  // Elements of another tensor take several instructions each to load.
  constexpr int64_t ofLoad = 4;
  int64_t instructions =
      llvm::count_if(kernel.getBody().front(), [&](Operation &op) {
        return OpTrait::hasElementwiseMappableTraits(&op) &&
               !space.isStreamed(op.getResult(0)) &&
               KernelSpace::hasColumns(op.getResult(0));
      });
  ArrayRef<int64_t> shape = space.getDot().getSumType().getShape();
  for (const Operand &operand : operands.getInputs())
    if (!operand.isFactor && operand.column == Axis::Columns &&
        operand.type.getShape() == shape)
      instructions += ofLoad;
  return instructions > few ? parts : 1;
}

/// Computes and stores what is complete behind the loops.
void ProgramBuilder::emitElements() {
  // Ops are built in the kernel's order, and so in no deep recursion.
  for (Operation &op : kernel.getBody().front().without_terminator())
    for (Value result : op.getResults())
      if (!space.isStreamed(result))
        emitter.emit(result);
  for (auto [index, value] : llvm::enumerate(getTerminator()->getOperands()))
    if (!space.isStreamed(value))
      emitStore(index, emitter.emit(value));
}

/// The same in a loop over `parts` parts of the tile's columns.
void ProgramBuilder::emitInParts(int64_t parts) {
  SmallVector<KeptParts> kept;
  for (tile::DotOp dot : space.getDots()) {
    kept.emplace_back(builder, emitter.emit(dot), parts, freeShared);
    freeShared += kept.back().getBytes();
  }
  // What has no columns is the same in all parts.
  for (Operation &op : kernel.getBody().front().without_terminator())
    for (Value result : op.getResults())
      if (!space.isStreamed(result) && !KernelSpace::hasColumns(result))
        emitter.emit(result);
  const int64_t columns = extents.columns / parts;
  auto loop =
      scf::ForOp::create(builder, constant(0), constant(parts), constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value part = loop.getInductionVar();
  emitter.setColumns(
      arith::AddIOp::create(
          builder, emitter.column,
          arith::MulIOp::create(builder, part, constant(columns))),
      columns);
  for (auto [dot, tile] : llvm::zip_equal(space.getDots(), kept))
    emitter.map(tile::DotOp(dot).getResult(), tile.take(part));
  emitElements();
}

tile::ProgramOp ProgramBuilder::build(tile::LaunchOp launch) {
  createProgram();
  SmallVector<Value> inputs(launch.getInputs());
  for (BlockArgument argument : operands.getRepeated())
    inputs.push_back(launch.getInputs()[argument.getArgNumber()]);
  launch.getInputsMutable().assign(inputs);

  findPlace();
  emitLoadedProducts();
  int64_t last = 0;
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (space.reducesStream(&op))
      last = std::max(last, getSweep(&op));
  for (Value value : getTerminator()->getOperands())
    if (space.isStreamed(value))
      last = std::max(last, getReductionDepth(value, depths));
  for (int64_t sweep = 0; sweep <= last; ++sweep)
    buildSweep(sweep);
  const int64_t parts = space.getDot() ? countParts() : 1;
  if (parts == 1)
    emitElements();
  else
    emitInParts(parts);
  tile::ReturnOp::create(builder, ValueRange());
  return program;
}

tile::ProgramOp bastile::buildProductProgram(tile::LaunchOp launch,
                                             tile::KernelOp kernel,
                                             bool onHost) {
  return ProgramBuilder(kernel, onHost).build(launch);
}
