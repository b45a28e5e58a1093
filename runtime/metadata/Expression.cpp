//===- Expression.cpp - Sizes computed at launch --------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/Expression.h"

using namespace bastile::runtime;

/// Applies a binary operator; false on overflow or division by zero.
static bool apply(Expression::Kind kind, int64_t left, int64_t right,
                  int64_t &result) {
  switch (kind) {
  case Expression::Kind::CeilDiv:
    if (right <= 0)
      return false;
    result = left / right + (left % right != 0);
    return true;
  case Expression::Kind::Add:
    return !__builtin_add_overflow(left, right, &result);
  case Expression::Kind::Mul:
    return !__builtin_mul_overflow(left, right, &result);
  case Expression::Kind::Min:
    result = std::min(left, right);
    return true;
  case Expression::Kind::Max:
    result = std::max(left, right);
    return true;
  case Expression::Kind::Constant:
  case Expression::Kind::Rows:
  case Expression::Kind::NamedSize:
  case Expression::Kind::Multiprocessors:
  case Expression::Kind::Clusters:
  case Expression::Kind::InputSize:
    break;
  }
  assert(false && "not an operator");
  return false;
}

std::optional<int64_t>
Expression::evaluate(const ExpressionContext &context) const {
  switch (kind) {
  case Kind::Constant:
    return value;
  case Kind::Rows:
    return context.rows[space];
  case Kind::NamedSize:
    return context.sizes[dimension];
  case Kind::Multiprocessors:
    return context.capacity.multiprocessors();
  case Kind::Clusters:
    return context.capacity.clusters(value);
  case Kind::InputSize:
    return context.inputs[input].sizes[dimension];
  default:
    break;
  }

  std::optional<int64_t> result = operands.front().evaluate(context);
  for (size_t i = 1; result && i != operands.size(); ++i) {
    std::optional<int64_t> next = operands[i].evaluate(context);
    if (!next || !apply(kind, *result, *next, *result))
      return std::nullopt;
  }
  return result;
}
