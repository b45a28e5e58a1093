//===- EmulatedTensors.h - Copies of boxes of tensors -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_EMULATOR_EMULATEDTENSORS_H
#define BASTILE_LIB_EMULATOR_EMULATEDTENSORS_H

#include "bastile/runtime/TensorMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>
#include <deque>
#include <vector>

namespace bastile {

/// The place of a byte in shared memory under a swizzle: bits 4 and on of the
/// address are combined with bits 7 and on, as many as `swizzle` asks for.
inline char *swizzled(char *address, uint64_t swizzle) {
  auto bits = reinterpret_cast<uintptr_t>(address);
  uintptr_t mask = swizzle == 0 ? 0 : (swizzle - 1) & 0x70;
  return reinterpret_cast<char *>(bits ^ (bits >> 3 & mask));
}

/// A box of a tensor that begins at `coordinates`, some of which may lie
/// outside.
struct TensorBox {
  runtime::EmulatedTensorMap map;
  int32_t coordinates[runtime::TensorMapLimits::rank] = {};

  uint64_t rowBytes() const { return uint64_t(map.box[0]) * map.elementBytes; }
  uint64_t bytes() const;
  /// Copies between the tensor and the box at `place` in shared memory. Outside
  /// of the tensor a box is zero.
  void load(char *place) const;
  void store(char *place) const;
  /// Adds the float32s of the box at `place` to those of the tensor.
  void add(char *place) const;
  /// The bytes of the tensor from the first to the last one in the box; empty
  /// if all of the box lies outside.
  struct Range {
    uint64_t begin, bytes;
  };
  Range range() const;
  /// Whether all that it has of a row are whole pieces of 16 bytes: a copy to
  /// the tensor writes whole ones.
  bool endsWithPiece() const;

  /// Calls `visit` with each row of the box: its place, its first byte in the
  /// tensor if it has any, and which of its bytes lie in the tensor.
  using Visitor = llvm::function_ref<void(char *row, char *from, uint64_t begin,
                                          uint64_t end)>;
  void forEachRow(char *place, Visitor visit) const;
};

/// The stores of boxes that a thread has begun.
struct TensorStores {
  struct Store {
    TensorBox box;
    char *from;
    /// Whether it adds to what is there.
    bool adds;
  };
  /// The component of these stores in the clocks; the step of a store is the
  /// number of its group, from 1 on.
  unsigned component = 0;
  /// The component of what they write. The other one is of what they read.
  unsigned written = 0;
  uint32_t numGroups = 0;
  std::vector<Store> open;
  std::deque<std::vector<Store>> groups;
};

} // namespace bastile

#endif // BASTILE_LIB_EMULATOR_EMULATEDTENSORS_H
