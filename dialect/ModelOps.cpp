//===- ModelOps.cpp - The ops that users write ----------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Only this file sees the classes of model ops. All others know them by their
// interface, so that adding an op compiles this file alone.
//
//===----------------------------------------------------------------------===//

#include "dialect/Expression.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include <numeric>

#include "dialect/ModelOpEnums.h.inc"

#define GET_OP_CLASSES
#include "dialect/ModelOps.h.inc"

using namespace mlir;

#include "dialect/ModelOpEnums.cpp.inc"

void bastile::tile::TileDialect::registerModelOps() {
  addOperations<
#define GET_OP_LIST
#include "dialect/ModelOps.cpp.inc"
      >();
}

/// Reads the types of an operand and of two optional ones, as far as these are
/// present.
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
#include "dialect/ModelOps.cpp.inc"
