//===- Expression.h - Formulas over row tensors -----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Makes the decomposition of a model op read like its formula.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_EXPRESSION_H
#define BASTILE_DIALECT_EXPRESSION_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace bastile::tile {

/// A row tensor, a row vector or a statistic in the precision in which formulas
/// compute: float32, or float64 where the element type is float64.
///
/// Operators build `arith` and `math` ops. Operands of different shape are
/// broadcast: a row vector over rows, a statistic along its row.
class Expr {
public:
  /// Wraps `value`, extended to the computing precision.
  Expr(mlir::ImplicitLocOpBuilder &builder, mlir::Value value);

  /// The value converted to `elementType`, as for a result of the op.
  mlir::Value as(mlir::Type elementType) const;
  /// The value rounded to `elementType` and back, as models that cast in the
  /// middle of a formula do.
  Expr roundedTo(mlir::Type elementType) const;

  mlir::Value getValue() const { return value; }
  mlir::ImplicitLocOpBuilder &getBuilder() const { return *builder; }
  mlir::RankedTensorType getType() const {
    return mlir::cast<mlir::RankedTensorType>(value.getType());
  }
  /// A constant of this expression's shape and precision.
  Expr constant(double number) const;
  /// This row vector, statistic or number repeated over the shape of `other`.
  Expr like(const Expr &other) const;

private:
  friend Expr wrap(mlir::ImplicitLocOpBuilder &builder, mlir::Value value);
  Expr() = default;

  mlir::ImplicitLocOpBuilder *builder = nullptr;
  mlir::Value value;
};

Expr operator+(const Expr &lhs, const Expr &rhs);
Expr operator-(const Expr &lhs, const Expr &rhs);
Expr operator*(const Expr &lhs, const Expr &rhs);
Expr operator/(const Expr &lhs, const Expr &rhs);
Expr operator+(const Expr &lhs, double rhs);
Expr operator-(const Expr &lhs, double rhs);
Expr operator-(double lhs, const Expr &rhs);
Expr operator*(const Expr &lhs, double rhs);
Expr operator*(double lhs, const Expr &rhs);
Expr operator/(const Expr &lhs, double rhs);
Expr operator/(double lhs, const Expr &rhs);
Expr operator-(const Expr &operand);

/// The smaller and the larger operand; NaN if either operand is NaN.
Expr min(const Expr &lhs, const Expr &rhs);
Expr max(const Expr &lhs, const Expr &rhs);
Expr min(const Expr &lhs, double rhs);
Expr max(const Expr &lhs, double rhs);

/// Compares elementwise; gives a tensor of i1, for `select`.
mlir::Value compare(mlir::arith::CmpFPredicate predicate, const Expr &lhs,
                    const Expr &rhs);
mlir::Value compare(mlir::arith::CmpFPredicate predicate, const Expr &lhs,
                    double rhs);
Expr select(mlir::Value condition, const Expr &lhs, const Expr &rhs);
/// The value of `operand`, which derivatives take for a constant.
Expr stopGradient(const Expr &operand);

Expr exp(const Expr &operand);
Expr exp2(const Expr &operand);
Expr expm1(const Expr &operand);
Expr log(const Expr &operand);
Expr log2(const Expr &operand);
Expr log1p(const Expr &operand);
Expr tanh(const Expr &operand);
Expr sinh(const Expr &operand);
Expr cosh(const Expr &operand);
Expr sin(const Expr &operand);
Expr cos(const Expr &operand);
Expr power(const Expr &base, const Expr &exponent);
Expr erf(const Expr &operand);
Expr erfc(const Expr &operand);
Expr sqrt(const Expr &operand);
Expr rsqrt(const Expr &operand);
Expr abs(const Expr &operand);
Expr floor(const Expr &operand);
Expr ceil(const Expr &operand);
/// To the nearest integer, ties to the even one.
Expr round(const Expr &operand);
/// The quotient rounded towards minus infinity, as PyTorch's `floor_divide`,
/// and what it leaves, as PyTorch's `remainder`: of the sign of the divisor.
/// The quotient is a constant to derivatives.
Expr floorDivide(const Expr &lhs, const Expr &rhs);
Expr remainder(const Expr &lhs, const Expr &rhs);
/// a * b + c, rounded once.
Expr fma(const Expr &a, const Expr &b, const Expr &c);
/// The least power of two that is not less than a positive operand, exactly.
/// Infinity and NaN stay. The operand must not be subnormal.
Expr roundUpToPowerOfTwo(const Expr &operand);
/// 1 / (1 + exp(-x)), as (x >= 0 ? 1 : s) / (1 + s) with s = exp(-|x|). No
/// intermediate overflows, so that the tail is right down to the smallest
/// numbers, and so is the tail of the derivative.
Expr sigmoid(const Expr &operand);
/// x * Phi(x), Phi being the normal distribution, as 0.5 x erfc(-x / sqrt 2):
/// unlike 0.5 x (1 + erf(x / sqrt 2)), it does not cancel for negative x.
Expr geluErf(const Expr &operand);
/// 0.5 x (1 + tanh u), u = sqrt(2 / pi) (x + 0.044715 x^3), as x sigmoid(2 u):
/// the same function, but without the cancellation of 1 + tanh for negative x
/// (Hendrycks and Gimpel, arXiv 1606.08415).
Expr geluTanh(const Expr &operand);

