//===- DimensionMetadata.h - Launches over named dimensions -----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_DRIVER_DIMENSIONMETADATA_H
#define BASTILE_LIB_DRIVER_DIMENSIONMETADATA_H

#include "dialect/Tile.h"
#include "llvm/Support/JSON.h"

namespace bastile {

/// The names of the dimensions of `program`, which has some.
llvm::json::Array describeDimensions(tile::ProgramOp program);

/// The names or sizes of the dimensions of the operand at `position` among the
/// arguments of `program`.
llvm::json::Array describeMap(tile::ProgramOp program, unsigned position);

/// What a variant over named dimensions takes, and its grid: "alignment",
/// "arguments", "grid" and "requires".
llvm::json::Object describeDimensionVariant(tile::ProgramOp program);

/// Where the size of dimension `dimension` of `result` comes from: an operand
/// of its launch, which runs `program` over named dimensions, and a dimension
/// of that operand.
std::pair<mlir::Value, int64_t>
findSize(mlir::OpResult result, tile::ProgramOp program, int64_t dimension);

} // namespace bastile

#endif // BASTILE_LIB_DRIVER_DIMENSIONMETADATA_H
