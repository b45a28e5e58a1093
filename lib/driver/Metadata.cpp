//===- Metadata.cpp - Describing launches ---------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Metadata.h"

#include "bastile/Version.h"
#include "dialect/OperandMemory.h"
#include "dialect/Rows.h"
#include "lib/driver/DimensionMetadata.h"
#include "lib/driver/OperandPlaces.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/tensors/Names.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>

using namespace mlir;
using namespace bastile;
namespace json = llvm::json;

namespace {

std::string getTypeName(Type elementType) {
  std::string name;
  llvm::raw_string_ostream(name) << elementType;
  return name;
}

/// Describes an argument or a result of a function. A size that differs from
/// call to call is null, and what is no tensor has no sizes.
json::Object describeValue(std::string name, Type type) {
  json::Array shape;
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    for (int64_t size : tensor.getShape())
      shape.push_back(ShapedType::isDynamic(size) ? json::Value(nullptr)
                                                  : json::Value(size));
  return json::Object{{"name", std::move(name)},
                      {"type", getTypeName(getElementTypeOrSelf(type))},
                      {"shape", std::move(shape)}};
}

json::Array describeInputs(func::FuncOp func) {
  json::Array inputs;
  for (auto [index, type] : llvm::enumerate(func.getArgumentTypes()))
    inputs.push_back(describeValue(getInputName(func, index), type));
  return inputs;
}

/// Writes dictionaries, lists, symbols and integers in the form that JSON has
/// for them.
json::Value describeAttribute(Attribute attribute) {
  if (auto dictionary = dyn_cast<DictionaryAttr>(attribute)) {
    json::Object object;
    for (NamedAttribute entry : dictionary)
      object[entry.getName().getValue()] = describeAttribute(entry.getValue());
    return object;
  }
  if (auto list = dyn_cast<ArrayAttr>(attribute)) {
    json::Array array;
    for (Attribute element : list)
      array.push_back(describeAttribute(element));
    return array;
  }
  if (auto symbol = dyn_cast<FlatSymbolRefAttr>(attribute))
    return symbol.getValue();
  return cast<IntegerAttr>(attribute).getInt();
}

/// The leading dimensions over which `program` combines rows.
SmallVector<int64_t> getCombinedDimensions(tile::ProgramOp program) {
  if (std::optional<ArrayRef<int64_t>> combines = program.getCombines())
    return SmallVector<int64_t>(*combines);
  // One program combines all rows.
  return program.getRowPrograms()
             ? llvm::to_vector(llvm::seq<int64_t>(0, program.getLeading()))
             : SmallVector<int64_t>();
}

/// The launch's dimensions in the order in which `program` takes those of row
/// space `space`: where rows are combined, the dimensions that are left come
/// first.
SmallVector<int64_t> getDimensionOrder(tile::ProgramOp program, int64_t space) {
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, program.getLeading()));
  if (space == 0)
    std::stable_partition(order.begin(), order.end(), [&](int64_t dimension) {
      return !llvm::is_contained(getCombinedDimensions(program), dimension);
    });
  return order;
}

/// Describes one function.
class FunctionDescriber {
public:
  FunctionDescriber(func::FuncOp func, SymbolTable &symbols,
                    const Target &target)
      : func(func), symbols(symbols), target(target), places(func) {}

  json::Object describe();

private:
  json::Object describeBuffer(Value value);
  json::Object describeOperand(Value value, bool isPartial,
                               std::optional<int64_t> band, int64_t space);
  json::Object describeLaunch(tile::LaunchOp launch);
  json::Object describeDimensionLaunch(tile::LaunchOp launch);
  json::Object describeVariant(tile::LaunchOp launch, tile::ProgramOp program);
  json::Array describePhases(tile::ProgramOp program);
  json::Value describePrograms(tile::ProgramOp program, json::Value rows);
  json::Value describeGrid(tile::ProgramOp program);
  json::Array describeShape(Value value);
  json::Value describeSize(Value value, int64_t dimension);
  json::Value describeNamedSize(tile::LaunchOp launch, tile::ProgramOp program,
                                unsigned position, int64_t dimension);
  Value getSizeInput(OpResult result, int64_t dimension);
  json::Array describeLeadingSizes(tile::LaunchOp launch);
  tile::ProgramOp getProgram(tile::LaunchOp launch);
  unsigned getPosition(OpResult result);
  bool isPartial(OpResult result);
  std::optional<int64_t> getBand(OpResult result);
  int64_t getCluster(tile::ProgramOp program);

