//===- ProductProgram.cpp - The program of a product ----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A program over named dimensions: m and n are the rows and columns of the
// product, k is what it sums over, and b0, b1, ... are the dimensions of its
// batch, from the last one on. There is a program for each tile of rows and
// columns of each matrix that is left of the batch.
//
//===----------------------------------------------------------------------===//

#include "passes/products/ProductProgram.h"

#include "dialect/Dimensions.h"
#include "dialect/ElementBytes.h"
#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "passes/products/ElementOps.h"
#include "passes/products/StagedProduct.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace bastile;

namespace {

/// What a tensor is to the product: a factor, something that is read or written
/// element by element, or only the source of sizes. This says which of its
/// dimensions is which.
enum class Part { Left, Right, Element, Sizes };

/// A tensor in memory that the program reads or writes, in one part.
struct Operand {
  RankedTensorType type;
  Part part;
};

class ProductBuilder {
public:
  ProductBuilder(tile::KernelOp kernel, bool onHost)
      : kernel(kernel), dot(getDot(kernel)),
        schedule(cast<tile::MatmulAttr>(*kernel.getSchedule())),
        builder(kernel.getLoc(), kernel), tileColumns(schedule.getColumns()) {
    constexpr int64_t threadRows = 16, warp = 32;
    if (schedule.getStages() > 1)
      layout =
          tile::MmaAttr::get(kernel.getContext(), schedule.getThreads() / warp);
    else
      layout = onHost
                   ? tile::BlockedAttr::get(kernel.getContext(),
                                            schedule.getVector(), 1, 1,
                                            /*blocks=*/1)
                   : tile::BlockedAttr::get(
                         kernel.getContext(), schedule.getVector(), threadRows,
                         schedule.getThreads() / threadRows, /*blocks=*/1);
  }

  tile::ProgramOp build(tile::LaunchOp launch);

private:
  /// Adds the program's operand that is `argument` in `part`.
  void addOperand(BlockArgument argument, Part part);
  void addOperands();
  Attribute getDimension(const Operand &operand, unsigned place);
  void createProgram();
  void addOperandType(const Operand &operand, bool isRead, bool isResult);
  Value getSize(StringRef name) {
    return program.getSize(builder.getStringAttr(name));
  }
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(builder, value);
  }

  void findPlace();
  SmallVector<Value> getIndices(unsigned operand);
  Value emitProduct();
  Value emit(Value value);
  Value emitLoad(BlockArgument argument);
  void emitStore(Value tile, unsigned operand);
  int64_t countParts();
  void emitElements(Value product);
  void emitInParts(Value product, int64_t parts);
  RankedTensorType getTileType(RankedTensorType type);
  /// Whether tensor cores multiply tiles in shared memory.
  bool isStaged() const { return schedule.getStages() > 1; }
  int64_t getAlignment(const Operand &operand, bool isResult) const;
  Value getMemory(unsigned operand) {
    return program.getArgument(program.getNumSizes() + operand);
  }

  tile::KernelOp kernel;
  tile::DotOp dot;
  tile::MatmulAttr schedule;
  ImplicitLocOpBuilder builder;
  Attribute layout;

  /// The inputs, those of the kernel first, and then the results.
  SmallVector<Operand> operands;
  /// By argument of the kernel and part, the number of the operand, and the
  /// arguments that operands behind the kernel's own stand for.
  DenseMap<std::pair<Value, Part>, unsigned> numbers;
  SmallVector<BlockArgument> repeated;
  size_t numInputs = 0;
  /// The names of the dimensions in the order in which they are found.
  llvm::SetVector<Attribute> names;
  SmallVector<Type> types;
  SmallVector<Attribute> attributes;
  tile::ProgramOp program;

  /// The first row and column of the tile, and the place in the batch, by the
  /// name of the dimension.
  Value row, column;
  /// The columns of the tile on which the program computes element by element.
  int64_t tileColumns;
  /// The first byte of shared memory that stores of results may use.
  int64_t freeShared = 0;
  llvm::MapVector<Attribute, Value> batch;
  IRMapping tiles;
};

} // namespace

/// The name of the dimension of a batch that is `ahead` places ahead of the
/// matrices, 0 for the last one.
static std::string getBatchName(unsigned ahead) {
  return "b" + std::to_string(ahead);
}

//===----------------------------------------------------------------------===//
// What the program takes
//===----------------------------------------------------------------------===//

void ProductBuilder::addOperand(BlockArgument argument, Part part) {
  if (numbers.contains({argument, part}))
    return;
  // The kernel's own operand takes the argument's first part.
  const Operand operand{cast<RankedTensorType>(argument.getType()), part};
  const unsigned index = argument.getArgNumber();
  if (operands[index].part == Part::Sizes) {
    operands[index] = operand;
    numbers[{argument, part}] = index;
    return;
  }
  numbers[{argument, part}] = operands.size();
  operands.push_back(operand);
  repeated.push_back(argument);
}

