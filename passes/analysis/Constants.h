//===- Constants.h - Values that are the same number all over ---*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ANALYSIS_CONSTANTS_H
#define BASTILE_PASSES_ANALYSIS_CONSTANTS_H

#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include <optional>

namespace bastile {

/// The float that all elements of `value` are, as a constant or a broadcast of
/// one; none if it is no constant.
inline std::optional<double> getConstantFloat(mlir::Value value) {
  if (auto broadcast = value.getDefiningOp<tile::BroadcastOp>())
    value = broadcast.getSource();
  llvm::APFloat number(0.0);
  if (!mlir::matchPattern(value, mlir::m_ConstantFloat(&number)))
    return std::nullopt;
  return number.convertToDouble();
}

/// The factor of `op`, a multiplication, that is no constant, and the constant;
/// none if `op` is nothing of the kind.
inline std::optional<std::pair<mlir::Value, double>>
getScaled(mlir::Operation *op) {
  if (llvm::isa_and_present<mlir::arith::MulFOp>(op))
    for (unsigned index : {0, 1})
      if (std::optional<double> number =
              getConstantFloat(op->getOperand(index)))
        return std::pair(op->getOperand(1 - index), *number);
  return std::nullopt;
}

} // namespace bastile

#endif // BASTILE_PASSES_ANALYSIS_CONSTANTS_H
