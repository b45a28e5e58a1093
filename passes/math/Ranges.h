//===- Ranges.h - What numbers lie between ----------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What the numbers of a value lie between, as its formula says: 1 + exp(-|x|)
// is at least 1 and at most 2. Of a number that is NaN a range says nothing.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_MATH_RANGES_H
#define BASTILE_PASSES_MATH_RANGES_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include <limits>

namespace bastile {

struct NumberRange {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};

/// The ranges of the values of a program, each found once.
class NumberRanges {
public:
  /// The range of `value`, a float or a vector of floats.
  NumberRange find(mlir::Value value);

private:
  NumberRange compute(mlir::Value value);

  llvm::DenseMap<mlir::Value, NumberRange> found;
  unsigned depth = 0;
};

/// The x whose -|x| `value` is: a choice between x and -x, as a formula has it
/// that is to have a derivative at 0. Null for any other value.
mlir::Value getOfNegatedSize(mlir::Value value);

} // namespace bastile

#endif // BASTILE_PASSES_MATH_RANGES_H
