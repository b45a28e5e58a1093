//===- DimensionList.h - Parts of a space while it is found -----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_SPACE_DIMENSIONLIST_H
#define BASTILE_DIALECT_SPACE_DIMENSIONLIST_H

#include "dialect/space/SpaceBuilder.h"
#include "llvm/ADT/StringSet.h"

namespace bastile {

/// Collects the dimensions of a space while projections name them.
class DimensionList {
public:
  explicit DimensionList(mlir::MLIRContext *context) : builder(context) {}

  /// Leaves `name` to who asks for it.
  void reserve(mlir::StringAttr name) { taken.insert(name.getValue()); }
  /// A name that no other dimension has: `stem`, or `stem` with a number.
  mlir::StringAttr createName(llvm::StringRef stem) {
    std::string name = stem.str();
    for (int64_t number = 1; !taken.insert(name).second; ++number)
      name = (stem + llvm::Twine(number)).str();
    return builder.getStringAttr(name);
  }
  /// The dimension with this name, which is added if there is none yet.
  tile::SpaceDimension &get(mlir::StringAttr name) {
    auto [it, isNew] = indices.try_emplace(name, dimensions.size());
    if (isNew)
      dimensions.emplace_back().name = name;
    return dimensions[it->second];
  }
  /// Notes that a tensor has `size` elements along dimension `name`.
  void noteSize(mlir::StringAttr name, int64_t size) {
    if (tile::SpaceDimension &dimension = get(name);
        mlir::ShapedType::isDynamic(dimension.size))
      dimension.size = size;
  }
  /// Notes that dimension `name` follows from `base`, which has a size.
  void noteBase(mlir::StringAttr name, mlir::StringAttr base, int64_t group,
                int64_t pieces) {
    const int64_t size = get(base).size / group * pieces;
    tile::SpaceDimension &dimension = get(name);
    dimension.size = size;
    dimension.base = base;
    dimension.group = group;
    dimension.pieces = pieces;
  }
  /// All dimensions, each behind the one that it follows from, otherwise in the
  /// order in which projections name them. Empties the list.
  llvm::SmallVector<tile::SpaceDimension> takeSorted();

private:
  mlir::Builder builder;
  llvm::StringSet<> taken;
  llvm::SmallVector<tile::SpaceDimension> dimensions;
  llvm::DenseMap<mlir::Attribute, size_t> indices;
};

/// The projections of what `block` returns, and of the results of its ops.
std::pair<mlir::ArrayAttr, mlir::ArrayAttr>
collectProjections(mlir::Block &block,
                   llvm::function_ref<mlir::ArrayAttr(mlir::Value)> ofResult,
                   llvm::function_ref<mlir::ArrayAttr(mlir::Value)> ofValue);

/// The space of a kernel on rows, or of one that goes along m, n and k.
llvm::FailureOr<tile::SpaceAttr> findRowSpace(tile::KernelOp kernel,
                                              const KnownDimensions &known);
tile::SpaceAttr findProductSpace(tile::KernelOp kernel);

} // namespace bastile

#endif // BASTILE_DIALECT_SPACE_DIMENSIONLIST_H
