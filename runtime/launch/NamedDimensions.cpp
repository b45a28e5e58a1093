//===- NamedDimensions.cpp - Launches over named dimensions ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/LaunchPlan.h"
#include "runtime/Text.h"
#include "runtime/metadata/OperandName.h"

using namespace bastile::runtime;

/// Reports that `operand` has another size in `dimension` than its map says.
Error LaunchPlan::reportSize(const Launch &launch, unsigned operand,
                             unsigned dimension) const {
  const MappedDimension &mapped = launch.maps[operand][dimension];
  auto describeSize = [&](unsigned k, unsigned d) {
    return concat(describe(*function, launch.operands[k]), " of shape ",
                  print(view(launch.operands[k]).sizes), " has size ",
                  view(launch.operands[k]).sizes[d], " in dimension ", d);
  };
  if (!mapped.dimension)
    return makeError(prefix(launch), describeSize(operand, dimension),
                     ", expected ", mapped.size);
  const std::string found =
      concat(describeSize(operand, dimension), ", which is '",
             (*launch.dimensions)[*mapped.dimension], "'");
  for (unsigned k = 0; k != launch.operands.size(); ++k)
    for (unsigned d = 0; d != launch.maps[k].size(); ++d)
      if (launch.maps[k][d].dimension == mapped.dimension)
        return makeError(prefix(launch), found, ", but ", describeSize(k, d),
                         ", which is '",
                         (*launch.dimensions)[*mapped.dimension], "', too");
  return makeError(prefix(launch), found);
}

/// Finds the size of each named dimension, which is that of the first operand
/// that has the dimension, and checks that the others agree.
Error LaunchPlan::findNamedSizes(const Launch &launch) {
  constexpr int64_t unknown = -1;
  namedSizes.assign(launch.dimensions->size(), unknown);
  for (unsigned k = 0; k != launch.operands.size(); ++k) {
    const Dimensions &sizes = view(launch.operands[k]).sizes;
    const std::vector<MappedDimension> &map = launch.maps[k];
    for (unsigned d = 0; d != map.size(); ++d) {
      int64_t expected = map[d].size;
      if (map[d].dimension) {
        int64_t &size = namedSizes[*map[d].dimension];
        if (size == unknown)
          size = sizes[d];
        expected = size;
      }
      if (sizes[d] != expected)
        return reportSize(launch, k, d);
    }
  }
  return Error::success();
}

/// Whether the strides that `variant` does not take are what its kernel expects
/// of an operand with elements.
bool LaunchPlan::admitsStrides(const Launch &launch, const Variant &variant,
                               unsigned operand, std::string *reason) const {
  const TensorView &tensor = view(launch.operands[operand]);
  int64_t expected = 1;
  for (unsigned d = tensor.rank(); d-- != 0;) {
    if ((variant.packed[operand] >> d & 1) != 0 && tensor.sizes[d] != 1 &&
        tensor.strides[d] != expected) {
      if (reason)
        *reason = concat("'", variant.entry, "' needs ",
                         describe(*function, launch.operands[operand]),
                         " to have stride ", expected, " in dimension ", d,
                         ", but its strides are ", print(tensor.strides));
      return false;
    }
    expected *= tensor.sizes[d];
  }
  return true;
}

bool LaunchPlan::admitsOperands(const Launch &launch, const Variant &variant,
                                std::string *reason) const {
  for (auto [dimension, least] : variant.least)
    if (namedSizes[dimension] < least) {
      if (reason)
        *reason = concat("'", variant.entry, "' needs a '",
                         (*launch.dimensions)[dimension], "' of at least ",
                         least, ", but it is ", namedSizes[dimension]);
      return false;
    }
  for (unsigned k = 0; k != launch.operands.size(); ++k) {
    const TensorView &tensor = view(launch.operands[k]);
    // The kernel accesses no element.
    if (tensor.elementCount() == 0)
      continue;
    if (!admitsStrides(launch, variant, k, reason))
      return false;
    // As for rows, a power of two divides all numbers if it divides their
    // union.
    uint64_t bits = reinterpret_cast<uintptr_t>(tensor.data);
    for (unsigned d = 0; d + 1 < tensor.rank(); ++d)
      if (tensor.sizes[d] != 1)
        bits |= static_cast<uint64_t>(tensor.strides[d]) *
                static_cast<uint64_t>(byteSize(tensor.type));
    if ((bits & static_cast<uint64_t>(variant.alignment[k] - 1)) == 0)
      continue;
    if (reason)
      *reason = concat("'", variant.entry, "' needs ",
                       describe(*function, launch.operands[k]),
                       " and its strides aligned to ", variant.alignment[k],
                       " bytes, but it is at ", tensor.data, " with strides ",
                       print(tensor.strides));
    return false;
  }
  for (const TensorMapArgument &map : variant.tensorMaps) {
    const Operand &operand = launch.operands[map.operand];
    if (suitsTensorMap(view(operand), operand.kind != Operand::Kind::Input,
                       reason))
      continue;
    if (reason)
      *reason = concat("'", variant.entry, "' needs a tensor map of ",
                       describe(*function, operand), ", but ", *reason);
    return false;
  }
  return true;
}

void LaunchPlan::packNamed(const Launch &launch, const Variant &variant,
                           PlannedLaunch &result) const {
  for (const Argument &argument : variant.arguments) {
    switch (argument.kind) {
    case Argument::Kind::Size:
      result.values.push_back(namedSizes[argument.dimension]);
      break;
    case Argument::Kind::UnmergedSize:
      assert(false && "named dimensions are not merged");
      break;
    case Argument::Kind::Pointer:
      result.values.push_back(reinterpret_cast<intptr_t>(
          view(launch.operands[argument.operand]).data));
      break;
    case Argument::Kind::Stride:
      result.values.push_back(
          view(launch.operands[argument.operand]).strides[argument.dimension]);
      break;
    case Argument::Kind::TensorMap: {
      result.values.push_back(0);
      const TensorMapArgument &map = variant.tensorMaps[argument.map];
      result.maps[argument.map].spec = TensorMapSpec(
          view(launch.operands[map.operand]), map.box, map.swizzle);
      break;
    }
    }
  }
}