void ProductBuilder::addOperands() {
  Block &body = kernel.getBody().front();
  for (Type type : body.getArgumentTypes())
    operands.push_back({cast<RankedTensorType>(type), Part::Sizes});
  addOperand(cast<BlockArgument>(dot.getA()), Part::Left);
  addOperand(cast<BlockArgument>(dot.getB()), Part::Right);
  for (Operation &op : body)
    if (&op != dot)
      for (Value value : getValueOperands(&op))
        if (auto argument = dyn_cast<BlockArgument>(value))
          addOperand(argument, Part::Element);
  numInputs = operands.size();
  for (Value value : body.getTerminator()->getOperands())
    operands.push_back(
        {cast<RankedTensorType>(value.getType()), Part::Element});
}

/// The name of the dimension of `operand` at `place`, or its size: where that
/// is 1, unless other tensors may have the dimension with a size that only a
/// call knows.
Attribute ProductBuilder::getDimension(const Operand &operand, unsigned place) {
  const unsigned ahead = operand.type.getRank() - 1 - place;
  const bool isFactor =
      operand.part == Part::Left || operand.part == Part::Right;
  if (isFactor && ahead < 2) {
    const bool isLeft = operand.part == Part::Left;
    const bool isContracted =
        place == dot.getContractedDimension(isLeft ? 0 : 1);
    return builder.getStringAttr(isContracted ? "k" : isLeft ? "m" : "n");
  }
  if (operand.type.getDimSize(place) == 1)
    return builder.getI64IntegerAttr(1);
  if (ahead >= 2)
    return builder.getStringAttr(getBatchName(ahead - 2));
  if (operand.part == Part::Sizes && ahead == 0)
    return builder.getI64IntegerAttr(operand.type.getDimSize(place));
  return builder.getStringAttr(ahead == 0 ? "n" : "m");
}

/// Copies to and from shared memory are of 16 bytes where the alignment allows
/// it, and loads of 16-bit elements of pairs.
int64_t ProductBuilder::getAlignment(const Operand &operand,
                                     bool isResult) const {
  constexpr int64_t copyBytes = 16, pairBytes = 4;
  const int64_t bytes = getElementBytes(operand.type);
  if (!isStaged() || operand.part == Part::Sizes)
    return bytes;
  if (operand.part != Part::Element ||
      (isResult && isStagedStore(operand.type.getElementType())))
    return copyBytes;
  return !isResult && bytes == 2 ? pairBytes : bytes;
}

void ProductBuilder::addOperandType(const Operand &operand, bool isRead,
                                    bool isResult) {
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
    dimensions.push_back(getDimension(operand, place));
  NamedAttrList marks;
  marks.set(tile::ProgramOp::kDimensionsAttrName,
            builder.getArrayAttr(dimensions));
  marks.set(tile::ProgramOp::kAlignmentAttrName,
            builder.getI64IntegerAttr(getAlignment(operand, isResult)));
  if (isRead)
    marks.set(tile::ProgramOp::kReadOnlyAttrName, builder.getUnitAttr());
  attributes.push_back(marks.getDictionary(builder.getContext()));
}

void ProductBuilder::createProgram() {
  for (const Operand &operand : operands)
    for (unsigned place = 0; place < operand.type.getRank(); ++place)
      if (Attribute name = getDimension(operand, place); isa<StringAttr>(name))
        names.insert(name);
  types.append(names.size(), builder.getIndexType());
  attributes.append(names.size(), builder.getDictionaryAttr({}));
  bool isInPlace = false;
  for (auto [index, operand] : llvm::enumerate(operands)) {
    const bool isTaken =
        index < kernel.getNumArguments() &&
        kernel.getArgAttr(index, tile::TileDialect::kInPlaceAttrName);
    isInPlace |= isTaken;
    addOperandType(operand, index < numInputs && !isTaken, index >= numInputs);
  }

  const Operand result{dot.getSumType(), Part::Element};
  NamedAttrList parts;
  for (unsigned place = 0; place < result.type.getRank(); ++place)
    if (auto name = dyn_cast<StringAttr>(getDimension(result, place))) {
      const int64_t length = name == "m"   ? schedule.getRows()
                             : name == "n" ? schedule.getColumns()
                                           : 1;
      parts.set(name, builder.getI64IntegerAttr(length));
    }
  program = tile::ProgramOp::create(builder, kernel.getSymName(),
                                    builder.getFunctionType(types, {}),
                                    /*leading=*/0, schedule);
  program.setArgAttrsAttr(builder.getArrayAttr(attributes));
  program.setDimensionsAttr(builder.getArrayAttr(names.getArrayRef()));
  program.setProgramsAttr(parts.getDictionary(builder.getContext()));
  program.setInPlace(isInPlace);
  // Operands of any other alignment are copied in smaller parts.
  if (isStaged())
    program.setAlignments(ArrayRef<int64_t>{4, 2});
  Block *body = builder.createBlock(&program.getBody());
  for (Type type : types)
    body->addArgument(type, builder.getLoc());
}

