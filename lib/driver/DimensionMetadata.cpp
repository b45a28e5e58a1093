//===- DimensionMetadata.cpp - Launches over named dimensions -------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/driver/DimensionMetadata.h"

using namespace mlir;
using namespace bastile;
namespace json = llvm::json;

/// Bytes that the address and the strides of an operand with a tensor map must
/// be multiples of.
static constexpr int64_t kMapAlignment = 16;

json::Array bastile::describeDimensions(tile::ProgramOp program) {
  json::Array names;
  const ArrayAttr dimensions = *program.getDimensions();
  for (auto name : dimensions.getAsRange<StringAttr>())
    names.push_back(name.getValue());
  return names;
}

json::Array bastile::describeMap(tile::ProgramOp program, unsigned position) {
  json::Array map;
  for (Attribute dimension : program.getArgDimensions(position)) {
    if (auto name = dyn_cast<StringAttr>(dimension))
      map.push_back(name.getValue());
    else
      map.push_back(cast<IntegerAttr>(dimension).getInt());
  }
  return map;
}

/// Appends the arguments that stand for operand `operand` of type `type`.
static void describeOperand(json::Array &arguments, int64_t operand,
                            Type type) {
  if (auto map = dyn_cast<tile::TensorMapType>(type)) {
    json::Object argument{{"tensor_map", operand},
                          {"box", json::Array(map.getBox())}};
    if (map.getSwizzle() != 0)
      argument["swizzle"] = map.getSwizzle();
    arguments.push_back(std::move(argument));
    return;
  }
  arguments.push_back(json::Object{{"pointer", operand}});
  auto memref = cast<MemRefType>(type);
  if (memref.getLayout().isIdentity())
    return;
  for (int64_t dimension = 0; dimension + 1 < memref.getRank(); ++dimension)
    arguments.push_back(
        json::Object{{"stride", operand}, {"dimension", dimension}});
}

/// One program for each combination of parts, or as many as run at once.
static json::Value describeGrid(tile::ProgramOp program) {
  json::Array factors;
  const DictionaryAttr parts = *program.getPrograms();
  for (NamedAttribute part : parts) {
    json::Value size = json::Object{{"size", part.getName().getValue()}};
    int64_t length = cast<IntegerAttr>(part.getValue()).getInt();
    if (length > 1)
      size = json::Object{{"ceildiv", json::Array{std::move(size), length}}};
    factors.push_back(std::move(size));
  }
  json::Value programs = 1;
  if (factors.size() == 1)
    programs = std::move(factors[0]);
  else if (!factors.empty())
    programs = json::Object{{"mul", std::move(factors)}};

  tile::ScheduleAttr schedule = program.getSchedule();
  int64_t cluster = schedule.getBlocks();
  if (int64_t persistent = schedule.getPersistent()) {
    json::Value atOnce = "multiprocessors";
    if (cluster > 1)
      atOnce = json::Object{{"clusters", cluster}};
    if (persistent > 1)
      atOnce =
          json::Object{{"mul", json::Array{std::move(atOnce), persistent}}};
    programs = json::Object{
        {"min", json::Array{std::move(programs), std::move(atOnce)}}};
  }
  if (cluster > 1)
    programs = json::Object{{"mul", json::Array{std::move(programs), cluster}}};
  return programs;
}

/// Whether `program` has products of warpgroups.
static bool needsWarpgroupProducts(tile::ProgramOp program) {
  return program
      .walk([](tile::DotOp dot) {
        return dot.isOfWarpgroups() ? WalkResult::interrupt()
                                    : WalkResult::advance();
      })
      .wasInterrupted();
}

json::Object bastile::describeDimensionVariant(tile::ProgramOp program) {
  json::Array alignment, arguments;
  for (json::Value &name : describeDimensions(program))
    arguments.push_back(json::Object{{"size", std::move(name)}});
  unsigned sizes = program.getNumSizes();
  for (unsigned position = sizes; position < program.getNumArguments();
       ++position) {
    Type type = program.getArgumentTypes()[position];
    alignment.push_back(isa<tile::TensorMapType>(type)
                            ? kMapAlignment
                            : program.getArgAlignment(position));
    describeOperand(arguments, position - sizes, type);
  }
  json::Object variant{{"alignment", std::move(alignment)},
                       {"arguments", std::move(arguments)},
                       {"grid", describeGrid(program)}};
  if (needsWarpgroupProducts(program))
    variant["requires"] = json::Array{"wgmma"};
  return variant;
}

std::pair<Value, int64_t>
bastile::findSize(OpResult result, tile::ProgramOp program, int64_t dimension) {
  auto launch = cast<tile::LaunchOp>(result.getOwner());
  unsigned first = program.getNumSizes();
  Attribute name = program.getArgDimensions(
      first + launch.getInputs().size() + result.getResultNumber())[dimension];
  for (auto [index, input] : llvm::enumerate(launch.getInputs()))
    for (auto [place, other] :
         llvm::enumerate(program.getArgDimensions(first + index)))
      if (other == name)
        return {input, place};
  return {};
}
