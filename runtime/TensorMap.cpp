//===- TensorMap.cpp - Tensors as the copy engine sees them ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/TensorMap.h"
#include "runtime/Text.h"

#include <limits>

using namespace bastile::runtime;

/// The stride of a dimension in bytes, which saturates where it exceeds 64
/// bits.
static int64_t getByteStride(const TensorView &view, unsigned dimension) {
  int64_t stride;
  if (__builtin_mul_overflow(view.strides[dimension], byteSize(view.type),
                             &stride))
    return std::numeric_limits<int64_t>::max();
  return stride;
}

bool bastile::runtime::suitsTensorMap(const TensorView &view, bool isWritten,
                                      std::string *reason) {
  using Limits = TensorMapLimits;
  auto fail = [&](const auto &...parts) {
    if (reason)
      *reason = concat(parts...);
    return false;
  };
  if (reinterpret_cast<uintptr_t>(view.data) % Limits::alignment != 0)
    return fail("its address ", view.data, " is no multiple of ",
                Limits::alignment);
  for (unsigned d = 0; d != view.rank(); ++d)
    if (view.sizes[d] < 1 || view.sizes[d] > Limits::size)
      return fail("its size ", view.sizes[d], " in dimension ", d,
                  " is not within 1 to ", Limits::size);
  if (const int64_t last = view.sizes[view.rank() - 1];
      isWritten && last * byteSize(view.type) % Limits::alignment != 0)
    return fail("its ", last, " elements in the last dimension, which are ",
                "written, are no multiple of ", Limits::alignment, " bytes");
  for (unsigned d = 0; d != view.rank(); ++d) {
    if (view.sizes[d] == 1)
      continue;
    if (d + 1 == view.rank()) {
      if (view.strides[d] != 1)
        return fail("its stride in the last dimension is ", view.strides[d],
                    ", not 1");
      continue;
    }
    const int64_t stride = getByteStride(view, d);
    if (stride < Limits::alignment || stride >= Limits::stride ||
        stride % Limits::alignment != 0)
      return fail("its stride of ", view.strides[d], " elements in dimension ",
                  d, " is no multiple of ", Limits::alignment,
                  " bytes, above 0 and below ", Limits::stride);
  }
  return true;
}

/// The least stride that a map takes of a dimension around one of `size` and
/// `stride`; the greatest one where that is too far.
static int64_t reachOver(int64_t stride, int64_t size) {
  constexpr int64_t unit = TensorMapLimits::alignment;
  constexpr int64_t most = TensorMapLimits::stride - unit;
  int64_t bytes;
  if (__builtin_mul_overflow(stride, size, &bytes) || bytes > most)
    return most;
  return (bytes + unit - 1) / unit * unit;
}

TensorMapSpec::TensorMapSpec(const TensorView &view, const Dimensions &boxes,
                             int64_t swizzle)
    : address(view.data), type(view.type),
      rank(static_cast<uint8_t>(view.rank())),
      swizzle(static_cast<uint8_t>(swizzle)) {
  assert(view.rank() <= TensorMapLimits::rank && boxes.size() == view.rank() &&
         suitsTensorMap(view, /*isWritten=*/false, nullptr) &&
         "there is no such tensor map");
  // How far the dimensions behind reach, as far as a stride may.
  int64_t reach = byteSize(type);
  for (unsigned d = rank; d-- != 0;) {
    const bool isLast = d + 1u == rank;
    sizes[d] = view.sizes[d];
    box[d] = static_cast<uint16_t>(boxes[d]);
    strides[d] = isLast || view.sizes[d] == 1 ? reach : getByteStride(view, d);
    reach = reachOver(strides[d], sizes[d]);
  }
}

bool TensorMapSpec::isLike(const TensorMapSpec &other) const {
  return type == other.type && rank == other.rank && swizzle == other.swizzle &&
         sizes == other.sizes && strides == other.strides && box == other.box;
}

EmulatedTensorMap::EmulatedTensorMap(const TensorMapSpec &spec)
    : magic(expectedMagic), rank(spec.rank), type(spec.type),
      elementBytes(static_cast<uint8_t>(byteSize(spec.type))),
      swizzle(spec.swizzle),
      address(reinterpret_cast<uintptr_t>(spec.address)) {
  for (unsigned d = 0; d != rank; ++d) {
    const unsigned outermostFirst = rank - 1u - d;
    sizes[d] = spec.sizes[outermostFirst];
    strides[d] = spec.strides[outermostFirst];
    box[d] = spec.box[outermostFirst];
  }
}