/// log(1 + exp(x)), without overflow; exact in both tails.
Expr softplus(const Expr &operand);

/// The sum, mean, maximum and minimum of each row, or of each of its `groups`
/// groups of neighbouring columns: a statistic.
Expr rowSum(const Expr &operand, int64_t groups = 1);
Expr rowMean(const Expr &operand, int64_t groups = 1);
Expr rowMax(const Expr &operand, int64_t groups = 1);
Expr rowMin(const Expr &operand, int64_t groups = 1);
/// The sum and the maximum of all rows, a row vector.
Expr sumOfRows(const Expr &operand);
/// The sums of the rows over the leading dimensions in which `shape` has 1.
Expr sumOfRows(const Expr &operand, llvm::ArrayRef<int64_t> shape);
Expr maxOfRows(const Expr &operand);

/// The sum and the maximum of the rows of each band, repeated in every row of
/// the band.
Expr sumOfBands(const Expr &operand, int64_t band);
Expr maxOfBands(const Expr &operand, int64_t band);
/// `packBands` keeps the first row of each band; `repeatBands` repeats each row
/// for a band of the rows of `like`.
Expr packBands(const Expr &operand, int64_t band);
Expr repeatBands(const Expr &operand, int64_t band, mlir::Value like);

/// x * sigmoid(x).
Expr silu(const Expr &operand);
/// The positive part; NaN stays NaN, and the derivative at zero is zero.
Expr relu(const Expr &operand);

/// The products of the matrices of `a` and `b`, their last two dimensions,
/// which are of one element type. They are summed over dimension `contract[0]`
/// of the matrices of `a` and `contract[1]` of those of `b`, each 0 or 1, in
/// the computing precision; a matrix is repeated where its tensor has no batch,
/// or one of size 1.
Expr dot(mlir::ImplicitLocOpBuilder &builder, mlir::Value a, mlir::Value b,
         llvm::ArrayRef<int64_t> contract);

/// Takes rows apart into `count` pieces, and puts pieces together. Each
/// `strands` neighbouring pieces are interleaved with each other.
llvm::SmallVector<mlir::Value> splitRows(mlir::ImplicitLocOpBuilder &builder,
                                         mlir::Value rows, int64_t count,
                                         int64_t strands = 1);
mlir::Value joinRows(mlir::ImplicitLocOpBuilder &builder,
                     mlir::ValueRange pieces, int64_t strands = 1);

/// The targets of a loss, one number a row that names one of its elements.
class TargetRows {
public:
  /// `targets` are statistics of i32 or i64, each the number of an element of
  /// its row of `length`, or `ignored` for a row without a target.
  TargetRows(mlir::ImplicitLocOpBuilder &builder, mlir::Value targets,
             int64_t ignored, int64_t length);

  /// A statistic of i1: true for a row without a target.
  mlir::Value isIgnored() const { return ignored; }
  mlir::Value isInRange() const { return inRange; }
  /// A row tensor of i1 with the shape of `rows`, true at most once a row.
  mlir::Value isTarget(const Expr &rows) const;

private:
  mlir::ImplicitLocOpBuilder &builder;
  mlir::Value column, ignored, inRange;
};

/// The number of each element's column, in the shape and precision of `like`;
/// float32 has those of 2^24 columns.
Expr columnNumbers(const Expr &like);

/// `operand` as integers, rounded towards zero.
mlir::Value toInteger(const Expr &operand, mlir::IntegerType type);

/// Checks that the row vector `vector` is as long as the rows of `rows`. An
/// error at `op` calls both by the names given.
llvm::LogicalResult verifyRowLength(mlir::Operation *op, mlir::Value vector,
                                    llvm::StringRef vectorName,
                                    mlir::Value rows, llvm::StringRef rowsName);

/// Checks that the rows of `rows` are `groups` groups of columns of one size.
/// An error at `op` calls them by the name given.
llvm::LogicalResult verifyGroups(mlir::Operation *op, int64_t groups,
                                 mlir::Value rows, llvm::StringRef rowsName);

/// Checks that `scale` has one number for each row of `rows`, for each band of
/// rows if there is a `band`, for each group of columns, or for the whole
/// tensor.
llvm::LogicalResult verifyScale(mlir::Operation *op, mlir::Value scale,
                                mlir::Value rows, std::optional<int64_t> band);

} // namespace bastile::tile

#endif // BASTILE_DIALECT_EXPRESSION_H
