//===- TensorView.h - Strided views of memory -------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_TENSORVIEW_H
#define BASTILE_RUNTIME_TENSORVIEW_H

#include "bastile/runtime/ElementType.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <type_traits>
#include <vector>

namespace bastile::runtime {

/// The largest rank of metadata and views, and so of the arguments of compiled
/// functions. It is a constant so that a launch needs no memory from the heap.
constexpr unsigned maxRank = 8;

/// The sizes or the strides of a tensor, stored in place.
class Dimensions {
public:
  Dimensions() = default;
  Dimensions(std::initializer_list<int64_t> list)
      : Dimensions(list.begin(), list.size()) {}
  Dimensions(const int64_t *data, size_t length) {
    assert(length <= maxRank && "rank above maxRank");
    std::copy_n(data, length, values.begin());
    count = static_cast<unsigned>(length);
  }

  unsigned size() const { return count; }
  bool empty() const { return count == 0; }
  void clear() { count = 0; }
  void push_back(int64_t value) {
    assert(count < maxRank && "rank above maxRank");
    values[count++] = value;
  }

  int64_t &operator[](unsigned index) {
    assert(index < count && "dimension out of range");
    return values[index];
  }
  int64_t operator[](unsigned index) const {
    return const_cast<Dimensions &>(*this)[index];
  }
  int64_t &back() { return (*this)[count - 1]; }
  int64_t back() const { return (*this)[count - 1]; }

  const int64_t *begin() const { return values.data(); }
  const int64_t *end() const { return values.data() + count; }

  friend bool operator==(const Dimensions &a, const Dimensions &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend bool operator!=(const Dimensions &a, const Dimensions &b) {
    return !(a == b);
  }

private:
  std::array<int64_t, maxRank> values = {};
  unsigned count = 0;
};

/// A tensor in memory that somebody else owns. Strides count elements.
struct TensorView {
  /// A view of `sizes` in row-major order without gaps.
  static TensorView contiguous(void *data, ElementType type,
                               const Dimensions &sizes);

  unsigned rank() const { return sizes.size(); }
  /// The functions below are for views whose bytes can be counted
  /// (`countBytes`), as those of every call are.
  int64_t elementCount() const;
  int64_t byteCount() const { return elementCount() * byteSize(type); }

  /// Whether the elements lie in row-major order without gaps. The strides of
  /// dimensions of size 1 are never used, so they do not matter.
  bool isContiguous() const;

  /// The address of the first element, of the device if it lies there. Inputs
  /// are only read, although the pointer is not to const.
  void *data = nullptr;
  ElementType type = ElementType::F32;
  Dimensions sizes;
  Dimensions strides;
};

/// How many bytes elements of `type` take up without gaps; nothing if a size is
/// negative or the count exceeds 63 bits. With a size of 0 the count is 0,
/// however large the other sizes are.
std::optional<int64_t> countBytes(ElementType type, const Dimensions &sizes);

/// A sequence that somebody else owns (C++17 has no `std::span`).
template <typename T>
class Span {
public:
  Span() = default;
  Span(T *data, size_t count) : first(data), count(count) {}
  Span(std::vector<std::remove_const_t<T>> &vector)
      : Span(vector.data(), vector.size()) {}
  Span(const std::vector<std::remove_const_t<T>> &vector)
      : Span(vector.data(), vector.size()) {}

  size_t size() const { return count; }
  bool empty() const { return count == 0; }
  T *begin() const { return first; }
  T *end() const { return first + count; }
  T &operator[](size_t index) const {
    assert(index < count && "index out of range");
    return first[index];
  }

private:
  T *first = nullptr;
  size_t count = 0;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_TENSORVIEW_H