//===----------------------------------------------------------------------===//
// What it does
//===----------------------------------------------------------------------===//

/// Finds the tile and the matrix of this program. Tiles are numbered in bands
/// of several rows of tiles, one column of a band after the other: programs
/// that run at the same time, or one after the other, share what they read of
/// both operands in the cache.
void ProductBuilder::findPlace() {
  Value number = tile::ProgramIdOp::create(builder);
  const DictionaryAttr parts = *program.getPrograms();
  auto count = [&](StringRef name, int64_t length) -> Value {
    if (!parts.contains(name))
      return constant(1);
    return arith::CeilDivUIOp::create(builder, getSize(name), constant(length));
  };
  Value rowTiles = count("m", schedule.getRows());
  Value columnTiles = count("n", schedule.getColumns());
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
  row = arith::MulIOp::create(builder, rowTile, constant(schedule.getRows()));
  column = arith::MulIOp::create(builder, columnTile,
                                 constant(schedule.getColumns()));

  for (unsigned ahead = 0; ahead + 2 < dot.getSumType().getRank(); ++ahead) {
    auto name = builder.getStringAttr(getBatchName(ahead));
    if (!parts.contains(name))
      continue;
    Value size = getSize(name);
    batch[name] = arith::RemUIOp::create(builder, number, size);
    number = arith::DivUIOp::create(builder, number, size);
  }
}

/// Where `operand` has the tile: the place in its batch, and the first row and
/// column or, for a factor, that of the dimension that the product keeps.
SmallVector<Value> ProductBuilder::getIndices(unsigned operand) {
  const Operand &own = operands[operand];
  SmallVector<Value> indices;
  for (unsigned place = 0; place < own.type.getRank(); ++place) {
    auto name = dyn_cast<StringAttr>(getDimension(own, place));
    const bool isOfMatrix = place + 2 >= own.type.getRank();
    if (!isOfMatrix)
      indices.push_back(name ? batch.lookup(name) : constant(0));
    else if (own.part == Part::Element)
      indices.push_back(!name ? constant(0) : name == "m" ? row : column);
  }
  if (own.part != Part::Element)
    indices.push_back(own.part == Part::Left ? row : column);
  return indices;
}

/// Computes the product, in loops over the dimensions of the batch over which
/// it adds up.
Value ProductBuilder::emitProduct() {
  SmallVector<StringAttr> summed;
  for (Attribute name : names)
    if (cast<StringAttr>(name).getValue().starts_with("b") &&
        !batch.contains(name))
      summed.push_back(cast<StringAttr>(name));
  RankedTensorType type = getTileType(dot.getSumType());
  Value sum = arith::ConstantOp::create(builder, builder.getZeroAttr(type));
  SmallVector<scf::ForOp> loops;
  for (StringAttr name : summed) {
    auto loop = scf::ForOp::create(builder, constant(0), getSize(name),
                                   constant(1), sum);
    builder.setInsertionPointToStart(loop.getBody());
    batch[name] = loop.getInductionVar();
    sum = loop.getRegionIterArg(0);
    loops.push_back(loop);
  }
  const unsigned left = numbers.lookup({dot.getA(), Part::Left});
  const unsigned right = numbers.lookup({dot.getB(), Part::Right});
  if (isStaged()) {
    auto getFactor = [&](unsigned operand) {
      SmallVector<Value> indices = getIndices(operand);
      Value first = indices.pop_back_val();
      const unsigned index = operands[operand].part == Part::Left ? 0 : 1;
      return StagedFactor{getMemory(operand), indices, first,
                          dot.getContract()[index]};
    };
    sum = emitStagedProduct(builder, schedule, getFactor(left),
                            getFactor(right), getSize("k"), sum);
  } else {
    sum = tile::LoadDotOp::create(
        builder, type, getMemory(left), getIndices(left), getMemory(right),
        getIndices(right), sum, dot.getContractAttr());
  }
  for (scf::ForOp loop : llvm::reverse(loops)) {
    scf::YieldOp::create(builder, sum);
    builder.setInsertionPointAfter(loop);
    sum = loop.getResult(0);
  }
  return sum;
}

RankedTensorType ProductBuilder::getTileType(RankedTensorType type) {
  const int64_t rank = type.getRank();
  const bool hasRows = rank >= 2 && type.getDimSize(rank - 2) != 1;
  const bool hasColumns = type.getShape().back() != 1;
  return RankedTensorType::get(
      {hasRows ? schedule.getRows() : 1, hasColumns ? tileColumns : 1},
      type.getElementType(), layout);
}

