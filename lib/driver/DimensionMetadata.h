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

/// The names of the dimensions of a launch of `program`, which has some. Those
/// of operands with counters, one each, follow the program's own.
llvm::json::Array describeDimensions(tile::ProgramOp program);

/// The names or sizes of the dimensions of the operand at `position` among the
/// arguments of `program`.
llvm::json::Array describeMap(tile::ProgramOp program, unsigned position);

/// What a variant over named dimensions takes, and its grid: "alignment",
/// "arguments", "grid" and "requires". The launch has `inputs` operands ahead
/// of its results.
llvm::json::Object describeDimensionVariant(tile::ProgramOp program,
                                            unsigned inputs);

/// Where the size of dimension `name` of `program` comes from: an input of
/// `launch`, which runs it, and a dimension of that input.
std::pair<mlir::Value, int64_t>
findSize(tile::LaunchOp launch, tile::ProgramOp program, mlir::Attribute name);

/// How many parts of length `length` a dimension of the given size has.
llvm::json::Value describeParts(llvm::json::Value size, int64_t length);
/// The product of `factors`.
llvm::json::Value describeProduct(llvm::json::Array factors);

} // namespace bastile

#endif // BASTILE_LIB_DRIVER_DIMENSIONMETADATA_H
