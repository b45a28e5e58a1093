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
  void add(const tile::SpaceDimension &dimension) {
    indices[dimension.name] = dimensions.size();
    dimensions.push_back(dimension);
  }
  /// The dimension with this name, which is added if there is none yet.
  tile::SpaceDimension &get(mlir::StringAttr name) {
    if (!indices.contains(name)) {
      tile::SpaceDimension dimension;
      dimension.name = name;
      add(dimension);
    }
    return dimensions[indices.at(name)];
  }
  /// Notes that a tensor has `size` elements along dimension `name`.
  void noteSize(mlir::StringAttr name, int64_t size) {
    if (tile::SpaceDimension &dimension = get(name);
        mlir::ShapedType::isDynamic(dimension.size))
      dimension.size = size;
  }
  llvm::ArrayRef<tile::SpaceDimension> get() const { return dimensions; }

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
