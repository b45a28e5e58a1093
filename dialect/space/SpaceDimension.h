//===- SpaceDimension.h - A dimension of a kernel's space -------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_SPACE_SPACEDIMENSION_H
#define BASTILE_DIALECT_SPACE_SPACEDIMENSION_H

#include "mlir/IR/BuiltinAttributes.h"

namespace bastile::tile {

/// A named dimension of a kernel's `#tile.space`.
struct SpaceDimension {
  mlir::StringAttr name;
  /// How many elements there are; ShapedType::kDynamic if only a call knows.
  int64_t size = mlir::ShapedType::kDynamic;
  /// Whether some op combines the elements along it.
  bool isReduction = false;
  /// The dimension that this one follows from; null for one of its own. Each
  /// element stands for a group of `group` neighbours along the base, or rows
  /// consist of `pieces` pieces that go along the base.
  mlir::StringAttr base;
  int64_t group = 1, pieces = 1;

  bool operator==(const SpaceDimension &other) const {
    return name == other.name && size == other.size &&
           isReduction == other.isReduction && base == other.base &&
           group == other.group && pieces == other.pieces;
  }
};

inline llvm::hash_code hash_value(const SpaceDimension &dimension) {
  return llvm::hash_combine(dimension.name, dimension.size,
                            dimension.isReduction, dimension.base,
                            dimension.group, dimension.pieces);
}

} // namespace bastile::tile

#endif // BASTILE_DIALECT_SPACE_SPACEDIMENSION_H