  func::FuncOp func;
  SymbolTable &symbols;
  const Target &target;
  OperandPlaces places;
};

/// An operand of the launch with the size of its `result` in `dimension`. All
/// row tensors of a row space have the same leading sizes, except those that
/// are repeated.
Value FunctionDescriber::getSizeInput(OpResult result, int64_t dimension) {
  auto launch = cast<tile::LaunchOp>(result.getOwner());
  tile::ProgramOp program = getProgram(launch);
  unsigned first = program.getNumSizes();
  int64_t space = program.getArgSpace(first + launch.getInputs().size() +
                                      result.getResultNumber());
  for (auto [index, input] : llvm::enumerate(launch.getInputs())) {
    auto type = cast<RankedTensorType>(input.getType());
    // The result of combining rows has their sizes in the dimensions that are
    // left.
    if (type.getRank() >= 2 && type.isDynamicDim(dimension) &&
        (program.getArgSpace(first + index) == space ||
         program.getCombines()) &&
        !program.getArgBand(first + index))
      return input;
  }
  llvm_unreachable("no operand has the size of a result");
}

/// The size in `dimension` of the result of `launch` that is the argument of
/// `program`, over named dimensions, at `position`.
json::Value FunctionDescriber::describeNamedSize(tile::LaunchOp launch,
                                                 tile::ProgramOp program,
                                                 unsigned position,
                                                 int64_t dimension) {
  auto describe = [&](Attribute name) {
    auto [input, place] = findSize(launch, program, name);
    return describeSize(input, place);
  };
  DictionaryAttr counters = program.getArgCounters(position);
  if (!counters)
    return describe(program.getArgDimensions(position)[dimension]);
  json::Array factors;
  for (NamedAttribute part : counters)
    factors.push_back(describeParts(
        describe(part.getName()), cast<IntegerAttr>(part.getValue()).getInt()));
  return describeProduct(std::move(factors));
}

/// The size of `value` in `dimension`: its static one, that of some input of
/// the function, or one row for each of its bands.
json::Value FunctionDescriber::describeSize(Value value, int64_t dimension) {
  if (auto type = cast<RankedTensorType>(value.getType());
      !type.isDynamicDim(dimension))
    return type.getDimSize(dimension);
  if (auto argument = dyn_cast<BlockArgument>(value))
    return json::Object{{"input", argument.getArgNumber()},
                        {"dimension", dimension}};
  auto result = cast<OpResult>(value);
  // A piece has the sizes of the whole in other dimensions.
  if (tile::isPlaceOfOperands(result.getOwner()))
    return describeSize(result.getOwner()->getOperand(0), dimension);
  auto launch = cast<tile::LaunchOp>(result.getOwner());
  if (tile::ProgramOp program = getProgram(launch); program.getDimensions())
    return describeNamedSize(launch, program, getPosition(result), dimension);
  json::Value size = describeSize(getSizeInput(result, dimension), dimension);
  if (std::optional<int64_t> band = getBand(result))
    return json::Object{{"ceildiv", json::Array{std::move(size), *band}}};
  return size;
}

/// The sizes of a buffer in the shape of `value`.
json::Array FunctionDescriber::describeShape(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  json::Array shape;
  for (auto [dimension, size] : llvm::enumerate(type.getShape())) {
    if (!ShapedType::isDynamic(size))
      shape.push_back(size);
    else
      shape.push_back(describeSize(value, dimension));
  }
  return shape;
}

