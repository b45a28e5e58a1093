//===- ExpandMath.h - Patterns that expand functions and casts --*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Each family of ops has a file; ExpandMath.cpp puts them together.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_MATH_EXPANDMATH_H
#define BASTILE_PASSES_MATH_EXPANDMATH_H

#include "bastile/Target.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include <optional>

namespace bastile {

/// The flag of an op that may take the GPU's approximation.
inline constexpr mlir::arith::FastMathFlags kApproximate =
    mlir::arith::FastMathFlags::afn;

inline bool isApproximate(mlir::arith::FastMathFlags flags) {
  return bitEnumContainsAll(flags, kApproximate);
}

inline bool isFloat32(mlir::Type type) {
  return mlir::getElementTypeOrSelf(type).isF32();
}

/// The flag of an exponential that is finite, and of a quotient of two numbers
/// that are, which is finite itself.
inline constexpr mlir::arith::FastMathFlags kFinite =
    mlir::arith::FastMathFlags::ninf;

inline bool isFinite(mlir::arith::FastMathFlags flags) {
  return bitEnumContainsAll(flags, kFinite);
}

/// Adds `flags` to those of `op`.
void addFlags(mlir::Operation *op, mlir::arith::FastMathFlags flags);

/// The number that all elements of `value` are, also where it is yet to be
/// repeated.
std::optional<double> getConstant(mlir::Value value);

/// Puts `kApproximate` on the functions and divisions of `program` of which
/// every result that depends on them is rounded to 16 bits or fewer.
void markApproximate(tile::ProgramOp program);

/// Makes approximate sigmoids, and derivatives of such, functions of exp(-x).
void hideSigmoids(tile::ProgramOp program);

/// Makes approximate quotients by roots products with reciprocals of the roots.
void divideByNoRoots(tile::ProgramOp program);

/// Marks the functions and divisions of `program` for which numbers below
/// 2^-126 are known not to matter, and scales the operands of approximate
/// divisions so that they do not; those whose numbers are known to be finite,
/// as well.
void markEndsOfRange(tile::ProgramOp program);

/// Multiplies values of `program` by constants as seldom as possible, also by
/// those that scale divisions.
void collectFactors(tile::ProgramOp program);

/// Whether the GPU may take numbers below 2^-126 for 0 where it computes `op`.
inline bool isFlushed(mlir::Operation *op) {
  return op->hasAttr(tile::TileDialect::kFlushedAttrName);
}

/// Lets the GPU do so.
inline void setFlushed(mlir::Operation *op) {
  op->setAttr(tile::TileDialect::kFlushedAttrName,
              mlir::UnitAttr::get(op->getContext()));
}

/// Guards divisions of integers in `module`, none of which may end the process.
void guardDivisions(mlir::Operation *module);

/// Builds elementwise arithmetic on values of one float type, scalar or vector.
class Formula {
public:
  using Value = mlir::Value;

  Formula(mlir::OpBuilder &rewriter, mlir::Location loc, mlir::Type type,
          mlir::arith::FastMathFlags flags = {})
      : builder(loc, rewriter), type(type), flags(flags) {}

  Value number(double value);
  /// An integer of 32 bits.
  Value integer(int32_t value);

  Value add(Value lhs, Value rhs);
  Value sub(Value lhs, Value rhs);
  Value mul(Value lhs, Value rhs);
  /// Ops with the flags of the formula.
  Value div(Value lhs, Value rhs);
  Value fma(Value a, Value b, Value c);
  Value neg(Value value);
  Value abs(Value value);
  Value copySign(Value magnitude, Value sign);
  Value truncate(Value value);
  /// e^x, with the flags of the formula.
  Value exp(Value x);
  /// Coefficients from the highest power down, the last one for x^0.
  Value polynomial(Value x, llvm::ArrayRef<double> coefficients);
  /// x + x^3 p(x^2), with the coefficients of p.
  Value oddPolynomial(Value x, llvm::ArrayRef<double> coefficients);

