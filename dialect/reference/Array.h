//===- Array.h - Dense arrays of numbers with their errors ------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_REFERENCE_ARRAY_H
#define BASTILE_DIALECT_REFERENCE_ARRAY_H

#include "dialect/reference/Number.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Compiler.h"
#include <vector>

namespace bastile::reference {

/// The numbers that a type of floats has.
class Format {
public:
  Format() = default;
  explicit Format(mlir::FloatType type);

  /// The number of this format that is nearest, ties to even.
  double round(double value) const;
  /// Rounds a number with an error. The error becomes 0 where all numbers
  /// within it round to the same one.
  Number round(const Number &number) const;
  /// A result of an op, as this format holds it: rounded if the format has 16
  /// bits or fewer; otherwise only infinite where it is beyond the format.
  LLVM_ATTRIBUTE_ALWAYS_INLINE Number hold(const Number &number) const {
    if (std::fabs(number.value) + number.error < limit)
      return number;
    return holdAny(number);
  }

  /// The unit roundoff of the type in which ops on this format compute: float32
  /// or float64.
  double unit() const { return precision > 24 ? 0x1p-52 : 0x1p-24; }

private:
  Number holdAny(const Number &number) const;

  /// Bits of the significand, the least exponent of a normal number, and the
  /// largest number.
  int precision = 53, minExponent = -1022;
  double largest = std::numeric_limits<double>::max();
  bool hasInfinity = true;
  /// Numbers below this are held as they are.
  double limit = kInfinity;
};

/// A tensor in row-major order, or a scalar, which has no sizes.
class Array {
public:
  Array() = default;
  /// Makes an array of zeros. `elementType` is a float, an integer or an index.
  Array(mlir::Type elementType, llvm::ArrayRef<int64_t> sizes);

  mlir::Type elementType() const { return type; }
  bool isFloat() const { return mlir::isa<mlir::FloatType>(type); }
  const Format &format() const { return floats; }
  llvm::ArrayRef<int64_t> sizes() const { return shape; }
  /// The size of the last dimension, and the product of the others.
  int64_t length() const { return shape.empty() ? 1 : shape.back(); }
  int64_t rows() const;
  int64_t count() const { return rows() * length(); }
  int64_t bytes() const;

  // Most of the time is spent in the accessors below.
  LLVM_ATTRIBUTE_ALWAYS_INLINE Number number(int64_t index) const {
    return {numbers[index], error(index), floats.unit()};
  }
  Integer integer(int64_t index) const {
    return {integers[index], error(index)};
  }
  double error(int64_t index) const {
    return errors.empty() ? 0 : errors[index];
  }
  /// Floats are stored as the format holds them, integers cut to the type's
  /// bits.
  LLVM_ATTRIBUTE_ALWAYS_INLINE void set(int64_t index, const Number &number) {
    const Number held = floats.hold(number);
    numbers[index] = held.value;
    setError(index, held.error);
  }
  void set(int64_t index, const Integer &integer);
  /// Takes an element of an array of the same type.
  LLVM_ATTRIBUTE_ALWAYS_INLINE void copy(int64_t index, const Array &source,
                                         int64_t from) {
    if (source.integers.empty())
      numbers[index] = source.numbers[from];
    else
      integers[index] = source.integers[from];
    setError(index, source.error(from));
  }

  /// The elements of an array of floats, those of one of integers, and the
  /// elements' errors, none where all are exact.
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  std::vector<double> errors;

private:
  LLVM_ATTRIBUTE_ALWAYS_INLINE void setError(int64_t index, double error) {
    if (errors.empty()) {
      if (error == 0)
        return;
      beginErrors();
    }
    errors[index] = error;
  }
  void beginErrors();

  mlir::Type type;
  Format floats;
  llvm::SmallVector<int64_t> shape;
};

/// How many bits integers of `type` have; an index has 64.
unsigned getWidth(mlir::Type type);

/// The low bits of `value` as an integer of `type`, signed except for i1.
int64_t wrap(mlir::Type type, int64_t value);

/// An array of `type` whose elements are `function` of those of `arrays`, of
/// one shape.
template <typename Function, typename... Arrays>
Array map(mlir::Type type, Function function, const Array &first,
          const Arrays &...rest) {
  Array result(type, first.sizes());
  for (int64_t i = 0, count = first.count(); i != count; ++i)
    result.set(i, function(first.number(i), rest.number(i)...));
  return result;
}

} // namespace bastile::reference

#endif // BASTILE_DIALECT_REFERENCE_ARRAY_H
