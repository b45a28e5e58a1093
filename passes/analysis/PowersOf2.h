//===- PowersOf2.h - Which powers may be computed as those of 2 -*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A GPU has powers of 2. exp(x - m), of scores x = c s and a number m of their
// row, takes fewer instructions for each score as
//
//   2^(s (c log2 e) - m log2 e),
//
// whose right side is computed once a row. Where nothing but such powers and
// maxima read x, s takes its place: the maximum of x is c times that of s,
// which is exact, as c is positive.
//
// The right side is rounded, so that 2^0 is not exactly where x is m: the error
// is as large as that of rounding x, and the larger m is, the larger it is. So
// scores must be computed of factors, not be read or be a constant, such as the
// lowest number of float32 that fills a row, except for minus infinity; and
// what is computed of the power must be rounded to 16 bits. Where the factors
// have 16 bits, a number of each row, such as a sum that is saved for a
// backward, may also stay as it is: next to the error of rounded factors, that
// of the powers is small.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ANALYSIS_POWERSOF2_H
#define BASTILE_PASSES_ANALYSIS_POWERSOF2_H

#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/MapVector.h"

namespace bastile {

/// exp(x - m) as a power of 2.
struct PowerOf2 {
  mlir::Value x;
  /// m, a number of each row.
  mlir::Value statistic;
};

/// The powers among ops on tensors that may be computed as powers of 2: of
/// those that follow one maximum, all or none.
class PowersOf2 {
public:
  PowersOf2() = default;
  explicit PowersOf2(mlir::Block &block);

  /// What `power` is; null if it is nothing of the kind.
  const PowerOf2 *lookup(mlir::Value power) const {
    const auto *it = powers.find(power);
    return it == powers.end() ? nullptr : &it->second;
  }
  /// The s that takes the place of `product`, c s; null if none does.
  mlir::Value getUnscaled(mlir::Value product) const {
    auto it = scaled.find(product);
    return it == scaled.end() ? mlir::Value() : it->second.first;
  }
  /// The number by which what takes the place of `x` is to be multiplied.
  double getScale(mlir::Value x) const;

private:
  void dropPartsOfSums(mlir::Block &block);
  void findUnscaled(mlir::Value product, mlir::Value scores, double scale);

  llvm::MapVector<mlir::Value, PowerOf2> powers;
  /// The s and the c of each product.
  llvm::DenseMap<mlir::Value, std::pair<mlir::Value, double>> scaled;
};

/// Whether `x` is computed of factors, as scores are.
bool areScores(mlir::Value x);

/// exp(x - m) of any x, if `exp` is one of which all that is computed is
/// rounded to 16 bits, or a number of each row where the factors of x have 16.
std::optional<PowerOf2> findRoundedPower(mlir::math::ExpOp exp);
/// The same, of scores x, or of what is relative to a maximum already, where m
/// is the logarithm of a sum (ProductSums.h).
std::optional<PowerOf2> findPowerOf2(mlir::math::ExpOp exp);

/// The y of a number y ln 2 of each row; null if `statistic` is none.
mlir::Value getInLogs2(mlir::Value statistic);

} // namespace bastile

#endif // BASTILE_PASSES_ANALYSIS_POWERSOF2_H