  Value select(Value condition, Value ifTrue, Value ifFalse);
  Value compare(mlir::arith::CmpFPredicate predicate, Value lhs, Value rhs);
  Value less(Value lhs, Value rhs) {
    return compare(mlir::arith::CmpFPredicate::OLT, lhs, rhs);
  }
  Value equal(Value lhs, Value rhs) {
    return compare(mlir::arith::CmpFPredicate::OEQ, lhs, rhs);
  }
  /// Clamps to a range; NaN stays NaN.
  Value clamp(Value value, double low, double high);

  /// The type of `bits`-wide integers in the shape of the formula's.
  mlir::Type integerType(unsigned bits);
  /// The integers of the same width.
  Value toBits(Value value);
  Value fromBits(Value bits);
  Value intToFloat(Value value);
  /// Converts to integers, cutting off the digits behind the point.
  Value floatToInt(Value value);
  Value addInt(Value lhs, Value rhs);
  Value subInt(Value lhs, Value rhs);
  Value andInt(Value lhs, Value rhs);
  Value orInt(Value lhs, Value rhs);
  Value shiftLeft(Value value, int32_t count);
  /// Shifts right and fills with zeros.
  Value shiftRight(Value value, int32_t count);
  /// Shifts right and fills with the sign.
  Value shiftRightSigned(Value value, int32_t count);
  Value isZero(Value bits);
  /// Of what `compare` gives.
  Value negate(Value condition);

  mlir::ImplicitLocOpBuilder builder;
  const mlir::Type type;
  const mlir::arith::FastMathFlags flags;
};

/// Applies the GPU's intrinsic `name` to each element of `x`.
mlir::Value createIntrinsic(Formula &f, llvm::StringRef name, mlir::Value x);

/// Rewrites one function of one operand of float32.
template <typename OpTy, mlir::Value (*expand)(Formula &, mlir::Value)>
struct ExpandFunction : public mlir::OpRewritePattern<OpTy> {
  using mlir::OpRewritePattern<OpTy>::OpRewritePattern;

  llvm::LogicalResult
  matchAndRewrite(OpTy op, mlir::PatternRewriter &rewriter) const override {
    if (!isFloat32(op.getType()))
      return mlir::failure();
    Formula f(rewriter, op.getLoc(), op.getType(), op.getFastmath());
    rewriter.replaceOp(op, expand(f, op.getOperand()));
    return mlir::success();
  }
};

/// e^(x + rest) of float32 in arithmetic alone, where `rest` is small beside x
/// and may be null.
mlir::Value createExp(Formula &f, mlir::Value x, mlir::Value rest);

/// Patterns for functions that the GPU has as approximate instructions.
void populateApproximationPatterns(mlir::RewritePatternSet &patterns);
/// Patterns for quotients of float32 that are not approximate.
void populateQuotientPatterns(mlir::RewritePatternSet &patterns);
/// Patterns for functions of float32 that are approximate, of which the GPU has
/// only parts.
void populateHiddenPatterns(mlir::RewritePatternSet &patterns);
/// Patterns for exp and exp2 without an instruction for them.
void populateExponentialPatterns(mlir::RewritePatternSet &patterns);
/// Patterns for sin, cos and tan of float32, whatever the size of the angle.
void populateSinePatterns(mlir::RewritePatternSet &patterns,
                          const Target &target);
/// Patterns for asin, acos, atan and atan2 of float32.
void populateInversePatterns(mlir::RewritePatternSet &patterns);
/// Patterns for sinh, cosh and the inverse hyperbolic functions of float32.
void populateHyperbolicPatterns(mlir::RewritePatternSet &patterns);
/// Patterns for all other functions of float32, and those of float64 that no
/// library gives.
void populateFunctionPatterns(mlir::RewritePatternSet &patterns);
/// Patterns for powers and cube roots.
void populatePowerPatterns(mlir::RewritePatternSet &patterns);
void populateRemainderPatterns(mlir::RewritePatternSet &patterns);
void populateCastPatterns(mlir::RewritePatternSet &patterns,
                          const Target &target);

} // namespace bastile

#endif // BASTILE_PASSES_MATH_EXPANDMATH_H
