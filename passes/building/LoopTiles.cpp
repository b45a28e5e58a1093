//===- LoopTiles.cpp - Tiles inside and outside of a loop -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/building/LoopTiles.h"

using namespace mlir;

Value bastile::LoopTiles::get(OpBuilder &builder, Value value, bool isInside,
                              function_ref<Value()> build) {
  if (Value tile = (isInside ? inside : outside).lookupOrNull(value))
    return tile;
  OpBuilder::InsertionGuard guard(builder);
  if (loop && !isInside)
    builder.setInsertionPoint(loop);
  Value tile = build();
  map(value, tile, isInside);
  return tile;
}
