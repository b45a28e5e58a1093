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
  llvm::StringRef name;
  /// A letter for each operand: 'n' for numbers, 'c' for a condition.
  llvm::StringRef operands;
  mlir::Value (*build)(mlir::ImplicitLocOpBuilder &builder,
                       llvm::ArrayRef<mlir::Value> operands);
};

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
