//===- DimensionReader.cpp - Named dimensions from JSON -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/metadata/DimensionReader.h"
#include "bastile/runtime/TensorMap.h"
#include "runtime/Text.h"
#include "runtime/metadata/OperandName.h"

#include <algorithm>

using namespace bastile::runtime;

std::vector<std::string>
bastile::runtime::readDimensions(const JsonCursor &cursor) {
  std::vector<std::string> names;
  for (size_t i = 0; i != cursor.size(); ++i) {
    std::string name = cursor[i].asString();
    if (name.empty())
      cursor[i].fail("a dimension needs a name");
    if (std::find(names.begin(), names.end(), name) != names.end())
      cursor[i].fail(concat("there is a dimension '", name, "' already"));
    names.push_back(std::move(name));
  }
  return names;
}

void bastile::runtime::refuseRows(const JsonCursor &cursor,
                                  std::initializer_list<const char *> keys) {
  for (const char *key : keys)
    if (auto found = cursor.find(key))
      found->fail("the launch is over named dimensions and not over rows");
}

unsigned bastile::runtime::readDimension(const JsonCursor &cursor,
                                         const Launch &launch) {
  const std::string name = cursor.asString();
  const std::vector<std::string> &names = *launch.dimensions;
  auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    cursor.fail(concat("the launch has no dimension '", name, "'"));
  return static_cast<unsigned>(found - names.begin());
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

static std::vector<MappedDimension> readMap(const JsonCursor &cursor,
                                            const Function &function,
                                            const Operand &operand,
                                            const Launch &launch) {
  const size_t rank = function.rank(operand);
  if (cursor.size() != rank)
    cursor.fail(concat("expected one dimension for each of the ", rank, " of ",
                       describe(function, operand), ", got ", cursor.size()));
  std::vector<MappedDimension> map;
  for (unsigned d = 0; d != rank; ++d) {
    MappedDimension &mapped = map.emplace_back();
    if (!cursor[d].isInteger()) {
      mapped.dimension = readDimension(cursor[d], launch);
      continue;
    }
    mapped.size = cursor[d].asInteger();
    std::optional<int64_t> size = function.fixedSize(operand, d);
    if (size && *size != mapped.size)
      cursor[d].fail(concat(describe(function, operand), " has size ", *size,
                            " there, not ", mapped.size));
  }
  return map;
}

std::vector<std::vector<MappedDimension>>
bastile::runtime::readMaps(const JsonCursor &cursor, const Function &function,
                           const Launch &launch) {
  std::vector<std::vector<MappedDimension>> maps;
  for (size_t k = 0; k != cursor.size(); ++k) {
    refuseRows(cursor[k], {"rows", "space", "band"});
    maps.push_back(
        readMap(cursor[k]["map"], function, launch.operands[k], launch));
  }
  auto isMapped = [&](unsigned dimension) {
    for (const std::vector<MappedDimension> &map : maps)
      for (const MappedDimension &mapped : map)
        if (mapped.dimension == dimension)
          return true;
    return false;
  };
  for (unsigned d = 0; d != launch.dimensions->size(); ++d)
    if (!isMapped(d))
      cursor.fail(concat("none has the dimension '", (*launch.dimensions)[d],
                         "' to take its size from"));
  return maps;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// Reads the sizes of the box that a copy moves of an operand of type `type`.
static Dimensions readBox(const JsonCursor &cursor, size_t rank,
                          ElementType type, int64_t swizzle) {
  if (cursor.size() != rank)
    cursor.fail(concat("expected one size for each of the ", rank,
                       " dimensions, got ", cursor.size()));
  Dimensions box;
  for (size_t d = 0; d != rank; ++d) {
    box.push_back(cursor[d].asInteger(/*least=*/1));
    if (box.back() > TensorMapLimits::boxSize)
      cursor[d].fail(concat("expected at most ", TensorMapLimits::boxSize,
                            ", got ", box.back()));
  }
  const int64_t bytes = box.back() * byteSize(type);
  if (bytes % TensorMapLimits::alignment != 0)
    cursor[rank - 1].fail(concat(box.back(), " elements of ", name(type),
                                 " are no multiple of ",
                                 TensorMapLimits::alignment, " bytes"));
  if (swizzle != 0 && bytes > swizzle)
    cursor[rank - 1].fail(concat(box.back(), " elements of ", name(type),
                                 " exceed the ", swizzle,
                                 " bytes that are swizzled"));
  return box;
}

static TensorMapArgument readTensorMap(const JsonCursor &cursor,
                                       const Function &function,
                                       const Launch &launch) {
  TensorMapArgument result;
  JsonCursor place = cursor["tensor_map"];
  result.operand = place.asIndex(launch.operands.size(), "operands");
  const Operand &operand = launch.operands[result.operand];
  const size_t rank = function.rank(operand);
  if (rank < 1 || rank > TensorMapLimits::rank)
    place.fail(concat(describe(function, operand), " has rank ", rank,
                      ", but a tensor map has 1 to ", TensorMapLimits::rank,
                      " dimensions"));
  if (auto swizzle = cursor.find("swizzle")) {
    result.swizzle = swizzle->asInteger();
    const auto known = {0, 32, 64, 128};
    if (std::find(known.begin(), known.end(), result.swizzle) == known.end())
      swizzle->fail(
          concat("expected 0, 32, 64 or 128 bytes, got ", result.swizzle));
  }
  result.box =
      readBox(cursor["box"], rank, function.type(operand), result.swizzle);
  return result;
}

Argument bastile::runtime::readDimensionArgument(const JsonCursor &cursor,
                                                 const Function &function,
                                                 const Launch &launch,
                                                 Variant &variant) {
  Argument result;
  if (auto size = cursor.find("size")) {
    result.kind = Argument::Kind::Size;
    result.dimension = readDimension(*size, launch);
  } else if (auto pointer = cursor.find("pointer")) {
    result.kind = Argument::Kind::Pointer;
    result.operand = pointer->asIndex(launch.operands.size(), "operands");
  } else if (auto stride = cursor.find("stride")) {
    result.kind = Argument::Kind::Stride;
    result.operand = stride->asIndex(launch.operands.size(), "operands");
    const size_t rank = launch.maps[result.operand].size();
    result.dimension = cursor["dimension"].asIndex(rank, "dimensions");
  } else if (cursor.has("tensor_map")) {
    result.kind = Argument::Kind::TensorMap;
    variant.tensorMaps.push_back(readTensorMap(cursor, function, launch));
    result.operand = variant.tensorMaps.back().operand;
    result.map = static_cast<unsigned>(variant.tensorMaps.size() - 1);
  } else {
    cursor.fail("expected 'size', 'pointer', 'stride' or 'tensor_map'");
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Strides
//===----------------------------------------------------------------------===//

static bool takesStride(const Variant &variant, unsigned operand,
                        unsigned dimension) {
  return std::any_of(variant.arguments.begin(), variant.arguments.end(),
                     [&](const Argument &argument) {
                       return argument.kind == Argument::Kind::Stride &&
                              argument.operand == operand &&
                              argument.dimension == dimension;
                     });
}

std::vector<uint8_t> bastile::runtime::findPacked(const Launch &launch,
                                                  const Variant &variant) {
  static_assert(maxRank <= 8, "a byte has a bit for each dimension");
  std::vector<uint8_t> packed(launch.operands.size(), 0);
  for (const Argument &argument : variant.arguments)
    if (argument.kind == Argument::Kind::Pointer)
      for (unsigned d = 0; d != launch.maps[argument.operand].size(); ++d)
        if (!takesStride(variant, argument.operand, d))
          packed[argument.operand] |= static_cast<uint8_t>(1u << d);
  return packed;
}

/// Whether some variant of `launch` takes the stride of the last dimension of
/// each of its operands that are the tensor.
static bool isStrided(const Launch &launch, Operand::Kind kind,
                      unsigned index) {
  for (unsigned k = 0; k != launch.operands.size(); ++k) {
    if (launch.operands[k].kind != kind || launch.operands[k].index != index)
      continue;
    if (!launch.hasDimensions() || launch.maps[k].empty())
      return false;
    const unsigned last = static_cast<unsigned>(launch.maps[k].size() - 1);
    if (std::none_of(launch.variants.begin(), launch.variants.end(),
                     [&](const Variant &variant) {
                       return takesStride(variant, k, last);
                     }))
      return false;
  }
  return true;
}

bool bastile::runtime::isStrided(const Function &function, Operand::Kind kind,
                                 unsigned index) {
  for (const PieceSpec &piece : function.pieces)
    if (piece.whole.kind == kind && piece.whole.index == index)
      return false;
  bool isUsed = false;
  for (const Launch &launch : function.launches) {
    if (!::isStrided(launch, kind, index))
      return false;
    for (const Operand &operand : launch.operands)
      isUsed |= operand.kind == kind && operand.index == index;
  }
  return isUsed;
}
