//===- Metadata.cpp - Describing launches ---------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/driver/Metadata.h"

#include "bastile/Compiler.h"
#include "bastile/Version.h"
#include "dialect/Rows.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/tensors/Names.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
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

/// How many rows share one row of the operand at `position` of the arguments,
/// if several do.
std::optional<int64_t> getBand(tile::KernelOp kernel, unsigned position) {
  auto band = kernel.getArgAttrOfType<IntegerAttr>(
      position, tile::TileDialect::kBandAttrName);
  return band ? std::optional(band.getInt()) : std::nullopt;
}

/// The leading dimensions over which a program of `kernel` combines rows.
SmallVector<int64_t> getCombinedDimensions(tile::KernelOp kernel) {
  if (std::optional<ArrayRef<int64_t>> combines = kernel.getCombines())
    return SmallVector<int64_t>(*combines);
  // One program combines all rows.
  return kernel.getRowPrograms()
             ? llvm::to_vector(llvm::seq<int64_t>(0, *kernel.getLeading()))
             : SmallVector<int64_t>();
}

/// The launch's dimensions in the order in which `kernel` takes those of row
/// space `space`: where rows are combined, the dimensions that are left come
/// first.
SmallVector<int64_t> getDimensionOrder(tile::KernelOp kernel, int64_t space) {
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, *kernel.getLeading()));
  if (space == 0)
    std::stable_partition(order.begin(), order.end(), [&](int64_t dimension) {
      return !llvm::is_contained(getCombinedDimensions(kernel), dimension);
    });
  return order;
}

/// Describes one function.
class FunctionDescriber {
public:
  FunctionDescriber(func::FuncOp func, SymbolTable &symbols,
                    const Target &target)
      : func(func), symbols(symbols), target(target) {}

  json::Object describe();

private:
  json::Array describeInputs();
  json::Object describeBuffer(Value value);
  json::Object describeOperand(Value value, bool isPartial,
                               std::optional<int64_t> band, int64_t space);
  json::Object describeLaunch(tile::LaunchOp launch);
  json::Object describeVariant(tile::LaunchOp launch, tile::KernelOp kernel);
  json::Array describePhases(tile::KernelOp kernel);
  json::Value describePrograms(tile::KernelOp kernel, json::Value rows);
  json::Value describeGrid(tile::KernelOp kernel);
  json::Array describeShape(Value value);
  json::Value describeSize(Value value, int64_t dimension);
  Value getSizeInput(OpResult result, int64_t dimension);
  json::Array describeLeadingSizes(tile::LaunchOp launch);
  tile::KernelOp getKernel(tile::LaunchOp launch);
  unsigned getPosition(OpResult result);
  bool isPartial(OpResult result);
  std::optional<int64_t> getBand(OpResult result);
  int64_t getCluster(tile::KernelOp kernel);
  int64_t getSharedBytes(tile::KernelOp kernel);

  func::FuncOp func;
  SymbolTable &symbols;
  const Target &target;
  DenseMap<Value, int64_t> outputs, temporaries;
};

json::Array FunctionDescriber::describeInputs() {
  json::Array inputs;
  for (BlockArgument argument : func.getArguments()) {
    auto type = cast<RankedTensorType>(argument.getType());
    json::Array shape;
    for (int64_t size : type.getShape())
      shape.push_back(ShapedType::isDynamic(size) ? json::Value(nullptr)
                                                  : json::Value(size));
    inputs.push_back(
        json::Object{{"name", getInputName(func, argument.getArgNumber())},
                     {"type", getTypeName(type.getElementType())},
                     {"shape", std::move(shape)}});
  }
  return inputs;
}

