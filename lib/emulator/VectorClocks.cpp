//===- VectorClocks.cpp - What warps know of each other -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/VectorClocks.h"
#include <algorithm>

using namespace bastile;

/// Makes `into` know all that `from` knows.
static void join(Clock &into, llvm::ArrayRef<uint32_t> from) {
  if (into.size() < from.size())
    into.resize(from.size());
  for (size_t component = 0; component < from.size(); ++component)
    into[component] = std::max(into[component], from[component]);
}

void VectorClocks::reset(unsigned numWarps) {
  numComponents = numWarps;
  clocks.assign(numWarps, Clock(numWarps, 0));
  for (unsigned warp = 0; warp < numWarps; ++warp)
    clocks[warp][warp] = 1;
}

void VectorClocks::raise(Clock &clock, unsigned component, uint32_t step) {
  if (clock.size() <= component)
    clock.resize(component + 1);
  clock[component] = std::max(clock[component], step);
}

Clock VectorClocks::common(llvm::ArrayRef<unsigned> warps) const {
  Clock known = clocks[warps.front()];
  for (unsigned warp : warps.drop_front())
    for (size_t component = 0; component < known.size(); ++component)
      known[component] =
          std::min(known[component], stepOf(clocks[warp], component));
  return known;
}

void VectorClocks::synchronize(llvm::ArrayRef<unsigned> warps) {
  Clock known;
  for (unsigned warp : warps)
    join(known, clocks[warp]);
  for (unsigned warp : warps) {
    clocks[warp] = known;
    advance(warp);
  }
}

void VectorClocks::release(unsigned warp, Clock &known) {
  join(known, clocks[warp]);
  advance(warp);
}

void VectorClocks::acquire(unsigned warp, llvm::ArrayRef<uint32_t> known) {
  join(clocks[warp], known);
}
