//===- Tile.h - The tile dialect --------------------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_TILE_H
#define BASTILE_DIALECT_TILE_H

#include "dialect/space/SpaceDimension.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/TileDialect.h.inc"
#include "dialect/TileEnums.h.inc"
#include "dialect/TileInterfaces.h.inc"

#include "dialect/TileAttrInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/TileAttributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialect/TileTypes.h.inc"

#define GET_OP_CLASSES
#include "dialect/TileOps.h.inc"

namespace bastile::tile {

/// How many bands of `band` rows there are in `rows`, which may be dynamic.
int64_t getNumBands(int64_t rows, int64_t band);

} // namespace bastile::tile

#endif // BASTILE_DIALECT_TILE_H
