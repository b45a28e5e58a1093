//===- Formulas.h - The formulas of Expression.h by name --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_FRONTEND_FORMULAS_H
#define BASTILE_LIB_FRONTEND_FORMULAS_H

#include "dialect/Expression.h"

namespace bastile {

/// A formula of operands of one shape.
struct Formula {
  using Build = mlir::Value (*)(mlir::ImplicitLocOpBuilder &builder,
                                llvm::ArrayRef<mlir::Value> operands);

  llvm::StringRef name;
  /// A letter for each operand: 'n' for numbers, 'c' for a condition, 'b' for
  /// bits: a condition or integers.
  llvm::StringRef operands;
  /// The formula of floats and conditions; null if it is of integers alone.
  Build build;
  /// The formula of integers of one type; null if there is none.
  Build buildIntegers = nullptr;
  /// Whether floats stand in for integers that the formula cannot take as they
  /// are, as in PyTorch: beside floats, and where there is no such formula of
  /// integers.
  bool convertsIntegers = false;
};

/// What formulas make of integers, all of one type.
mlir::Value negateIntegers(mlir::ImplicitLocOpBuilder &builder,
                           llvm::ArrayRef<mlir::Value> operands);
mlir::Value absIntegers(mlir::ImplicitLocOpBuilder &builder,
                        llvm::ArrayRef<mlir::Value> operands);
mlir::Value invertIntegers(mlir::ImplicitLocOpBuilder &builder,
                           llvm::ArrayRef<mlir::Value> operands);
/// The quotient rounded towards minus infinity, and what it leaves, which has
/// the sign of the divisor. Division by 0 gives 0 and leaves 0; the least
/// integer divided by -1 wraps around to itself.
mlir::Value floorDivide(mlir::ImplicitLocOpBuilder &builder,
                        llvm::ArrayRef<mlir::Value> operands);
mlir::Value floorRemainder(mlir::ImplicitLocOpBuilder &builder,
                           llvm::ArrayRef<mlir::Value> operands);
/// Shifts by any number: what is not in the range of the type's bits, below 0
/// or above, shifts all bits out.
mlir::Value shiftLeft(mlir::ImplicitLocOpBuilder &builder,
                      llvm::ArrayRef<mlir::Value> operands);
mlir::Value shiftRight(mlir::ImplicitLocOpBuilder &builder,
                       llvm::ArrayRef<mlir::Value> operands);

/// Floats as integers of `type`, rounded towards zero; the nearest of them for
/// a float beyond them, and 0 for NaN.
mlir::Value toNearestInteger(const tile::Expr &floats, mlir::IntegerType type);

/// The formula called `name`, or null.
const Formula *findFormula(llvm::StringRef name);

/// A reduction over columns, over groups of them, or over rows.
struct Reduction {
  llvm::StringRef name;
  tile::Expr (*build)(const tile::Expr &operand, int64_t groups);
  bool isOfRows;
};

/// The reduction called `name`, or null.
const Reduction *findReduction(llvm::StringRef name);

} // namespace bastile

#endif // BASTILE_LIB_FRONTEND_FORMULAS_H
