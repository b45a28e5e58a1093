//===- Names.h - What is said of arguments and results ----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TENSORS_NAMES_H
#define BASTILE_PASSES_TENSORS_NAMES_H

#include "dialect/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/analysis/LeastValues.h"

namespace bastile {

/// The name that the source gives an argument, otherwise a name by its number.
inline std::string getInputName(mlir::func::FuncOp func, unsigned index) {
  auto name = func.getArgAttrOfType<mlir::StringAttr>(
      index, tile::TileDialect::kNameAttrName);
  return name ? name.str() : "arg" + std::to_string(index);
}

/// The name that `differentiate` gives a result, otherwise a name by its
/// number.
inline std::string getResultName(mlir::func::FuncOp func, unsigned index) {
  auto name = func.getResultAttrOfType<mlir::StringAttr>(
      index, tile::TileDialect::kNameAttrName);
  return name ? name.str() : "result" + std::to_string(index);
}

/// Notes on argument `index` of `function` what is known of `value`, which is
/// passed there.
inline void noteAbove(mlir::FunctionOpInterface function, unsigned index,
                      mlir::Value value) {
  if (std::optional<double> least = findLeast(value))
    function.setArgAttr(
        index, tile::TileDialect::kAboveAttrName,
        mlir::Builder(function.getContext()).getF64FloatAttr(*least));
}

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_NAMES_H