/// An operand of the launch with the size of its `result` in `dimension`. All
/// row tensors of a row space have the same leading sizes, except those that
/// are repeated.
Value FunctionDescriber::getSizeInput(OpResult result, int64_t dimension) {
  auto launch = cast<tile::LaunchOp>(result.getOwner());
  tile::KernelOp kernel = getKernel(launch);
  unsigned first = kernel.getNumSizes();
  int64_t space = kernel.getSpace(first + launch.getInputs().size() +
                                  result.getResultNumber());
  for (auto [index, input] : llvm::enumerate(launch.getInputs())) {
    auto type = cast<RankedTensorType>(input.getType());
    // The result of combining rows has their sizes in the dimensions that are
    // left.
    if (type.getRank() >= 2 && type.isDynamicDim(dimension) &&
        (kernel.getSpace(first + index) == space || kernel.getCombines()) &&
        !::getBand(kernel, first + index))
      return input;
  }
  llvm_unreachable("no operand has the size of a result");
}

/// The size of `value` in `dimension`: that of some input of the function, or
/// one row for each of its bands.
json::Value FunctionDescriber::describeSize(Value value, int64_t dimension) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return json::Object{{"input", argument.getArgNumber()},
                        {"dimension", dimension}};
  auto result = cast<OpResult>(value);
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
  tile::KernelOp kernel = getKernel(launch);
  for (auto [index, input] : llvm::enumerate(launch.getInputs())) {
    if (!isRowTensor(input) || ::getBand(kernel, kernel.getNumSizes() + index))
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

/// The first variant of the kernel that `launch` runs.
tile::KernelOp FunctionDescriber::getKernel(tile::LaunchOp launch) {
  return symbols.lookup<tile::KernelOp>(
      cast<FlatSymbolRefAttr>(launch.getKernels()[0]).getValue());
}

/// The place of `result` among the arguments of the kernel that writes it.
unsigned FunctionDescriber::getPosition(OpResult result) {
  auto launch = cast<tile::LaunchOp>(result.getOwner());
  return getKernel(launch).getNumSizes() + launch.getInputs().size() +
         result.getResultNumber();
}

bool FunctionDescriber::isPartial(OpResult result) {
  tile::KernelOp kernel = getKernel(cast<tile::LaunchOp>(result.getOwner()));
  return bool(kernel.getArgAttr(getPosition(result),
                                tile::TileDialect::kPartialAttrName));
}

std::optional<int64_t> FunctionDescriber::getBand(OpResult result) {
  return ::getBand(getKernel(cast<tile::LaunchOp>(result.getOwner())),
                   getPosition(result));
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
    shape.push_back(describePrograms(getKernel(launch), std::move(count)));
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
  json::Object operand{{"rows", isRowTensor(value) && !isPartial && !band}};
  if (band)
    operand["band"] = *band;
  if (space != 0)
    operand["space"] = space;
  if (auto argument = dyn_cast<BlockArgument>(value))
    operand["input"] = argument.getArgNumber();
  else if (auto it = outputs.find(value); it != outputs.end())
    operand["output"] = it->second;
  else
    operand["temporary"] = temporaries.lookup(value);
  return operand;
}

int64_t FunctionDescriber::getCluster(tile::KernelOp kernel) {
  return target.isHost() ? 1 : kernel.getSchedule()->getBlocks();
}

/// Bytes of shared memory in which a block keeps rows from one sweep to the
/// next.
int64_t FunctionDescriber::getSharedBytes(tile::KernelOp kernel) {
  int64_t bytes = 0;
  kernel.walk([&](tile::BufferOp buffer) {
    bytes = std::max(bytes, buffer.getEnd(getCluster(kernel)));
  });
  return bytes;
}

/// How many programs share the `rows` of a launch.
json::Value FunctionDescriber::describePrograms(tile::KernelOp kernel,
                                                json::Value rows) {
  if (auto fixed = kernel.getRowPrograms())
    return *fixed;
  tile::ScheduleAttr schedule = *kernel.getSchedule();
  json::Value groups = std::move(rows);
  if (int64_t together = kernel.getRowsPerProgram(); together > 1)
    groups =
        json::Object{{"ceildiv", json::Array{std::move(groups), together}}};
  int64_t persistent = schedule.getPersistent();
  if (!persistent)
    return groups;
  // Where clusters fit only in some places, the count is of those that run at
  // once.
  json::Value atOnce = "multiprocessors";
  if (int64_t cluster = getCluster(kernel); cluster > 1)
    atOnce = json::Object{{"clusters", cluster}};
  json::Value most =
      json::Object{{"mul", json::Array{std::move(atOnce), persistent}}};
  if (int64_t blocks = kernel.getColumnBlocks().value_or(1); blocks > 1)
    most = json::Object{{"ceildiv", json::Array{std::move(most), blocks}}};
  return json::Object{{"min", json::Array{std::move(groups), std::move(most)}}};
}

json::Value FunctionDescriber::describeGrid(tile::KernelOp kernel) {
  json::Array spaces;
  if (kernel.getCombines()) {
    spaces.push_back(json::Object{{"rows", 1}});
  } else {
    spaces.push_back(describePrograms(kernel, "rows"));
    for (int64_t space = 1; space < kernel.getNumSpaces(); ++space)
      spaces.push_back(describePrograms(kernel, json::Object{{"rows", space}}));
  }
  json::Value grid =
      spaces.size() == 1
          ? std::move(spaces[0])
          : json::Value(json::Object{{"add", std::move(spaces)}});
  if (int64_t columnBlocks = kernel.getColumnBlocks().value_or(1);
      columnBlocks > 1)
    grid = json::Object{{"mul", json::Array{std::move(grid), columnBlocks}}};
  if (int64_t cluster = getCluster(kernel); cluster > 1)
    grid = json::Object{{"mul", json::Array{std::move(grid), cluster}}};
  return grid;
}

json::Object FunctionDescriber::describeVariant(tile::LaunchOp launch,
                                                tile::KernelOp kernel) {
  int64_t leading = *kernel.getLeading();
  json::Array alignment, arguments;
  for (int64_t space = 0; space < kernel.getNumSpaces(); ++space)
    for (int64_t dimension : getDimensionOrder(kernel, space)) {
      json::Object size{{"size", dimension}};
      if (space != 0)
        size["space"] = space;
      arguments.push_back(std::move(size));
    }
  int64_t numSizes = kernel.getNumSizes();
  for (int64_t operand = 0, end = kernel.getNumArguments() - numSizes;
       operand < end; ++operand) {
    unsigned position = numSizes + operand;
    alignment.push_back(kernel
                            .getArgAttrOfType<IntegerAttr>(
                                position, tile::TileDialect::kAlignmentAttrName)
                            .getInt());
    arguments.push_back(json::Object{{"pointer", operand}});
    auto type = cast<MemRefType>(kernel.getArgumentTypes()[position]);
    if (type.getLayout().isIdentity())
      continue;
    for (int64_t dimension :
         getDimensionOrder(kernel, kernel.getSpace(position)))
      arguments.push_back(
          json::Object{{"stride", operand}, {"dimension", dimension}});
  }
  int64_t threads = target.isHost() ? 1 : kernel.getSchedule()->getThreads();
  json::Object variant{{"entry", kernel.getSymName()},
                       {"leading", leading},
                       {"alignment", std::move(alignment)},
                       {"arguments", std::move(arguments)},
                       {"grid", describeGrid(kernel)},
                       {"block", threads},
                       {"cluster", getCluster(kernel)},
                       {"shared_memory", getSharedBytes(kernel)}};
  if (json::Array phases = describePhases(kernel); !phases.empty())
    variant["phase"] = std::move(phases);
  return variant;
}

/// The phase that the variant needs of each operand, in elements; none if it
/// needs no phase.
json::Array FunctionDescriber::describePhases(tile::KernelOp kernel) {
  json::Array phases;
  bool isAsked = false;
  for (unsigned position = kernel.getNumSizes();
       position < kernel.getNumArguments(); ++position) {
    auto phase = kernel.getArgAttrOfType<IntegerAttr>(
        position, tile::TileDialect::kPhaseAttrName);
    phases.push_back(phase ? phase.getInt() : 1);
    isAsked |= bool(phase);
  }
  return isAsked ? std::move(phases) : json::Array();
}

json::Object FunctionDescriber::describeLaunch(tile::LaunchOp launch) {
  json::Array operands, variants;
  int64_t leading = 0;
  tile::KernelOp first = getKernel(launch);
  auto getSpace = [&] {
    return first.getSpace(first.getNumSizes() + operands.size());
  };
  for (Value value : launch.getInputs()) {
    operands.push_back(describeOperand(
        value, /*isPartial=*/false,
        ::getBand(first, first.getNumSizes() + operands.size()), getSpace()));
    if (isRowTensor(value))
      leading = cast<RankedTensorType>(value.getType()).getRank() - 1;
  }
  for (OpResult result : launch.getResults())
    operands.push_back(describeOperand(result, isPartial(result),
                                       getBand(result), getSpace()));
  std::string name;
  for (Attribute symbol : launch.getKernels()) {
    auto kernel = symbols.lookup<tile::KernelOp>(
        cast<FlatSymbolRefAttr>(symbol).getValue());
    // The first variant carries the kernel's own name.
    if (name.empty())
      name = kernel.getSymName();
    variants.push_back(describeVariant(launch, kernel));
  }
  json::Object description{
      {"kernel", name},
      {"operands", std::move(operands)},
      {"leading", leading},
      {"variants", std::move(variants)},
      {"overlap_next",
       launch->hasAttr(tile::TileDialect::kOverlapNextAttrName)}};
  if (SmallVector<int64_t> combined = getCombinedDimensions(first);
      !combined.empty())
    description["combines"] = json::Array(combined);
  return description;
}

json::Object FunctionDescriber::describe() {
  auto returnOp = cast<func::ReturnOp>(func.front().getTerminator());
  json::Array outputBuffers, temporaryBuffers, launches;
  for (Value value : returnOp.getOperands()) {
    json::Object buffer = describeBuffer(value);
    unsigned index = outputs.size();
    buffer["name"] = getResultName(func, index);
    if (auto argument = func.getResultAttrOfType<IntegerAttr>(
            index, tile::TileDialect::kInPlaceAttrName))
      buffer["may_alias"] = argument.getInt();
    outputs[value] = outputs.size();
    outputBuffers.push_back(std::move(buffer));
  }
  for (auto launch : func.front().getOps<tile::LaunchOp>()) {
    for (Value value : launch.getResults()) {
      if (outputs.contains(value))
        continue;
      temporaries[value] = temporaries.size();
      json::Object buffer = describeBuffer(value);
      buffer["zeroed_by"] = "nobody";
      temporaryBuffers.push_back(std::move(buffer));
    }
  }
  for (auto launch : func.front().getOps<tile::LaunchOp>())
    launches.push_back(describeLaunch(launch));
  json::Object function{{"name", func.getSymName()},
                        {"inputs", describeInputs()},
                        {"outputs", std::move(outputBuffers)},
                        {"temporaries", std::move(temporaryBuffers)},
                        {"launches", std::move(launches)}};
  if (Attribute backward = func->getAttr(tile::TileDialect::kBackwardAttrName))
    function["backward"] = describeAttribute(backward);
  return function;
}

/// The first version of the schema whose readers know every field of the
/// document: launches that run without rows, variants for misaligned operands
/// with one phase, and grids that depend on how many clusters run at once.
int64_t getSchemaVersion(ModuleOp module, const Target &target) {
  int64_t version = 1;
  for (auto kernel : module.getOps<tile::KernelOp>()) {
    if (!getCombinedDimensions(kernel).empty())
      return 3;
    tile::ScheduleAttr schedule = *kernel.getSchedule();
    if (!target.isHost() && schedule.getPersistent() &&
        schedule.getBlocks() > 1)
      version = 2;
    for (unsigned position = 0; position < kernel.getNumArguments(); ++position)
      if (kernel.getArgAttr(position, tile::TileDialect::kPhaseAttrName))
        version = 2;
  }
  return version;
}

} // namespace

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

std::string bastile::formatMetadataComment(const json::Value &metadata) {
  std::string text, comment = "// bastile-metadata-begin\n";
  llvm::raw_string_ostream(text) << llvm::formatv("{0:1}", metadata);
  for (StringRef line : llvm::split(StringRef(text), "\n"))
    comment += ("// " + line + "\n").str();
  comment += "// bastile-metadata-end\n";
  return comment;
}
