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

void bastile::tile::TileDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialect/TileOps.cpp.inc"
      >();
}

/// Reads the types of an operand and two optional ones, of those that are
/// there.
static ParseResult
parsePresentTypes(OpAsmParser &parser,
                  std::optional<OpAsmParser::UnresolvedOperand> second,
                  std::optional<OpAsmParser::UnresolvedOperand> third,
                  Type &type, Type &secondType, Type &thirdType) {
  if (parser.parseType(type))
    return failure();
  if (second && (parser.parseComma() || parser.parseType(secondType)))
    return failure();
  if (third && (parser.parseComma() || parser.parseType(thirdType)))
    return failure();
  return success();
}

static void printPresentTypes(OpAsmPrinter &printer, Operation *, Value, Value,
                              Type type, Type second, Type third) {
  printer << type;
  for (Type present : {second, third})
    if (present)
      printer << ", " << present;
}

#define GET_OP_CLASSES
#include "dialect/TileOps.cpp.inc"
