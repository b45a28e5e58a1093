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
                              tile::MatmulAttr schedule, const StagedFactor &a,
                              const StagedFactor &b, mlir::Value depth,
                              mlir::Value sum);

/// Writes `tile`, in the layout of products, to `memory` through shared memory
/// from byte `offset` on, so that neighbouring threads write neighbouring
/// elements.
void emitStagedStore(mlir::ImplicitLocOpBuilder &builder, mlir::Value tile,
                     mlir::Value memory, mlir::ValueRange indices,
                     int64_t offset);

/// Whether `emitStagedStore` takes tiles of elements of this type.
bool isStagedStore(mlir::Type element);

/// A tile in the layout of products that waits in shared memory, from its
/// beginning on, to be read in parts of its columns. A loop over the parts is
/// as long as the code of one, and holds one in registers. Each thread reads
/// what it wrote.
class KeptParts {
public:
  KeptParts(mlir::ImplicitLocOpBuilder &builder, mlir::Value tile,
            int64_t parts);
  /// Reads part `part`.
  mlir::Value take(mlir::Value part) const;
  /// The bytes of shared memory that the tile takes.
  int64_t getBytes() const { return bytes; }

private:
  mlir::ImplicitLocOpBuilder &builder;
  mlir::Value slots;
  mlir::RankedTensorType partType;
  int64_t bytes;
};

} // namespace bastile

#endif // BASTILE_PASSES_PRODUCTS_STAGEDPRODUCT_H
