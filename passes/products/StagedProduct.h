//===- StagedProduct.h - A product of tiles in shared memory ----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PRODUCTS_STAGEDPRODUCT_H
#define BASTILE_PASSES_PRODUCTS_STAGEDPRODUCT_H

#include "dialect/Tile.h"

namespace bastile {

/// A factor of a product, in memory.
struct StagedFactor {
  mlir::Value memory;
  /// Where its matrix lies in its batch, and the first row or column that the
  /// tile has.
  llvm::SmallVector<mlir::Value> batch;
  mlir::Value first;
  /// The dimension of its matrix that is summed over, 0 or 1.
  int64_t contract;
};

/// Adds to `sum`, a tile in the layout of products, the product of `a` and `b`,
/// summed over `depth` elements: all threads copy parts of both ahead into
/// shared memory, as many as `schedule` has stages, and multiply them on tensor
/// cores. No thread reads the shared memory any more when the block goes on.
mlir::Value emitStagedProduct(mlir::ImplicitLocOpBuilder &builder,
                              tile::ScheduleAttr schedule,
                              const StagedFactor &a, const StagedFactor &b,
                              mlir::Value depth, mlir::Value sum);

/// Writes `tile`, in the layout of products, to `memory` through the same
/// shared memory, so that neighbouring threads write neighbouring elements.
void emitStagedStore(mlir::ImplicitLocOpBuilder &builder, mlir::Value tile,
                     mlir::Value memory, mlir::ValueRange indices);

/// Whether `emitStagedStore` takes tiles of elements of this type.
bool isStagedStore(mlir::Type element);

} // namespace bastile

#endif // BASTILE_PASSES_PRODUCTS_STAGEDPRODUCT_H
