//===- StagedTiles.h - Tiles that go through shared memory ------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PRODUCTS_STAGEDTILES_H
#define BASTILE_PASSES_PRODUCTS_STAGEDTILES_H

#include "dialect/Tile.h"

namespace bastile {

/// The most bytes of a row in shared memory that an order mixes which divides
/// rows of `rowBytes`.
int64_t getSwizzleBytes(int64_t rowBytes);

/// The type of `slots` slots of shared memory, each for a tile, in an order in
/// which neither rows nor columns collide.
mlir::MemRefType getSlotsType(mlir::MLIRContext *context, int64_t slots,
                              int64_t rows, int64_t columns,
                              mlir::Type element);

/// How a tile of an operand is staged: `free` rows or columns, which the
/// product keeps, and `chunks` chunks of `depth` elements that it sums over,
/// each with a slot of its own.
struct StagedShape {
  int64_t free, depth, chunks;
  /// Whether the product sums along the operand's rows.
  bool isAlongRows;
};

/// The slots in shared memory of the tiles of an operand, several of which are
/// on their way at once.
class StagedTiles {
public:
  /// There are `stages` tiles, from byte `offset` of the shared memory on.
  StagedTiles(mlir::ImplicitLocOpBuilder &builder, mlir::Value memory,
              const StagedShape &shape, int64_t stages, int64_t offset);

  const StagedShape &getShape() const { return shape; }
  /// The bytes of all slots.
  int64_t getBytes() const { return bytes; }

  /// Begins to copy the tile at `indices` of the operand to stage `stage`.
  void copy(mlir::ValueRange indices, mlir::Value stage);
  /// Reads a chunk of stage `stage` in `layout`, as a tile with the free
  /// dimension along its rows.
  mlir::Value take(mlir::Value stage, int64_t chunk, mlir::Attribute layout);

private:
  mlir::Value getSlot(mlir::Value stage, int64_t chunk);

  /// Not a reference, so that the object can be moved.
  mlir::ImplicitLocOpBuilder *builder;
  mlir::Value memory, slots;
  StagedShape shape;
  mlir::Type element;
  int64_t bytes;
};

/// Writes `tile`, in the layout of products, to `memory` through shared memory
/// from byte `offset` on, so that neighbouring threads write neighbouring
/// elements.
void emitStagedStore(mlir::ImplicitLocOpBuilder &builder, mlir::Value tile,
                     mlir::Value memory, mlir::ValueRange indices,
                     int64_t offset);

/// Whether `emitStagedStore` takes tiles of `type`.
bool isStagedStore(mlir::RankedTensorType type);

/// A tile in the layout of products that waits in shared memory, from byte
/// `offset` on, to be read in parts of its columns. A loop over the parts is as
/// long as the code of one, and holds one in registers. Each thread reads what
/// it wrote.
class KeptParts {
public:
  KeptParts(mlir::ImplicitLocOpBuilder &builder, mlir::Value tile,
            int64_t parts, int64_t offset);
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

#endif // BASTILE_PASSES_PRODUCTS_STAGEDTILES_H
