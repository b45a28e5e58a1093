//===- Operations.h - What each op computes ---------------------*- C++ -*-===//
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

/// The operands of an op.
using Operands = llvm::ArrayRef<const Array *>;

/// The result of `op`, of arith or math, that computes floats of floats element
/// by element, or chooses between values; nothing if it is none of these.
std::optional<Array> evaluateFloats(mlir::Operation *op, Operands operands);

/// The same of one that computes on or to integers, or compares.
std::optional<Array> evaluateIntegers(mlir::Operation *op, Operands operands);

/// base^exponent. Powers of a constant 1/2 and -1/2 are roots, as PyTorch has
/// them.
Number power(const Number &base, const Number &exponent,
             bool hasConstantExponent);
/// Whether all elements of `value` are one constant.
bool isConstantNumber(mlir::Value value);

/// The results of `op`, of the tile dialect, on whole rows; nothing if it is
/// not one of functions on tensors.
std::optional<llvm::SmallVector<Array>> evaluateRows(mlir::Operation *op,
                                                     Operands operands);

/// What an elementwise op passes on to its operands of the gradient of its
/// result.
class ElementwiseGradient {
public:
  /// `constants` says of each operand whether it is a number that depends on no
  /// argument.
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

/// The gradient of operand 0 of `op`, of the tile dialect, given those of its
/// results, each of which may be null; nothing if the op has no derivative.
std::optional<Array> propagateRows(mlir::Operation *op,
                                   llvm::ArrayRef<const Array *> gradients,
                                   Operands operands, const Array &result);
/// The gradient of the piece `index` that `join` puts together.
Array propagateJoin(tile::JoinOp join, unsigned index, const Array &gradient,
                    const Array &piece);

/// The type that a gradient of floats of `type` is computed in.
mlir::Type getGradientType(mlir::Type type);

} // namespace bastile::reference

#endif // BASTILE_DIALECT_REFERENCE_OPERATIONS_H
