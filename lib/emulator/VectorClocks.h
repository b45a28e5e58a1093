//===- VectorClocks.h - What warps know of each other -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The order of events in an emulated cluster. A component of a clock counts the
// steps of one that accesses memory: of a warp, or of an engine that works
// beside the warps, such as the copies that one mbarrier counts. The clock of a
// warp says up to which step of each component the warp knows everything to
// have happened.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_EMULATOR_VECTORCLOCKS_H
#define BASTILE_LIB_EMULATOR_VECTORCLOCKS_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <vector>

namespace bastile {

/// Steps by component; components behind the end are at step 0, of which
/// everybody knows.
using Clock = std::vector<uint32_t>;

/// The step of a component in a clock.
inline uint32_t stepOf(llvm::ArrayRef<uint32_t> clock, unsigned component) {
  return component < clock.size() ? clock[component] : 0;
}

class VectorClocks {
public:
  /// Starts anew, with a component for each warp.
  void reset(unsigned numWarps);

  /// Adds a component for an engine; its first step is 1.
  unsigned addComponent() { return numComponents++; }

  unsigned warps() const { return clocks.size(); }
  llvm::ArrayRef<uint32_t> of(unsigned warp) const { return clocks[warp]; }
  uint32_t step(unsigned warp) const { return clocks[warp][warp]; }
  /// Ends the warp's step: what it does from now on is a later event.
  void advance(unsigned warp) { ++clocks[warp][warp]; }
  /// Lets a warp know a component up to `step`.
  void learn(unsigned warp, unsigned component, uint32_t step) {
    raise(clocks[warp], component, step);
  }
  static void raise(Clock &clock, unsigned component, uint32_t step);

  /// What each of several warps knows.
  Clock common(llvm::ArrayRef<unsigned> warps) const;

  /// Notes that all threads of several warps have met.
  void synchronize(llvm::ArrayRef<unsigned> warps);

  /// Adds what a warp knows to `known`, for the warps that acquire it.
  void release(unsigned warp, Clock &known);
  void acquire(unsigned warp, llvm::ArrayRef<uint32_t> known);

private:
  std::vector<Clock> clocks;
  unsigned numComponents = 0;
};

} // namespace bastile

#endif // BASTILE_LIB_EMULATOR_VECTORCLOCKS_H
