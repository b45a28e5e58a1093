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

/// Reads the types of two optional operands behind another one's, as far as
/// they are present.
static ParseResult
parseMoreTypes(OpAsmParser &parser,
               std::optional<OpAsmParser::UnresolvedOperand> first,
               std::optional<OpAsmParser::UnresolvedOperand> second,
               Type &firstType, Type &secondType) {
  if (first && (parser.parseComma() || parser.parseType(firstType)))
    return failure();
  if (second && (parser.parseComma() || parser.parseType(secondType)))
    return failure();
  return success();
}

static void printMoreTypes(OpAsmPrinter &printer, Type first, Type second) {
  for (Type present : {first, second})
    if (present)
      printer << ", " << present;
}

/// Reads the types of an operand and of two optional ones.
static ParseResult
parsePresentTypes(OpAsmParser &parser,
                  std::optional<OpAsmParser::UnresolvedOperand> second,
                  std::optional<OpAsmParser::UnresolvedOperand> third,
                  Type &type, Type &secondType, Type &thirdType) {
  if (parser.parseType(type))
    return failure();
  return parseMoreTypes(parser, second, third, secondType, thirdType);
}

static void printPresentTypes(OpAsmPrinter &printer, Operation *, Value, Value,
                              Type type, Type second, Type third) {
  printer << type;
  printMoreTypes(printer, second, third);
}

/// Reads the types of two operands that are added, the second one's behind a
/// plus where it is another, and of two optional operands.
static ParseResult
parseSumTypes(OpAsmParser &parser,
              std::optional<OpAsmParser::UnresolvedOperand> third,
              std::optional<OpAsmParser::UnresolvedOperand> fourth, Type &type,
              Type &secondType, Type &thirdType, Type &fourthType) {
  if (parser.parseType(type))
    return failure();
  secondType = type;
  if (succeeded(parser.parseOptionalPlus()) && parser.parseType(secondType))
    return failure();
  return parseMoreTypes(parser, third, fourth, thirdType, fourthType);
}

static void printSumTypes(OpAsmPrinter &printer, Operation *, Value, Value,
                          Type type, Type second, Type third, Type fourth) {
  printer << type;
  if (type != second)
    printer << " + " << second;
  printMoreTypes(printer, third, fourth);
}

#define GET_OP_CLASSES
#include "dialect/ModelOps.cpp.inc"
