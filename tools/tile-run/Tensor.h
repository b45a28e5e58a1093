//===- Tensor.h - Tensors between guard bytes -----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TOOLS_TILERUN_TENSOR_H
#define BASTILE_TOOLS_TILERUN_TENSOR_H

#include "bastile/runtime/Error.h"
#include "bastile/runtime/TensorView.h"
#include <cstdint>
#include <string>
#include <vector>

namespace bastile::run {

/// How far a tensor is from lying densely at an aligned address, in elements.
struct Placement {
  /// Elements between one index of a leading dimension and the next.
  int64_t gap = 0;
  /// Elements between the aligned address and the first element.
  int64_t offset = 0;
  /// Whether the first leading dimension lies innermost, and so on.
  bool isReversed = false;

  /// For tensors of which kernels are given no strides.
  Placement withoutGaps() const { return {/*gap=*/0, offset}; }
};

/// Checks that this machine has the memory for a tensor, which messages call
/// `what`.
runtime::Error checkMemory(const std::string &what, runtime::ElementType type,
                           const runtime::Dimensions &sizes,
                           const Placement &placement);

/// The memory of a tensor as it is to lie on the machine: its elements, and
/// around and between them bytes that no kernel may touch. All bytes start out
/// as 0xFF, a NaN in every float type, so that a mistaken read shows.
class Tensor {
public:
  Tensor(runtime::ElementType type, const runtime::Dimensions &sizes,
         const Placement &placement);

  runtime::ElementType type() const { return layout.type; }
  const runtime::Dimensions &sizes() const { return layout.sizes; }
  int64_t elementCount() const { return layout.elementCount(); }
  int64_t byteCount() const { return layout.byteCount(); }

  /// All of the memory, to be copied to and from the machine.
  std::vector<char> &memory() { return bytes; }
  const std::vector<char> &memory() const { return bytes; }

  /// A view of the tensor in a copy of the memory that starts at `base`.
  runtime::TensorView view(void *base) const;

  /// Copies the elements in row-major order.
  void setElements(const char *elements);
  std::vector<char> getElements() const;

  /// The elements as float64, in row-major order.
  std::vector<double> getNumbers() const;

  /// The elements of a tensor of integers as int64, in row-major order.
  std::vector<int64_t> getIntegers() const;

  /// Whether the guard bytes still have their first values.
  bool isIntact() const;

private:
  /// Calls `visit(row, bytes)` with the memory of each row, in order.
  template <typename Visitor>
  void forEachRow(Visitor visit) const;

  /// All elements as `load` reads them, in row-major order.
  template <typename T>
  std::vector<T> getValues(T (*load)(runtime::ElementType, const void *)) const;

  /// The layout of the tensor, its address being an offset into `bytes`.
  runtime::TensorView layout;
  size_t start = 0;
  std::vector<char> bytes;
};

/// Integers from `low` to below `high`.
struct IntegerRange {
  int64_t low = 0, high = 2;
};

/// Whether `type`, of integers, can hold every number of `range`.
bool holds(runtime::ElementType type, const IntegerRange &range);

/// Integers evenly distributed over `range`, in row-major order; the same for
/// the same seed.
std::vector<char> makeRandomIntegers(runtime::ElementType type, int64_t count,
                                     const IntegerRange &range, uint64_t seed);

/// Normal random numbers in row-major order, each rounded to `type`; the same
/// for the same seed.
std::vector<char> makeRandomElements(runtime::ElementType type, int64_t count,
                                     uint64_t seed);

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_TENSOR_H
