//===- SharedShadow.h - Data races in shared memory -------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Remembers for each byte of an emulated cluster's shared memory which threads
// last read and wrote it, and tells whether a barrier lies between two
// accesses.
//
// Order is kept by vector clocks with one component for each warp: barriers
// take whole warps, and two lanes of one warp are ordered by a step of the
// warp's own component.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_EMULATOR_SHAREDSHADOW_H
#define BASTILE_LIB_EMULATOR_SHAREDSHADOW_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <optional>
#include <vector>

namespace bastile {

class SharedShadow {
public:
  struct Race {
    /// The access of the other thread: "read" or "write".
    const char *earlier;
    unsigned otherThread;
    uint64_t offset;
  };

  /// Forgets all accesses, for a new block.
  void reset(uint64_t bytes, unsigned numWarps);

  /// Notes an access; returns the first byte in a race with another thread, if
  /// any.
  std::optional<Race> read(unsigned thread, uint64_t offset, uint64_t bytes);
  std::optional<Race> write(unsigned thread, uint64_t offset, uint64_t bytes);

  /// Notes that the lanes of one warp have met, or all threads of several
  /// warps.
  void synchronizeWarp(unsigned warp) { ++clock(warp, warp); }
  void synchronizeWarps(llvm::ArrayRef<unsigned> warps);

  /// The barrier of a cluster in two steps: a warp that leaves after a phase
  /// has ended knows the accesses of all warps before they arrived in it,
  /// unless an arrival was relaxed, and none since.
  void arriveAtCluster(unsigned warp);
  void completeClusterPhase();
  void leaveCluster(unsigned warp);

  /// Adds the accesses of a warp so far to `known`, for the warps that acquire
  /// it.
  void release(unsigned warp, std::vector<uint32_t> &known);
  void acquire(unsigned warp, llvm::ArrayRef<uint32_t> known);

private:
  struct Access {
    uint32_t stamp = 0; // 0: never
    uint16_t thread = 0;
  };
  struct Byte {
    Access writer;
    // Two readers that are not ordered: at least one of them is not the thread
    // that writes next.
    Access readers[2];
  };

  uint32_t &clock(unsigned warp, unsigned component) {
    return clocks[warp * numWarps + component];
  }
  /// Whether `access` may happen at the same time as an access of `thread` now.
  bool isConcurrent(const Access &access, unsigned thread);
  Access now(unsigned thread);

  std::vector<Byte> shadow;
  std::vector<uint32_t> clocks;
  // The accesses known to the warps that arrive in this phase, and in the one
  // before.
  std::vector<uint32_t> arriving, completed;
  unsigned numWarps = 0;
};

} // namespace bastile

#endif // BASTILE_LIB_EMULATOR_SHAREDSHADOW_H
