//===- ExpressionReader.cpp - Expressions from JSON -----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/metadata/ExpressionReader.h"
#include "runtime/Text.h"
#include "runtime/metadata/DimensionReader.h"

using namespace bastile::runtime;

namespace {
struct Operator {
  const char *key;
  Expression::Kind kind;
};
} // namespace

static constexpr Operator operators[] = {
    {"ceildiv", Expression::Kind::CeilDiv}, {"mul", Expression::Kind::Mul},
    {"add", Expression::Kind::Add},         {"min", Expression::Kind::Min},
    {"max", Expression::Kind::Max},
};

static Expression readInputSize(const JsonCursor &cursor,
                                const Function &function) {
  Expression result;
  result.kind = Expression::Kind::InputSize;
  result.input = cursor["input"].asIndex(function.inputs.size(), "inputs");
  result.dimension = cursor["dimension"].asIndex(
      function.inputs[result.input].shape.size(), "dimensions");
  return result;
}

/// The compiler's expressions have a few levels. Each level takes some of the
/// stack, here and at every launch.
static constexpr unsigned maxExpressionDepth = 64;

static Expression readExpression(const JsonCursor &cursor,
                                 const Function &function, const Launch *launch,
                                 unsigned depth) {
  const bool hasDimensions = launch && launch->hasDimensions();
  const bool hasRows = launch && !hasDimensions;
  if (depth > maxExpressionDepth)
    cursor.fail(
        concat("an expression of more than ", maxExpressionDepth, " levels"));
  Expression result;
  if (cursor.isInteger()) {
    result.value = cursor.asInteger();
    return result;
  }
  if (cursor.isString()) {
    std::string leaf = cursor.asString();
    if (leaf == "rows" && hasRows)
      result.kind = Expression::Kind::Rows;
    else if (leaf == "multiprocessors")
      result.kind = Expression::Kind::Multiprocessors;
    else
      cursor.fail(concat("no size is called '", leaf, "' here"));
    return result;
  }
  if (cursor.has("input"))
    return readInputSize(cursor, function);
  if (cursor.has("clusters")) {
    result.kind = Expression::Kind::Clusters;
    result.value = cursor["clusters"].asInteger();
    if (result.value < 1)
      cursor["clusters"].fail(
          concat("a cluster of ", result.value, " blocks has none"));
    return result;
  }
  if (cursor.has("size") && hasDimensions) {
    result.kind = Expression::Kind::NamedSize;
    result.dimension = readDimension(cursor["size"], *launch);
    return result;
  }
  if (cursor.has("rows") && hasRows) {
    result.kind = Expression::Kind::Rows;
    result.space = cursor["rows"].asIndex(launch->spaces, "spaces");
    return result;
  }

  for (const Operator &candidate : operators) {
    std::optional<JsonCursor> operands = cursor.find(candidate.key);
    if (!operands)
      continue;
    result.kind = candidate.kind;
    for (size_t i = 0; i != operands->size(); ++i)
      result.operands.push_back(
          readExpression((*operands)[i], function, launch, depth + 1));
    if (result.operands.empty())
      operands->fail("expected at least one operand");
    if (candidate.kind == Expression::Kind::CeilDiv &&
        result.operands.size() != 2)
      operands->fail(
          concat("expected two operands, got ", result.operands.size()));
    return result;
  }
  cursor.fail("expected an integer, the name of a size, "
              "{\"input\", \"dimension\"}, {\"clusters\"} or a known "
              "operator");
}

Expression bastile::runtime::readExpression(const JsonCursor &cursor,
                                            const Function &function,
                                            const Launch *launch) {
  return ::readExpression(cursor, function, launch, /*depth=*/1);
}