Value ProductBuilder::emitLoad(BlockArgument argument) {
  const unsigned operand = numbers.lookup({argument, Part::Element});
  const bool mayChange = bool(kernel.getArgAttr(
      argument.getArgNumber(), tile::TileDialect::kInPlaceAttrName));
  return tile::LoadOp::create(
      builder, getTileType(operands[operand].type), getMemory(operand),
      getIndices(operand), /*misalignment=*/Value(),
      /*alignment=*/IntegerAttr(), mayChange ? nullptr : builder.getUnitAttr(),
      /*offset=*/nullptr,
      /*length=*/nullptr, /*space=*/nullptr, /*band=*/nullptr);
}

Value ProductBuilder::emit(Value value) {
  if (Value tile = tiles.lookupOrNull(value))
    return tile;
  Value tile;
  if (auto argument = dyn_cast<BlockArgument>(value))
    tile = emitLoad(argument);
  else
    tile = bastile::emitElements(
        builder, cast<OpResult>(value),
        [&](Value operand) { return emit(operand); },
        [&](RankedTensorType type) { return getTileType(type); });
  tiles.map(value, tile);
  return tile;
}

void ProductBuilder::emitStore(Value tile, unsigned operand) {
  if (isStaged() && isStagedStore(operands[operand].type.getElementType()))
    return emitStagedStore(builder, tile, getMemory(operand),
                           getIndices(operand), freeShared);
  tile::StoreOp::create(builder, tile, getMemory(operand), getIndices(operand),
                        /*misalignment=*/Value(), /*alignment=*/IntegerAttr(),
                        /*offset=*/nullptr, /*length=*/nullptr,
                        /*space=*/nullptr, /*band=*/nullptr);
}

/// In how many parts, one after the other, the program computes what follows
/// the product: threads hold so many elements of a tile for tensor cores that
/// there is no room for many values of all of them, and code for each would
/// take long to compile.
int64_t ProductBuilder::countParts() {
  // Narrower parts have no rows of 32 bytes in shared memory.
  constexpr int64_t few = 4, columns = 16;
  if (!isStaged())
    return 1;
  // Elements of another tensor take several instructions each to load.
  constexpr int64_t ofLoad = 4;
  Block &body = kernel.getBody().front();
  int64_t instructions = llvm::count_if(body, [](Operation &op) {
    return OpTrait::hasElementwiseMappableTraits(&op);
  });
  ArrayRef<int64_t> shape = dot.getSumType().getShape();
  for (const Operand &operand : ArrayRef(operands).take_front(numInputs))
    if (operand.part == Part::Element && operand.type.getShape() == shape)
      instructions += ofLoad;
  return instructions > few ? tileColumns / columns : 1;
}

/// Computes and stores what follows `product`, a tile of it.
void ProductBuilder::emitElements(Value product) {
  tiles.clear();
  tiles.map(dot.getResult(), product);
  // Ops are built in the kernel's order, and so in no deep recursion.
  Block &body = kernel.getBody().front();
  for (Operation &op : body.without_terminator())
    for (Value result : op.getResults())
      emit(result);
  for (auto [index, value] :
       llvm::enumerate(body.getTerminator()->getOperands()))
    emitStore(emit(value), numInputs + index);
}

/// The same in a loop over `parts` parts of the tile's columns.
void ProductBuilder::emitInParts(Value product, int64_t parts) {
  KeptParts kept(builder, product, parts);
  freeShared = kept.getBytes();
  tileColumns /= parts;
  auto loop =
      scf::ForOp::create(builder, constant(0), constant(parts), constant(1));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Value part = loop.getInductionVar();
  column = arith::AddIOp::create(
      builder, column,
      arith::MulIOp::create(builder, part, constant(tileColumns)));
  emitElements(kept.take(part));
}

tile::ProgramOp ProductBuilder::build(tile::LaunchOp launch) {
  addOperands();
  createProgram();
  SmallVector<Value> inputs(launch.getInputs());
  for (BlockArgument argument : repeated)
    inputs.push_back(launch.getInputs()[argument.getArgNumber()]);
  launch.getInputsMutable().assign(inputs);

  findPlace();
  Value product = emitProduct();
  const int64_t parts = countParts();
  if (parts == 1)
    emitElements(product);
  else
    emitInParts(product, parts);
  tile::ReturnOp::create(builder, ValueRange());
  return program;
}

tile::ProgramOp bastile::buildProductProgram(tile::LaunchOp launch,
                                             tile::KernelOp kernel,
                                             bool onHost) {
  return ProductBuilder(kernel, onHost).build(launch);
}
