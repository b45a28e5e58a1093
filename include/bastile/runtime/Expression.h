//===- Expression.h - Sizes computed at launch ------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_EXPRESSION_H
#define BASTILE_RUNTIME_EXPRESSION_H

#include "bastile/runtime/Capacity.h"
#include "bastile/runtime/TensorView.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace bastile::runtime {

/// The values of an expression's leaves.
struct ExpressionContext {
  /// The rows of each row space of the launch; empty outside of launches.
  Span<const int64_t> rows;
  Capacity capacity = 1;
  Span<const TensorView> inputs;
  /// The sizes of the launch's named dimensions; empty where it has none.
  Span<const int64_t> sizes = {};
};

/// A tree over sizes known at launch: the grid of a kernel, or one size of an
/// output or temporary. Values are never negative.
struct Expression {
  enum class Kind : uint8_t {
    Constant,
    /// The rows of row space `space`.
    Rows,
    /// The size of named dimension `dimension` of the launch.
    NamedSize,
    Multiprocessors,
    /// How many clusters of `value` blocks run at once.
    Clusters,
    /// The size of dimension `dimension` of input `input`.
    InputSize,
    CeilDiv,
    Add,
    Mul,
    Min,
    Max,
  };

  /// The value; nothing when a step overflows 64 bits or divides by zero. The
  /// inputs must have the ranks that the metadata states.
  std::optional<int64_t> evaluate(const ExpressionContext &context) const;

  Kind kind = Kind::Constant;
  int64_t value = 0;
  unsigned space = 0;
  unsigned input = 0;
  unsigned dimension = 0;
  /// Two operands for `CeilDiv`, one or more for the other operators.
  std::vector<Expression> operands;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_EXPRESSION_H
