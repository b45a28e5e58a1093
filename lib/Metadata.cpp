//===- Metadata.cpp - Describing launches ---------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Metadata.h"

#include "bastile/Compiler.h"
#include "bastile/Version.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace bastile;
namespace json = llvm::json;

namespace {

std::string getTypeName(Type elementType) {
  std::string name;
  llvm::raw_string_ostream(name) << elementType;
  return name;
}

bool isRowTensor(Value value) {
  return cast<RankedTensorType>(value.getType()).getRank() >= 2;
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
  json::Object describeOperand(Value value);
  json::Object describeLaunch(tile::LaunchOp launch);
  json::Object describeVariant(tile::LaunchOp launch, tile::KernelOp kernel);
  json::Value describeGrid(tile::KernelOp kernel);
  int64_t getCluster(tile::KernelOp kernel);
  BlockArgument getSizeSource(Value value);

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
    auto name = func.getArgAttrOfType<StringAttr>(
        argument.getArgNumber(), tile::TileDialect::kNameAttrName);
    inputs.push_back(json::Object{
        {"name",
         name ? name.str() : "arg" + std::to_string(argument.getArgNumber())},
        {"type", getTypeName(type.getElementType())},
        {"shape", std::move(shape)}});
  }
  return inputs;
}

/// The input that has the leading sizes of `value`: all row tensors of a launch
/// have the same ones.
BlockArgument FunctionDescriber::getSizeSource(Value value) {
  while (auto launch = value.getDefiningOp<tile::LaunchOp>())
    value = *llvm::find_if(launch.getInputs(), isRowTensor);
  return cast<BlockArgument>(value);
}

json::Object FunctionDescriber::describeBuffer(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  BlockArgument source = getSizeSource(value);
  json::Array shape;
  for (auto [dimension, size] : llvm::enumerate(type.getShape())) {
    if (!ShapedType::isDynamic(size))
      shape.push_back(size);
    else
      shape.push_back(
          json::Object{{"input", source.getArgNumber()},
                       {"dimension", static_cast<int64_t>(dimension)}});
  }
  return json::Object{{"type", getTypeName(type.getElementType())},
                      {"shape", std::move(shape)}};
}

json::Object FunctionDescriber::describeOperand(Value value) {
  json::Object operand{{"rows", isRowTensor(value)}};
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

json::Value FunctionDescriber::describeGrid(tile::KernelOp kernel) {
  tile::ScheduleAttr schedule = *kernel.getSchedule();
  json::Value grid = "rows";
  if (schedule.getRows() > 1)
    grid = json::Object{{"ceildiv", json::Array{grid, schedule.getRows()}}};
  if (int64_t columnBlocks = kernel.getColumnBlocks().value_or(1);
      columnBlocks > 1)
    grid = json::Object{{"mul", json::Array{grid, columnBlocks}}};
  int64_t cluster = getCluster(kernel);
  if (int64_t persistent = schedule.getPersistent()) {
    json::Value limit =
        json::Object{{"mul", json::Array{"multiprocessors", persistent}}};
    if (cluster > 1)
      limit = json::Object{{"ceildiv", json::Array{limit, cluster}}};
    grid = json::Object{{"min", json::Array{grid, limit}}};
  }
  if (cluster > 1)
    grid = json::Object{{"mul", json::Array{grid, cluster}}};
  return grid;
}

json::Object FunctionDescriber::describeVariant(tile::LaunchOp launch,
                                                tile::KernelOp kernel) {
  int64_t leading = *kernel.getLeading();
  json::Array alignment, arguments;
  for (int64_t dimension = 0; dimension < leading; ++dimension)
    arguments.push_back(json::Object{{"size", dimension}});
  for (int64_t operand = 0, end = kernel.getNumArguments() - leading;
       operand < end; ++operand) {
    unsigned position = leading + operand;
    alignment.push_back(kernel
                            .getArgAttrOfType<IntegerAttr>(
                                position, tile::TileDialect::kAlignmentAttrName)
                            .getInt());
    arguments.push_back(json::Object{{"pointer", operand}});
    auto type = cast<MemRefType>(kernel.getArgumentTypes()[position]);
    for (int64_t dimension = 0; dimension < type.getRank() - 1; ++dimension)
      arguments.push_back(
          json::Object{{"stride", operand}, {"dimension", dimension}});
  }
  int64_t threads = target.isHost() ? 1 : kernel.getSchedule()->getThreads();
  return json::Object{
      {"entry", kernel.getSymName()},      {"leading", leading},
      {"alignment", std::move(alignment)}, {"arguments", std::move(arguments)},
      {"grid", describeGrid(kernel)},      {"block", threads},
      {"cluster", getCluster(kernel)},     {"shared_memory", 0}};
}

json::Object FunctionDescriber::describeLaunch(tile::LaunchOp launch) {
  json::Array operands, variants;
  int64_t leading = 0;
  for (Value value :
       llvm::concat<Value>(llvm::to_vector(launch.getInputs()),
                           llvm::to_vector(launch.getResults()))) {
    operands.push_back(describeOperand(value));
    if (isRowTensor(value))
      leading = cast<RankedTensorType>(value.getType()).getRank() - 1;
  }
  std::string name;
  for (Attribute symbol : launch.getKernels()) {
    auto kernel = symbols.lookup<tile::KernelOp>(
        cast<FlatSymbolRefAttr>(symbol).getValue());
    // The first variant carries the kernel's own name.
    if (name.empty())
      name = kernel.getSymName();
    variants.push_back(describeVariant(launch, kernel));
  }
  return json::Object{{"kernel", name},
                      {"operands", std::move(operands)},
                      {"leading", leading},
                      {"variants", std::move(variants)},
                      {"overlap_next", false}};
}

json::Object FunctionDescriber::describe() {
  auto returnOp = cast<func::ReturnOp>(func.front().getTerminator());
  json::Array outputBuffers, temporaryBuffers, launches;
  for (Value value : returnOp.getOperands()) {
    json::Object buffer = describeBuffer(value);
    buffer["name"] = "result" + std::to_string(outputs.size());
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
  return json::Object{{"name", func.getSymName()},
                      {"inputs", describeInputs()},
                      {"outputs", std::move(outputBuffers)},
                      {"temporaries", std::move(temporaryBuffers)},
                      {"launches", std::move(launches)}};
}

} // namespace

json::Value bastile::buildMetadata(ModuleOp module, const Target &target) {
  SymbolTable symbols(module);
  json::Array functions;
  for (auto func : module.getOps<func::FuncOp>())
    functions.push_back(FunctionDescriber(func, symbols, target).describe());
  return json::Object{{"schema", "bastile.kernels"},
                      {"version", 1},
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
