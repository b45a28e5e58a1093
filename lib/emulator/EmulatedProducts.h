//===- EmulatedProducts.h - Products of a warpgroup -------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// What is under way in a warpgroup's tensor cores. A product is computed as
// late as its wait allows. Until then each of its registers holds a
// placeholder, which is a NaN that names the product and the register.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_EMULATOR_EMULATEDPRODUCTS_H
#define BASTILE_LIB_EMULATOR_EMULATEDPRODUCTS_H

#include "lib/emulator/rewrite/EmulateGpu.h"
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace bastile {

/// A register that a product will write. Products are numbered from 1 on and,
/// as a NaN has room for so many, from 1 on again after the last.
struct Placeholder {
  static constexpr unsigned numProducts = (1U << 15) - 1;

  unsigned product;
  unsigned index;

  /// Quiet NaNs, which are all that arithmetic makes, are no placeholders.
  uint32_t encode() const { return 0x7f800000 | product << 7 | index; }
  static std::optional<Placeholder> decode(uint32_t bits) {
    if ((bits & 0xffc00000) != 0x7f800000 || (bits >> 7 & numProducts) == 0)
      return std::nullopt;
    return Placeholder{bits >> 7 & numProducts, bits & 127};
  }
};

struct PendingProduct {
  const EmulatedProduct *product;
  unsigned number;
  /// The group that it will be waited for with; groups are numbered from 1 on.
  uint32_t group;
  uint32_t site;
  char *a, *b;
  /// The registers of the first factor, four of each thread.
  std::vector<uint32_t> fragment;
  /// The product whose sum it adds to, or 0; else the sum, in rows.
  unsigned before = 0;
  std::vector<float> sum;
};

struct Warpgroup {
  static constexpr unsigned numThreads = 128;
  static constexpr uint32_t noSite = ~uint32_t(0);

  /// The component of its tensor cores in the clocks; the step of a product is
  /// the number of its group.
  unsigned component = 0;
  /// The threads that have come to a common step, and the first of them.
  unsigned numArrived = 0, leader = 0;
  unsigned lastProduct = 0;
  uint32_t numGroups = 0;
  std::deque<PendingProduct> pending;
  /// The sums of products that have been waited for, by number, with the order
  /// in which they were computed.
  std::map<unsigned, std::vector<float>> sums;
  std::deque<unsigned> computed;
  /// Where each product was begun, or `noSite`.
  std::vector<uint32_t> sites;
  /// The registers of a thread that it has asked for, or 0.
  unsigned threadRegisters = 0;

  const PendingProduct *find(unsigned number) const {
    for (const PendingProduct &one : pending)
      if (one.number == number)
        return &one;
    return nullptr;
  }
  /// The product under way that adds to another one.
  const PendingProduct *findAdding(unsigned before) const {
    for (const PendingProduct &one : pending)
      if (one.before == before)
        return &one;
    return nullptr;
  }
};

} // namespace bastile

#endif // BASTILE_LIB_EMULATOR_EMULATEDPRODUCTS_H
