//===- GridShadow.h - Data races between blocks of a grid -------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Remembers, for the memory that a grid may write, which cluster accessed what
// last, and what the counters order by which clusters wait for each other. A
// cluster has clocks of its own (VectorClocks.h). Here, a component is known by
// its cluster and its number there.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_EMULATOR_GRIDSHADOW_H
#define BASTILE_LIB_EMULATOR_GRIDSHADOW_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace bastile {

/// Memory that kernels may touch.
struct EmulatedBuffer {
  uintptr_t begin;
  uint64_t bytes;
  std::string name;
  bool isWritable;
};

/// A component of some cluster's clocks.
struct GridComponent {
  uint32_t cluster, component;

  bool operator<(const GridComponent &other) const {
    return std::tie(cluster, component) <
           std::tie(other.cluster, other.component);
  }
};

/// The step up to which each component is known.
using GridClock = std::map<GridComponent, uint32_t>;

class GridShadow {
public:
  /// An access at a step of a component; at step 0 for none.
  struct Access {
    GridComponent by;
    uint32_t step;
  };
  struct Race {
    const EmulatedBuffer *buffer;
    uint64_t offset;
    /// The earlier access: "read" or "wrote", and by which cluster.
    const char *earlier;
    uint32_t cluster;
  };
  /// Whether an access comes after an earlier one.
  using Knows = llvm::function_ref<bool(const Access &earlier)>;

  explicit GridShadow(const std::vector<EmulatedBuffer> &buffers);

  /// Notes an access; returns the first byte in a race, if any. Of accesses
  /// that only read, the last one is remembered.
  std::optional<Race> note(const Access &now, uintptr_t address, uint64_t bytes,
                           bool isWrite, Knows knows);

  /// What those know who have waited for the counter at an address.
  GridClock &released(uintptr_t counter) { return counters[counter]; }

private:
  /// No element in memory is written by halves of this.
  static constexpr uint64_t pieceBytes = 2;

  struct Piece {
    Access writer = {{0, 0}, 0}, reader = {{0, 0}, 0};
  };
  struct Buffer {
    const EmulatedBuffer *buffer;
    std::vector<Piece> pieces;
  };
  std::vector<Buffer> shadows;
  std::map<uintptr_t, GridClock> counters;
};

} // namespace bastile

#endif // BASTILE_LIB_EMULATOR_GRIDSHADOW_H