/// The leading sizes of the rows that `launch` goes through. An operand that is
/// repeated in a dimension has the size 1 there.
json::Array FunctionDescriber::describeLeadingSizes(tile::LaunchOp launch) {
  json::Array sizes;
  tile::ProgramOp program = getProgram(launch);
  for (auto [index, input] : llvm::enumerate(launch.getInputs())) {
    if (!isRowTensor(input) ||
        program.getArgBand(program.getNumSizes() + index))
      continue;
    json::Array shape = describeShape(input);
    shape.pop_back();
    if (sizes.empty())
      sizes = std::move(shape);
    else
      for (auto [size, other] : llvm::zip_equal(sizes, shape))
        if (size == json::Value(1))
          size = std::move(other);
  }
  return sizes;
}

/// The program of the first variant of the kernel that `launch` runs.
tile::ProgramOp FunctionDescriber::getProgram(tile::LaunchOp launch) {
  return symbols.lookup<tile::ProgramOp>(launch.getFirstName());
}

/// The place of `result` among the arguments of the program that writes it.
unsigned FunctionDescriber::getPosition(OpResult result) {
  auto launch = cast<tile::LaunchOp>(result.getOwner());
  return getProgram(launch).getNumSizes() + launch.getInputs().size() +
         result.getResultNumber();
}

bool FunctionDescriber::isPartial(OpResult result) {
  auto launch = dyn_cast<tile::LaunchOp>(result.getOwner());
  return launch && getProgram(launch).isArgPartial(getPosition(result));
}

std::optional<int64_t> FunctionDescriber::getBand(OpResult result) {
  return getProgram(cast<tile::LaunchOp>(result.getOwner()))
      .getArgBand(getPosition(result));
}

json::Object FunctionDescriber::describeBuffer(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  json::Array shape;
  if (auto result = dyn_cast<OpResult>(value); result && isPartial(result)) {
    auto launch = cast<tile::LaunchOp>(result.getOwner());
    json::Array sizes = describeLeadingSizes(launch);
    json::Value count =
        sizes.size() == 1
            ? std::move(sizes[0])
            : json::Value(json::Object{{"mul", std::move(sizes)}});
    shape.push_back(describePrograms(getProgram(launch), std::move(count)));
    shape.push_back(type.getShape().back());
  } else {
    shape = describeShape(value);
  }
  return json::Object{{"type", getTypeName(type.getElementType())},
                      {"shape", std::move(shape)}};
}

json::Object FunctionDescriber::describeOperand(Value value, bool isPartial,
                                                std::optional<int64_t> band,
                                                int64_t space) {
  json::Object operand = places.describe(value);
  operand["rows"] = isRowTensor(value) && !isPartial && !band;
  if (band)
    operand["band"] = *band;
  if (space != 0)
    operand["space"] = space;
  return operand;
}

int64_t FunctionDescriber::getCluster(tile::ProgramOp program) {
  return target.isHost() ? 1 : program.getSchedule().getBlocks();
}

/// How many programs share the `rows` of a launch.
json::Value FunctionDescriber::describePrograms(tile::ProgramOp program,
                                                json::Value rows) {
  if (auto fixed = program.getRowPrograms())
    return *fixed;
  tile::ScheduleInterface schedule = program.getSchedule();
  json::Value groups = std::move(rows);
  if (int64_t together = program.getRowsPerProgram(); together > 1)
    groups =
        json::Object{{"ceildiv", json::Array{std::move(groups), together}}};
  int64_t persistent = schedule.getPersistent();
  if (!persistent)
    return groups;
  // Where clusters fit only in some places, the count is of those that run at
  // once.
  json::Value atOnce = "multiprocessors";
  if (int64_t cluster = getCluster(program); cluster > 1)
    atOnce = json::Object{{"clusters", cluster}};
  json::Value most =
      json::Object{{"mul", json::Array{std::move(atOnce), persistent}}};
  if (int64_t blocks = program.getColumnBlocks(); blocks > 1)
    most = json::Object{{"ceildiv", json::Array{std::move(most), blocks}}};
  return json::Object{{"min", json::Array{std::move(groups), std::move(most)}}};
}

