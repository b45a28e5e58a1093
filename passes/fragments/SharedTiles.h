//===- SharedTiles.h - Tiles that any thread may read -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Where the elements of a tile in `#tile.shared` memory lie, and what patterns
// of copies, products and waits share.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_FRAGMENTS_SHAREDTILES_H
#define BASTILE_PASSES_FRAGMENTS_SHAREDTILES_H

#include "dialect/Tile.h"
#include "mlir/IR/Builders.h"

namespace bastile {

/// How the tiles of a buffer in `#tile.shared` memory lie there.
struct SharedTile {
  explicit SharedTile(mlir::MemRefType type);

  /// The bytes of a tile, of a row of a panel, and of a panel.
  int64_t getBytes() const { return rows * rowBytes; }
  int64_t getPanelBytes() const { return rows * swizzle; }
  int64_t getPanels() const { return rowBytes / swizzle; }

  int64_t rows, rowBytes, swizzle, elementBytes;
};

/// The address of slot `slot` of a buffer of type `type`.
mlir::Value getSlot(mlir::OpBuilder &builder, mlir::Location loc,
                    mlir::MemRefType type, mlir::Value buffer,
                    mlir::Value slot);

/// `address` and `bytes` more.
mlir::Value advanceBytes(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::Value address, mlir::Value bytes);
mlir::Value advanceBytes(mlir::OpBuilder &builder, mlir::Location loc,
                         mlir::Value address, int64_t bytes);

} // namespace bastile

#endif // BASTILE_PASSES_FRAGMENTS_SHAREDTILES_H
