//===- Operations.h - The computation of each op ----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_REFERENCE_OPERATIONS_H
#define BASTILE_DIALECT_REFERENCE_OPERATIONS_H

#include "dialect/Tile.h"
#include "dialect/reference/Array.h"
#include "mlir/IR/Operation.h"
#include <optional>

namespace bastile::reference {

/// The values of an op's operands.
using Operands = llvm::ArrayRef<const Array *>;

/// The result of `op`, of arith or math, that computes floats from floats
/// element by element, or selects between values; nothing for any other op.
std::optional<Array> evaluateFloats(mlir::Operation *op, Operands operands);

/// The result of `op`, of arith or math, that computes on or to integers, or
/// compares; nothing for any other op.
std::optional<Array> evaluateIntegers(mlir::Operation *op, Operands operands);

/// base^exponent. Powers of a constant 1/2 and -1/2 are roots, as in PyTorch.
Number power(const Number &base, const Number &exponent,
             bool hasConstantExponent);
/// Whether all elements of `value` are the same constant.
bool isConstantNumber(mlir::Value value);

/// The results of `op`, of the tile dialect, on whole rows; nothing for an op
/// that functions on tensors do not have.
std::optional<llvm::SmallVector<Array>> evaluateRows(mlir::Operation *op,
                                                     Operands operands);

/// The gradients of an elementwise op's operands, given that of its result.
class ElementwiseGradient {
public:
  /// `constants` says for each operand whether it is a number that depends on
  /// no argument.
  ElementwiseGradient(mlir::Operation *op, const Array &gradient,
                      Operands operands, const Array &result,
                      llvm::ArrayRef<bool> constants)
      : op(op), gradient(gradient), operands(operands), result(result),
        constants(constants) {}

  /// The gradient of the operand `index`, of floats: an empty array if it is
  /// zero everywhere, nothing if the op has no derivative.
  std::optional<Array> of(unsigned index) const;

private:
  template <typename Function, typename... Arrays>
  Array mapGradient(Function function, const Arrays &...arrays) const {
    return map(gradient.elementType(), function, gradient, arrays...);
  }
  Array choose(unsigned index, bool larger) const;
  Array select(bool isTrue) const;

  mlir::Operation *op;
  const Array &gradient;
  Operands operands;
  const Array &result;
  llvm::ArrayRef<bool> constants;
};

/// The gradient of operand 0 of `op`, of the tile dialect, given those of the
/// op's results, each of which may be null; nothing if the op has no
/// derivative.
std::optional<Array> propagateRows(mlir::Operation *op,
                                   llvm::ArrayRef<const Array *> gradients,
                                   Operands operands, const Array &result);
/// The gradient of the piece `index` that `join` puts together.
Array propagateJoin(tile::JoinOp join, unsigned index, const Array &gradient,
                    const Array &piece);

/// The product of `a` and `b`, whole tensors.
Array multiply(tile::DotOp op, const Array &a, const Array &b);
/// The gradient of operand `index` of the product of `a` and `b`.
Array propagateDot(tile::DotOp op, unsigned index, const Array &gradient,
                   const Array &a, const Array &b);

/// The type in which gradients of floats of `type` are computed.
mlir::Type getGradientType(mlir::Type type);

} // namespace bastile::reference

#endif // BASTILE_DIALECT_REFERENCE_OPERATIONS_H