json::Value FunctionDescriber::describeGrid(tile::ProgramOp program) {
  json::Array spaces;
  if (program.getCombines()) {
    spaces.push_back(json::Object{{"rows", 1}});
  } else {
    spaces.push_back(describePrograms(program, "rows"));
    for (int64_t space = 1, count = program.getSpaces(); space < count; ++space)
      spaces.push_back(
          describePrograms(program, json::Object{{"rows", space}}));
  }
  json::Value grid =
      spaces.size() == 1
          ? std::move(spaces[0])
          : json::Value(json::Object{{"add", std::move(spaces)}});
  if (int64_t columnBlocks = program.getColumnBlocks(); columnBlocks > 1)
    grid = json::Object{{"mul", json::Array{std::move(grid), columnBlocks}}};
  if (int64_t cluster = getCluster(program); cluster > 1)
    grid = json::Object{{"mul", json::Array{std::move(grid), cluster}}};
  return grid;
}

json::Object FunctionDescriber::describeVariant(tile::LaunchOp launch,
                                                tile::ProgramOp program) {
  int64_t leading = program.getLeading();
  json::Array alignment, arguments;
  for (int64_t space = 0, spaces = program.getSpaces(); space < spaces; ++space)
    for (int64_t dimension : getDimensionOrder(program, space)) {
      json::Object size{{"size", dimension}};
      if (space != 0)
        size["space"] = space;
      arguments.push_back(std::move(size));
    }
  for (int64_t dimension :
       program.getUnmergedSizes().value_or(ArrayRef<int64_t>()))
    arguments.push_back(json::Object{{"unmerged_size", dimension}});
  int64_t numSizes = program.getNumSizes();
  for (int64_t operand = 0, end = program.getNumArguments() - numSizes;
       operand < end; ++operand) {
    unsigned position = numSizes + operand;
    alignment.push_back(program.getArgAlignment(position));
    arguments.push_back(json::Object{{"pointer", operand}});
    auto type = cast<MemRefType>(program.getArgumentTypes()[position]);
    if (type.getLayout().isIdentity())
      continue;
    for (int64_t dimension :
         getDimensionOrder(program, program.getArgSpace(position)))
      arguments.push_back(
          json::Object{{"stride", operand}, {"dimension", dimension}});
  }
  int64_t threads = target.isHost() ? 1 : program.getSchedule().getThreads();
  json::Object variant{{"entry", program.getSymName()},
                       {"leading", leading},
                       {"alignment", std::move(alignment)},
                       {"arguments", std::move(arguments)},
                       {"grid", describeGrid(program)},
                       {"block", threads},
                       {"cluster", getCluster(program)},
                       {"shared_memory", program.getSharedBytes()}};
  if (json::Array phases = describePhases(program); !phases.empty())
    variant["phase"] = std::move(phases);
  return variant;
}

/// The phase that the variant needs of each operand, in elements; none if it
/// needs no phase.
json::Array FunctionDescriber::describePhases(tile::ProgramOp program) {
  json::Array phases;
  bool isAsked = false;
  for (unsigned position = program.getNumSizes();
       position < program.getNumArguments(); ++position) {
    std::optional<int64_t> phase = program.getArgPhase(position);
    phases.push_back(phase.value_or(1));
    isAsked |= phase.has_value();
  }
  return isAsked ? std::move(phases) : json::Array();
}

