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

json::Value bastile::describeParts(json::Value size, int64_t length) {
  if (length == 1)
    return size;
  return json::Object{{"ceildiv", json::Array{std::move(size), length}}};
}

json::Value bastile::describeProduct(json::Array factors) {
  if (factors.empty())
    return 1;
  if (factors.size() == 1)
    return std::move(factors[0]);
  return json::Object{{"mul", std::move(factors)}};
}

static json::Array describeNames(tile::ProgramOp program) {
  json::Array names;
  const ArrayAttr dimensions = *program.getDimensions();
  for (auto name : dimensions.getAsRange<StringAttr>())
    names.push_back(name.getValue());
  return names;
}

/// The name of the only dimension of the counters at `position`. No program has
/// a dimension of this name: they are identifiers.
static std::string getCountersName(unsigned position) {
  return "counters of argument " + std::to_string(position);
}

json::Array bastile::describeDimensions(tile::ProgramOp program) {
  json::Array names = describeNames(program);
  for (unsigned position = 0; position < program.getNumArguments(); ++position)
    if (program.getArgCounters(position))
      names.push_back(getCountersName(position));
  return names;
}

json::Array bastile::describeMap(tile::ProgramOp program, unsigned position) {
  if (program.getArgCounters(position))
    return json::Array{getCountersName(position)};
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

/// One program for each combination of parts, or as many as run at once. Sums
/// over a dimension that some result does not have are written even if it is
/// empty.
static json::Value describeGrid(tile::ProgramOp program, unsigned inputs) {
  auto isOfAllResults = [&](Attribute name) {
    return llvm::all_of(
        llvm::seq<unsigned>(program.getNumSizes() + inputs,
                            program.getNumArguments()),
        [&](unsigned position) {
          ArrayAttr dimensions = program.getArgDimensions(position);
          return !dimensions || llvm::is_contained(dimensions, name);
        });
  };
  json::Array factors;
  const DictionaryAttr parts = *program.getPrograms();
  for (NamedAttribute part : parts) {
    json::Value count =
        describeParts(json::Object{{"size", part.getName().getValue()}},
                      cast<IntegerAttr>(part.getValue()).getInt());
    if (!isOfAllResults(part.getName()))
      count = json::Object{{"max", json::Array{std::move(count), 1}}};
    factors.push_back(std::move(count));
  }
  json::Value programs = describeProduct(std::move(factors));

  tile::ScheduleInterface schedule = program.getSchedule();
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

json::Object bastile::describeDimensionVariant(tile::ProgramOp program,
                                               unsigned inputs) {
  json::Array alignment, arguments;
  // Most operands are an argument each, or one with a stride or two.
  arguments.reserve(2 * program.getNumArguments());
  for (json::Value &name : describeNames(program))
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
                       {"grid", describeGrid(program, inputs)}};
  if (needsWarpgroupProducts(program))
    variant["requires"] = json::Array{"wgmma"};
  if (std::optional<DictionaryAttr> least = program.getLeast()) {
    json::Array sizes;
    for (NamedAttribute size : *least)
      sizes.push_back(
          json::Object{{"dimension", size.getName().getValue()},
                       {"size", cast<IntegerAttr>(size.getValue()).getInt()}});
    variant["least"] = std::move(sizes);
  }
  return variant;
}

std::pair<Value, int64_t> bastile::findSize(tile::LaunchOp launch,
                                            tile::ProgramOp program,
                                            Attribute name) {
  unsigned first = program.getNumSizes();
  for (auto [index, input] : llvm::enumerate(launch.getInputs()))
    for (auto [place, other] :
         llvm::enumerate(program.getArgDimensions(first + index)))
      if (other == name)
        return {input, place};
  return {};
}
