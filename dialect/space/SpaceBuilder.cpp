//===- SpaceBuilder.cpp - The space of a kernel ---------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/space/SpaceBuilder.h"

#include "dialect/KernelSpace.h"
#include "dialect/space/DimensionList.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace bastile;

SmallVector<tile::SpaceDimension> DimensionList::takeSorted() {
  auto getDepth = [&](const tile::SpaceDimension &dimension) {
    int64_t depth = 0;
    for (StringAttr base = dimension.base; base; base = get(base).base)
      ++depth;
    return depth;
  };
  SmallVector<tile::SpaceDimension> sorted(dimensions);
  llvm::stable_sort(sorted, [&](const tile::SpaceDimension &lhs,
                                const tile::SpaceDimension &rhs) {
    return getDepth(lhs) < getDepth(rhs);
  });
  dimensions.clear();
  indices.clear();
  return sorted;
}

std::pair<ArrayAttr, ArrayAttr>
bastile::collectProjections(Block &block,
                            function_ref<ArrayAttr(Value)> ofResult,
                            function_ref<ArrayAttr(Value)> ofValue) {
  SmallVector<Attribute> results, values;
  for (Operation &op : block.without_terminator())
    for (Value result : op.getResults())
      values.push_back(ofValue(result));
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(ofResult(value));
  Builder builder(block.getParentOp()->getContext());
  return {builder.getArrayAttr(results), builder.getArrayAttr(values)};
}

FailureOr<tile::SpaceAttr> bastile::findSpace(tile::KernelOp kernel,
                                              const KnownDimensions &known) {
  if (isOverDimensions(kernel))
    return findProductSpace(kernel);
  return findRowSpace(kernel, known);
}

LogicalResult bastile::completeSpaces(ModuleOp module) {
  for (auto kernel : module.getOps<tile::KernelOp>()) {
    if (kernel.getSpace())
      continue;
    FailureOr<tile::SpaceAttr> space = findSpace(kernel);
    if (failed(space))
      return failure();
    kernel.setSpaceAttr(*space);
  }
  return success();
}

/// What the space of `kernel` says of its arguments and results, beyond what
/// its ops show: a dimension has the number of its place in the space.
static FailureOr<KnownDimensions> getKnownDimensions(tile::KernelOp kernel) {
  KnownDimensions known;
  tile::SpaceAttr space = kernel.getSpaceAttr();
  if (!space)
    return known;
  auto add = [&](Type type, ArrayRef<Attribute> projection) -> LogicalResult {
    auto tensor = cast<RankedTensorType>(type);
    if (projection.size() != static_cast<size_t>(tensor.getRank()))
      return kernel.emitOpError("has 'space' ")
             << space << ", in which a " << type << " has " << projection.size()
             << " dimensions";
    ValueDimensions::Numbers numbers;
    for (Attribute name : projection) {
      const tile::SpaceDimension *own = space.lookup(name);
      numbers.push_back(own ? std::optional(own - space.getDimensions().begin())
                            : std::nullopt);
      if (own)
        known.names[*numbers.back()] = own->name;
    }
    known.numbers.push_back(std::move(numbers));
    return success();
  };
  if (space.getArguments().size() != kernel.getNumArguments() ||
      space.getResults().size() != kernel.getNumResults())
    return kernel.emitOpError("has 'space' ")
           << space << ", which is of another number of arguments or results";
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes()))
    for (Attribute projection : space.getOfArgument(index).take_front())
      if (failed(add(type, cast<ArrayAttr>(projection).getValue())))
        return failure();
  for (auto [index, type] : llvm::enumerate(kernel.getResultTypes()))
    if (failed(add(type, space.getOfResult(index).getValue())))
      return failure();
  return known;
}

/// The space of `kernel` with the names that its own has, if it has one.
static FailureOr<tile::SpaceAttr> findKnownSpace(tile::KernelOp kernel) {
  FailureOr<KnownDimensions> known = getKnownDimensions(kernel);
  if (failed(known))
    return failure();
  return findSpace(kernel, *known);
}

LogicalResult bastile::updateSpace(tile::KernelOp kernel) {
  FailureOr<tile::SpaceAttr> found = findKnownSpace(kernel);
  if (failed(found))
    return failure();
  kernel.setSpaceAttr(*found);
  return success();
}

LogicalResult bastile::verifySpace(tile::KernelOp kernel) {
  FailureOr<tile::SpaceAttr> found = findKnownSpace(kernel);
  if (failed(found))
    return failure();
  if (tile::SpaceAttr space = kernel.getSpaceAttr(); space && space != *found)
    return kernel.emitOpError("has 'space' ")
           << space << ", but its ops show " << *found;
  return isOverDimensions(kernel) ? verifyComputes(kernel, *found) : success();
}