/// Describes a launch over named dimensions.
json::Object FunctionDescriber::describeDimensionLaunch(tile::LaunchOp launch) {
  tile::ProgramOp first = getProgram(launch);
  json::Array operands, variants;
  variants.reserve(launch.getKernels().size());
  auto describe = [&](Value value) {
    json::Object operand = places.describe(value);
    operand["map"] = describeMap(first, first.getNumSizes() + operands.size());
    operands.push_back(std::move(operand));
  };
  llvm::for_each(launch.getInputs(), describe);
  llvm::for_each(launch.getResults(), describe);
  for (StringRef name : launch.getNames()) {
    auto program = symbols.lookup<tile::ProgramOp>(name);
    json::Object variant =
        describeDimensionVariant(program, launch.getInputs().size());
    variant["entry"] = program.getSymName();
    variant["block"] = program.getSchedule().getThreads();
    variant["cluster"] = getCluster(program);
    variant["shared_memory"] = program.getSharedBytes();
    variants.push_back(std::move(variant));
  }
  return json::Object{{"kernel", launch.getFirstName()},
                      {"dimensions", describeDimensions(first)},
                      {"operands", std::move(operands)},
                      {"variants", std::move(variants)},
                      {"overlap_next", launch.getOverlapNext()}};
}

/// Whether `program` computes the same in whatever order it goes through its
/// rows: none of them is combined with others or knows its number.
static bool allowsAnyOrder(tile::ProgramOp program) {
  if (!getCombinedDimensions(program).empty() || program.getBand())
    return false;
  for (unsigned position = program.getNumSizes();
       position < program.getNumArguments(); ++position)
    if (program.isArgPartial(position) || program.getArgBand(position))
      return false;
  const WalkResult numbered =
      program.walk([](tile::IotaRowsOp) { return WalkResult::interrupt(); });
  return !numbered.wasInterrupted();
}

json::Object FunctionDescriber::describeLaunch(tile::LaunchOp launch) {
  json::Array operands, variants;
  variants.reserve(launch.getKernels().size());
  int64_t leading = 0;
  tile::ProgramOp first = getProgram(launch);
  if (first.getDimensions())
    return describeDimensionLaunch(launch);
  auto getSpace = [&] {
    return first.getArgSpace(first.getNumSizes() + operands.size());
  };
  for (Value value : launch.getInputs()) {
    operands.push_back(describeOperand(
        value, /*isPartial=*/false,
        first.getArgBand(first.getNumSizes() + operands.size()), getSpace()));
    if (isRowTensor(value))
      leading = cast<RankedTensorType>(value.getType()).getRank() - 1;
  }
  for (OpResult result : launch.getResults())
    operands.push_back(describeOperand(result, isPartial(result),
                                       getBand(result), getSpace()));
  for (StringRef name : launch.getNames())
    variants.push_back(
        describeVariant(launch, symbols.lookup<tile::ProgramOp>(name)));
  json::Object description{{"kernel", launch.getFirstName()},
                           {"operands", std::move(operands)},
                           {"leading", leading},
                           {"variants", std::move(variants)},
                           {"overlap_next", launch.getOverlapNext()}};
  if (SmallVector<int64_t> combined = getCombinedDimensions(first);
      !combined.empty())
    description["combines"] = json::Array(combined);
  if (leading > 1 && allowsAnyOrder(first))
    description["any_order"] = true;
  return description;
}

