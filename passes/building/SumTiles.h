//===- SumTiles.h - Tiles of sums and their factors -------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What accumulators are made of, be it in a loop along a row or in one over k:
// tiles before the first element, and, of sums that follow a maximum
// (FollowingSums.h), the number that terms are relative to and the factors that
// make earlier ones so.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_BUILDING_SUMTILES_H
#define BASTILE_PASSES_BUILDING_SUMTILES_H

#include "passes/analysis/FollowingSums.h"

namespace bastile {

/// The constant tile of `type` that leaves any tile unchanged when combined
/// under `kind`.
mlir::Value createNeutralTile(mlir::OpBuilder &builder, mlir::Location loc,
                              mlir::RankedTensorType type,
                              tile::ReduceKind kind);

/// The constant tile of `type`, each element of which is `number`.
mlir::Value createSplat(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::Type type, double number);

/// Whether each element of `tile` is `number`.
mlir::Value createIsEqual(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::Value tile, double number);

/// The number that a sum is relative to: the `maximum` so far or, where only
/// minus infinity has been seen, 0, as powers relative to minus infinity would
/// be NaN.
mlir::Value createBase(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value maximum);

/// The factor that makes a sum relative to `from` one relative to `to`. As in
/// the formula, it is NaN if both are infinite.
mlir::Value createScale(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::Value from, mlir::Value to);

/// `scale`, or 1 where `from` and `to` are equal, infinite or not, and with
/// `mayDecrease` where `to` is less, as the sum is 0 up to then.
mlir::Value selectScale(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::Value from, mlir::Value to, mlir::Value scale,
                        bool mayDecrease = false);

/// `tile` in units of log 2: 2 to the power of it is exp(tile).
mlir::Value createExponentOf2(mlir::OpBuilder &builder, mlir::Location loc,
                              mlir::Value tile);

/// The tile of `type` that has 1 where `power` counts in its sum, and 0
/// elsewhere. Calls `emit` for the tile of a condition.
mlir::Value createCounts(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::Type type, const Power &power,
                         llvm::function_ref<mlir::Value(mlir::Value)> emit);

} // namespace bastile

#endif // BASTILE_PASSES_BUILDING_SUMTILES_H
