//===- Names.h - What arguments and results are called ----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TENSORS_NAMES_H
#define BASTILE_PASSES_TENSORS_NAMES_H

#include "dialect/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

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

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_NAMES_H