json::Object FunctionDescriber::describe() {
  auto returnOp = cast<func::ReturnOp>(func.front().getTerminator());
  json::Array outputBuffers, temporaryBuffers, launches;
  for (Value value : returnOp.getOperands()) {
    json::Object buffer = describeBuffer(value);
    unsigned index = places.addOutput(value);
    buffer["name"] = getResultName(func, index);
    if (auto argument = func.getResultAttrOfType<IntegerAttr>(
            index, tile::TileDialect::kInPlaceAttrName))
      buffer["may_alias"] = argument.getInt();
    outputBuffers.push_back(std::move(buffer));
  }
  for (Operation &op : func.front().without_terminator()) {
    auto launch = dyn_cast<tile::LaunchOp>(op);
    if (!launch && !isa<tile::JoinOp>(op))
      continue;
    for (OpResult value : op.getResults()) {
      if (!places.addTemporary(value))
        continue;
      json::Object buffer = describeBuffer(value);
      bool isZeroed =
          launch && getProgram(launch).getArgCounters(getPosition(value));
      buffer["zeroed_by"] = isZeroed ? "runtime" : "nobody";
      temporaryBuffers.push_back(std::move(buffer));
    }
  }
  // An array that grows copies what it has, as values do not move without
  // exceptions.
  launches.reserve(llvm::range_size(func.front().getOps<tile::LaunchOp>()));
  for (auto launch : func.front().getOps<tile::LaunchOp>())
    launches.push_back(describeLaunch(launch));
  json::Object function{{"name", func.getSymName()},
                        {"inputs", describeInputs(func)},
                        {"outputs", std::move(outputBuffers)},
                        {"temporaries", std::move(temporaryBuffers)},
                        {"launches", std::move(launches)}};
  if (json::Array pieces = places.takePieces(); !pieces.empty())
    function["pieces"] = std::move(pieces);
  if (Attribute backward = func->getAttr(tile::TileDialect::kBackwardAttrName))
    function["backward"] = describeAttribute(backward);
  return function;
}

/// The first version of the schema whose readers know every field of the
/// document: launches that run without rows, variants for misaligned operands
/// with one phase, grids that depend on how many clusters run at once, named
/// dimensions, sizes ahead of merging, pieces of tensors, and variants for
/// calls of some sizes.
int64_t getSchemaVersion(ModuleOp module, const Target &target) {
  for (auto program : module.getOps<tile::ProgramOp>())
    if (program.getLeast())
      return 7;
  for (auto func : module.getOps<func::FuncOp>())
    if (llvm::any_of(func.front().without_terminator(), [](Operation &op) {
          return tile::isPlaceOfOperands(&op);
        }))
      return 6;
  int64_t version = 1;
  for (auto program : module.getOps<tile::ProgramOp>()) {
    if (program.getUnmergedSizes())
      version = std::max<int64_t>(version, 5);
    if (program.getDimensions()) {
      version = std::max<int64_t>(version, 4);
      continue;
    }
    if (!getCombinedDimensions(program).empty())
      version = std::max<int64_t>(version, 3);
    tile::ScheduleInterface schedule = program.getSchedule();
    if (!target.isHost() && schedule.getPersistent() &&
        schedule.getBlocks() > 1)
      version = std::max<int64_t>(version, 2);
    for (unsigned position = 0; position < program.getNumArguments();
         ++position)
      if (program.getArgPhase(position))
        version = std::max<int64_t>(version, 2);
  }
  return version;
}

} // namespace

json::Object bastile::describeSignature(func::FuncOp func) {
  json::Array outputs;
  for (auto [index, type] : llvm::enumerate(func.getResultTypes())) {
    json::Object output = describeValue(getResultName(func, index), type);
    auto place = func.getResultAttrOfType<IntegerAttr>(
        index, tile::TileDialect::kInPlaceAttrName);
    // Others are refused where the function is compiled.
    if (place && place.getValue().ult(func.getNumArguments()))
      output["in_place"] =
          static_cast<int64_t>(place.getValue().getZExtValue());
    outputs.push_back(std::move(output));
  }
  return json::Object{{"name", func.getSymName()},
                      {"inputs", describeInputs(func)},
                      {"outputs", std::move(outputs)}};
}

json::Value bastile::buildMetadata(ModuleOp module, const Target &target) {
  SymbolTable symbols(module);
  json::Array functions;
  for (auto func : module.getOps<func::FuncOp>())
    functions.push_back(FunctionDescriber(func, symbols, target).describe());
  return json::Object{{"schema", "bastile.kernels"},
                      {"version", getSchemaVersion(module, target)},
                      {"compiler", "bastile " BASTILE_VERSION},
                      {"target", target.name},
                      {"functions", std::move(functions)}};
}
