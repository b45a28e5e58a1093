//===- LaunchedOps.cpp - What kernels and programs have in common ---------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/LaunchedOps.h"

#include "dialect/RowLength.h"

using namespace mlir;
using namespace bastile::tile;

LogicalResult bastile::tile::verifyElements(Operation *op, TypeRange types,
                                            StringRef what) {
  for (auto [index, type] : llvm::enumerate(types)) {
    Type element = getElementTypeOrSelf(type);
    if (isa<ShapedType>(type) && !element.isIntOrFloat())
      return op->emitOpError(what)
             << " " << index << " of type " << type
             << " has neither integers nor floats as elements";
    auto tensor = dyn_cast<TensorType>(type);
    // A row vector has no rows whose length a call could tell.
    auto isRow = [](ArrayRef<int64_t> shape) {
      return (shape.size() > 1 && ShapedType::isDynamic(shape.back())) ||
             (shape.back() > 0 && shape.back() <= bastile::maxRowLength);
    };
    if (tensor && (!tensor.hasRank() || tensor.getRank() == 0 ||
                   !isRow(tensor.getShape())))
      return op->emitOpError(what)
             << " " << index << " of type " << type
             << " has no row length from 1 to " << bastile::maxRowLength;
    if (isa<ShapedType>(type) && element.getIntOrFloatBitWidth() % 8 != 0)
      return op->emitOpError(what)
             << " " << index << " of type " << type
             << " cannot lie in memory, where elements have whole bytes; "
                "compute it in the kernels that need it";
  }
  return success();
}

LogicalResult bastile::tile::verifyAttributes(Operation *op, StringRef what,
                                              unsigned index,
                                              DictionaryAttr attributes,
                                              ArrayRef<KnownAttribute> known) {
  if (!attributes)
    return success();
  for (NamedAttribute attribute : attributes) {
    StringRef name = attribute.getName();
    if (!name.starts_with("tile."))
      continue;
    auto error = [&, index = index] {
      return op->emitOpError(what) << " " << index << " has ";
    };
    const auto *found = llvm::find_if(
        known, [&](const KnownAttribute &one) { return one.name == name; });
    if (found == known.end())
      return error() << "the unknown attribute '" << name << "'";
    if (found->isOther)
      continue;
    if (!found->least) {
      if (!isa<UnitAttr>(attribute.getValue()))
        return error() << "'" << name << "' " << attribute.getValue()
                       << ", which takes no value";
      continue;
    }
    // In a narrower type, a large number's first digit would be taken for its
    // sign.
    auto number = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!number ||
        !(number.getType().isIndex() || number.getType().isInteger(64)) ||
        number.getValue().slt(*found->least))
      return error() << "'" << name << "' " << attribute.getValue()
                     << ", which is not an i64 of at least " << *found->least;
  }
  return success();
}
