//===- TensorView.cpp - Strided views of memory ---------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/TensorView.h"

using namespace bastile::runtime;

static bool isEmpty(const Dimensions &sizes) {
  return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
}

/// The product, which may wrap around: for sizes that no tensor has, which
/// callers reject, and for sizes beside a size of 0.
static int64_t multiply(int64_t left, int64_t right) {
  return static_cast<int64_t>(static_cast<uint64_t>(left) *
                              static_cast<uint64_t>(right));
}

std::optional<int64_t> bastile::runtime::countBytes(ElementType type,
                                                    const Dimensions &sizes) {
  if (std::any_of(sizes.begin(), sizes.end(),
                  [](int64_t size) { return size < 0; }))
    return std::nullopt;
  int64_t bytes = isEmpty(sizes) ? 0 : byteSize(type);
  for (int64_t size : sizes)
    if (bytes != 0 && __builtin_mul_overflow(bytes, size, &bytes))
      return std::nullopt;
  return bytes;
}

TensorView TensorView::contiguous(void *data, ElementType type,
                                  const Dimensions &sizes) {
  Dimensions strides = sizes;
  if (!strides.empty())
    strides.back() = 1;
  for (unsigned i = sizes.size(); i-- > 1;)
    strides[i - 1] = multiply(strides[i], sizes[i]);
  return {data, type, sizes, strides};
}

int64_t TensorView::elementCount() const {
  int64_t count = 1;
  for (int64_t size : sizes)
    count = multiply(count, size);
  return isEmpty(sizes) ? 0 : count;
}

bool TensorView::isContiguous() const {
  int64_t expected = 1;
  for (unsigned i = sizes.size(); i-- != 0;) {
    if (sizes[i] == 0)
      return true;
    if (sizes[i] != 1 && strides[i] != expected)
      return false;
    expected = multiply(expected, sizes[i]);
  }
  return true;
}
