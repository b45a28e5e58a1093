//===- TileDialect.cpp - The tile dialect ---------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/Tile.h"

#include "dialect/Expression.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

#include "dialect/TileDialect.cpp.inc"
#include "dialect/TileEnums.cpp.inc"
#include "dialect/TileInterfaces.cpp.inc"

#include "dialect/TileAttrInterfaces.cpp.inc"

void bastile::tile::TileDialect::initialize() {
  registerAttributes();
  registerTypes();
  registerModelOps();
  addOperations<
#define GET_OP_LIST
#include "dialect/TileOps.cpp.inc"
      >();
}

#define GET_OP_CLASSES
#include "dialect/TileOps.cpp.inc"
