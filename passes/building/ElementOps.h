//===- ElementOps.h - Ops of tensors on tiles -------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_BUILDING_ELEMENTOPS_H
#define BASTILE_PASSES_BUILDING_ELEMENTOPS_H

#include "dialect/Tile.h"

namespace bastile {

/// Builds the tile of `result`, of an op on tensors that repeats its operand,
/// is constant or computes each element from those at the same place. Calls
/// `emit` for the tile of an operand and `getTileType` for that of a tensor
/// type.
mlir::Value
emitElements(mlir::OpBuilder &builder, mlir::OpResult result,
             llvm::function_ref<mlir::Value(mlir::Value)> emit,
             llvm::function_ref<mlir::RankedTensorType(mlir::RankedTensorType)>
                 getTileType);

} // namespace bastile

#endif // BASTILE_PASSES_BUILDING_ELEMENTOPS_H
