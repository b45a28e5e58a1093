//===- IndexArithmetic.h - Arithmetic on numbers of tiles -------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PRODUCTS_INDEXARITHMETIC_H
#define BASTILE_PASSES_PRODUCTS_INDEXARITHMETIC_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace bastile {

/// Builds arithmetic on indices that are not negative, for formulas of so many
/// operations that the ops' names would hide them.
class IndexArithmetic {
public:
  explicit IndexArithmetic(mlir::ImplicitLocOpBuilder &builder)
      : builder(builder) {}

  mlir::Value add(mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::AddIOp::create(builder, lhs, rhs);
  }
  mlir::Value subtract(mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::SubIOp::create(builder, lhs, rhs);
  }
  mlir::Value multiply(mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::MulIOp::create(builder, lhs, rhs);
  }
  mlir::Value divide(mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::DivUIOp::create(builder, lhs, rhs);
  }
  mlir::Value divideUp(mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::CeilDivUIOp::create(builder, lhs, rhs);
  }
  mlir::Value getRest(mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::RemUIOp::create(builder, lhs, rhs);
  }
  mlir::Value getSmaller(mlir::Value lhs, mlir::Value rhs) {
    return mlir::arith::MinUIOp::create(builder, lhs, rhs);
  }

private:
  mlir::ImplicitLocOpBuilder &builder;
};

} // namespace bastile

#endif // BASTILE_PASSES_PRODUCTS_INDEXARITHMETIC_H
