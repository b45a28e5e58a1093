//===- JoinPrograms.cpp - Several kernels' programs as one ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One program computes what two kernels that cross do, where its operands are
// aligned. For other calls, the programs of the kernels run one after the other
// in the same launch: what a launch takes does not depend on the call.
//
//===----------------------------------------------------------------------===//

#include "passes/crossed/JoinPrograms.h"

#include "dialect/OperandMemory.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/crossed/CrossedProgram.h"
#include "passes/products/ProductProgram.h"

using namespace mlir;
using namespace bastile;

/// The name that the dimension `name` of the kernel over columns has in the one
/// over rows: rows and streamed elements change places.
static Attribute getCrossedName(Attribute name) {
  auto text = dyn_cast<StringAttr>(name);
  if (!text || (text != "m" && text != "k"))
    return name;
  return StringAttr::get(name.getContext(), text == "m" ? "k" : "m");
}

/// What the attributes of an argument of a program over columns are in one over
/// rows.
static DictionaryAttr getCrossedMarks(DictionaryAttr marks) {
  NamedAttrList own(marks);
  if (auto dimensions =
          marks.getAs<ArrayAttr>(tile::ProgramOp::kDimensionsAttrName))
    own.set(tile::ProgramOp::kDimensionsAttrName,
            ArrayAttr::get(marks.getContext(),
                           llvm::map_to_vector(dimensions, getCrossedName)));
  return own.getDictionary(marks.getContext());
}

namespace {

/// Makes programs of both kernels of those of each.
class ProgramJoiner {
public:
  /// `program` and `other` have `inputs` and `otherInputs` operands that are no
  /// results.
  ProgramJoiner(tile::ProgramOp program, unsigned inputs, tile::ProgramOp other,
                unsigned otherInputs)
      : program(program), other(other),
        builder(program.getLoc(), program.getContext()), inputs(inputs),
        otherInputs(otherInputs) {}

  /// Lets the program take the inputs of the other one, behind its own.
  void addInputs();
  /// Lets it take what `crossed` does behind the results of the kernel over
  /// rows: the result of the other one, and counters that it does not need.
  void addResults(tile::ProgramOp crossed);
  /// Lets the program do what both do, with the arguments of `crossed`, and
  /// erases the other one.
  void join(tile::ProgramOp crossed);

private:
  DictionaryAttr getMarks(unsigned argument) {
    return getCrossedMarks(other.getArgAttrDict(argument));
  }
  void insert(unsigned index, Type type, DictionaryAttr marks) {
    (void)program.insertArgument(index, type, marks, program.getLoc());
  }
  void mapSizes();
  Value countTiles(DictionaryAttr parts);
  scf::ForOp buildLoop(DictionaryAttr parts);
  void joinLoops();
  DictionaryAttr getOtherParts();

  tile::ProgramOp program, other;
  ImplicitLocOpBuilder builder;
  const unsigned inputs, otherInputs;
  /// The values of the other program in this one.
  IRMapping mapping;
};

} // namespace

void ProgramJoiner::addInputs() {
  const unsigned first = program.getNumSizes() + inputs;
  for (unsigned input = 0; input < otherInputs; ++input) {
    const unsigned argument = other.getNumSizes() + input;
    insert(first + input, other.getArgumentTypes()[argument],
           getMarks(argument));
    mapping.map(other.getArgument(argument),
                program.getArgument(first + input));
  }
}

void ProgramJoiner::addResults(tile::ProgramOp crossed) {
  const unsigned argument = other.getNumSizes() + otherInputs;
  insert(program.getNumArguments(), other.getArgumentTypes()[argument],
         getMarks(argument));
  mapping.map(other.getArgument(argument), program.getArguments().back());
  const unsigned counters = crossed.getNumArguments() - 1;
  insert(program.getNumArguments(), crossed.getArgumentTypes()[counters],
         crossed.getArgAttrDict(counters));
}

/// The parts of the other program's tiles, by the names of this one's
/// dimensions.
DictionaryAttr ProgramJoiner::getOtherParts() {
  const DictionaryAttr own = *other.getPrograms();
  NamedAttrList parts;
  for (NamedAttribute part : own)
    parts.set(cast<StringAttr>(getCrossedName(part.getName())),
              part.getValue());
  return parts.getDictionary(builder.getContext());
}

void ProgramJoiner::mapSizes() {
  const ArrayAttr names = *other.getDimensions();
  for (auto [index, name] : llvm::enumerate(names))
    mapping.map(other.getArgument(index),
                program.getSize(cast<StringAttr>(getCrossedName(name))));
}

Value ProgramJoiner::countTiles(DictionaryAttr parts) {
  Value tiles = arith::ConstantIndexOp::create(builder, 1);
  for (NamedAttribute part : parts) {
    Value length = arith::ConstantIndexOp::create(
        builder, cast<IntegerAttr>(part.getValue()).getInt());
    tiles = arith::MulIOp::create(
        builder, tiles,
        arith::CeilDivUIOp::create(builder, program.getSize(part.getName()),
                                   length));
  }
  return tiles;
}

