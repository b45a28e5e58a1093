//===- TensorMap.h - Tensors as the copy engine sees them -------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A GPU copies a box of a tensor to shared memory and back on its own (TMA), if
// it is given a tensor map: 128 bytes, made by the driver, that hold the
// tensor's address, sizes and strides, the sizes of the box, and how shared
// memory is swizzled. Kernels take maps as parameters.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_TENSORMAP_H
#define BASTILE_RUNTIME_TENSORMAP_H

#include "bastile/runtime/TensorView.h"

#include <array>
#include <cstdint>
#include <string>

namespace bastile::runtime {

/// What the hardware takes. Whether boxes and swizzles are within it, the
/// metadata's reader checks; tensors differ from call to call.
struct TensorMapLimits {
  static constexpr unsigned rank = 5;
  /// Coordinates are signed and of 32 bits.
  static constexpr int64_t size = int64_t(1) << 31;
  /// The address, and all strides but the last, are multiples of this.
  static constexpr int64_t alignment = 16;
  /// Strides are below this, in bytes.
  static constexpr int64_t stride = int64_t(1) << 40;
  static constexpr int64_t boxSize = 256;
};

/// Everything that a tensor map says. Dimensions are in the order of the
/// tensor's, so the last one is contiguous.
struct TensorMapSpec {
  TensorMapSpec() = default;
  /// The map of `view`, within the limits (`suitsTensorMap`), in boxes of the
  /// sizes `box`. Shared memory is swizzled in rows of `swizzle` bytes, 0 for
  /// not at all.
  TensorMapSpec(const TensorView &view, const Dimensions &box, int64_t swizzle);

  /// Whether the two are of the same tensor, but for its address.
  bool isLike(const TensorMapSpec &other) const;

  void *address = nullptr;
  ElementType type = ElementType::F32;
  uint8_t rank = 0;
  uint8_t swizzle = 0;
  std::array<int64_t, TensorMapLimits::rank> sizes = {};
  /// In bytes; of a dimension of size 1, where no stride counts, one that goes
  /// past the dimensions behind it.
  std::array<int64_t, TensorMapLimits::rank> strides = {};
  std::array<uint16_t, TensorMapLimits::rank> box = {};
};

/// Whether there is a tensor map of `view`, whose rank is within the limits. If
/// not, `reason`, if given, receives why, as the end of a sentence. Copies to
/// the tensor write 16 bytes at a time: the last ones of a row would overwrite
/// what lies behind it, where they are not all of the row (seen on an H100).
bool suitsTensorMap(const TensorView &view, bool isWritten,
                    std::string *reason);

/// A tensor map as a kernel reads it.
struct alignas(64) EncodedTensorMap {
  std::array<unsigned char, 128> bytes = {};
};

/// The tensor map of an emulated GPU, the first bytes of an `EncodedTensorMap`.
/// Dimensions are in the order of a copy's coordinates, so the first one is
/// contiguous.
struct EmulatedTensorMap {
  static constexpr uint32_t expectedMagic = 0x70616d74;

  explicit EmulatedTensorMap(const TensorMapSpec &spec);
  EmulatedTensorMap() = default;

  /// `expectedMagic` in everything that is a map.
  uint32_t magic = 0;
  uint8_t rank = 0;
  ElementType type = ElementType::F32;
  uint8_t elementBytes = 0;
  /// Bytes of a row that is swizzled as a whole: 0, 32, 64 or 128.
  uint8_t swizzle = 0;
  uint64_t address = 0;
  int64_t sizes[TensorMapLimits::rank] = {};
  /// In bytes.
  int64_t strides[TensorMapLimits::rank] = {};
  uint16_t box[TensorMapLimits::rank] = {};
};
static_assert(sizeof(EmulatedTensorMap) <= sizeof(EncodedTensorMap));

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_TENSORMAP_H