/// Builds an empty loop over the tiles of a program, and enters it.
scf::ForOp ProgramJoiner::buildLoop(DictionaryAttr parts) {
  Value first = tile::ProgramIdOp::create(builder);
  Value count = tile::ProgramCountOp::create(builder);
  auto loop = scf::ForOp::create(builder, first, countTiles(parts), count);
  builder.setInsertionPointToStart(loop.getBody());
  return loop;
}

/// Each program goes through tiles of both kernels, in steps of as many as
/// there are programs: a grid has as many as one of the kernels has tiles.
void ProgramJoiner::joinLoops() {
  Block &body = program.getBody().front();
  Operation *end = body.getTerminator();
  SmallVector<Operation *> ops = llvm::map_to_vector(
      body.without_terminator(), [](Operation &op) { return &op; });
  const DictionaryAttr ownParts = *program.getPrograms();
  builder.setInsertionPoint(end);
  scf::ForOp loop = buildLoop(ownParts);
  for (Operation *op : ops)
    if (isa<tile::ProgramIdOp>(op)) {
      op->replaceAllUsesWith(ValueRange(loop.getInductionVar()));
      op->erase();
    } else {
      op->moveBefore(loop.getBody()->getTerminator());
    }
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  tile::SynchronizeOp::create(builder, /*cluster=*/false);
  builder.setInsertionPoint(end);
  loop = buildLoop(getOtherParts());
  for (Operation &op : other.getBody().front().without_terminator())
    if (isa<tile::ProgramIdOp>(op))
      mapping.map(op.getResult(0), loop.getInductionVar());
    else
      builder.clone(op, mapping);
  tile::SynchronizeOp::create(builder, /*cluster=*/false);
}

void ProgramJoiner::join(tile::ProgramOp crossed) {
  addInputs();
  addResults(crossed);
  mapSizes();
  joinLoops();
  // Matrices over rows may be sums of several, those over columns are not.
  program.setProgramsAttr(getOtherParts());
  other.erase();
}

/// The types of what the joined launch of `crossed` computes.
static SmallVector<Type> getResultTypes(const CrossedKernels &crossed) {
  SmallVector<Type> types(
      tile::LaunchOp(crossed.overRowsLaunch).getResultTypes());
  Type type = tile::LaunchOp(crossed.overColumnsLaunch).getResult(0).getType();
  types.append(
      {type, RankedTensorType::get({ShapedType::kDynamic},
                                   IntegerType::get(type.getContext(), 32))});
  return types;
}

SmallVector<tile::ProgramOp>
bastile::joinCrossedKernels(const CrossedKernels &crossed,
                            SymbolTable &symbols) {
  tile::KernelOp rows = crossed.overRows, columns = crossed.overColumns;
  tile::LaunchOp rowsLaunch = crossed.overRowsLaunch,
                 columnsLaunch = crossed.overColumnsLaunch;
  const unsigned inputs = rowsLaunch.getInputs().size(),
                 otherInputs = columnsLaunch.getInputs().size();
  const std::string name = rows.getSymName().str();
  auto getSchedule = [](Attribute schedule) {
    return cast<tile::MatmulAttr>(schedule);
  };
  tile::ProgramOp unaligned = buildProductProgram(
      rows, getSchedule(*rows.getUnalignedSchedule()), name + "_unaligned",
      /*onHost=*/false);
  tile::ProgramOp other =
      buildProductProgram(columns, getSchedule(*columns.getUnalignedSchedule()),
                          columns.getSymName(), /*onHost=*/false);
  BlockArgument sums = other.getArguments().back();
  tile::ProgramOp crossedProgram = buildCrossedProgram(
      crossed, sums, getCrossedMarks(other.getArgAttrDict(sums.getArgNumber())),
      name);
  ProgramJoiner(crossedProgram, inputs, other, otherInputs).addInputs();
  ProgramJoiner(unaligned, inputs, other, otherInputs).join(crossedProgram);
  SmallVector<tile::ProgramOp> programs{crossedProgram, unaligned};

  const bool rowsFirst = rowsLaunch->isBeforeInBlock(columnsLaunch);
  OpBuilder builder(rowsFirst ? columnsLaunch : rowsLaunch);
  SmallVector<Value> all(rowsLaunch.getInputs());
  llvm::append_range(all, columnsLaunch.getInputs());
  const ArrayAttr merged = builder.getStrArrayAttr(columns.getSymName());
  symbols.erase(rows);
  symbols.erase(columns);
  SmallVector<Attribute> names;
  for (tile::ProgramOp program : programs) {
    program.setMergedAttr(merged);
    symbols.insert(program);
    names.push_back(FlatSymbolRefAttr::get(program.getSymNameAttr()));
  }
  auto launch = tile::LaunchOp::create(builder, rowsLaunch.getLoc(),
                                       getResultTypes(crossed),
                                       builder.getArrayAttr(names), all);
  const unsigned ofRows = rowsLaunch->getNumResults();
  rowsLaunch->replaceAllUsesWith(launch.getResults().take_front(ofRows));
  columnsLaunch->replaceAllUsesWith(launch.getResults().slice(ofRows, 1));
  rowsLaunch.erase();
  columnsLaunch.erase();
  return programs;
}
