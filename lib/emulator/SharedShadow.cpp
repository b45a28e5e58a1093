//===- SharedShadow.cpp - Data races in shared memory ---------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/SharedShadow.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace bastile;

static constexpr unsigned warpSize = 32;

void SharedShadow::reset(uint64_t bytes, unsigned warps) {
  numWarps = warps;
  shadow.assign(bytes, Byte());
  clocks.assign(numWarps * numWarps, 0);
  arriving.assign(numWarps, 0);
  completed.assign(numWarps, 0);
  for (unsigned warp = 0; warp < numWarps; ++warp)
    clock(warp, warp) = 1;
}

SharedShadow::Access SharedShadow::now(unsigned thread) {
  unsigned warp = thread / warpSize;
  return {clock(warp, warp), static_cast<uint16_t>(thread)};
}

bool SharedShadow::isConcurrent(const Access &access, unsigned thread) {
  if (access.stamp == 0 || access.thread == thread)
    return false;
  unsigned warp = thread / warpSize, other = access.thread / warpSize;
  // A warp learns of another warp's step at a barrier; its own step is over
  // only once the next one has begun.
  if (warp == other)
    return access.stamp == clock(warp, warp);
  return access.stamp > clock(warp, other);
}

std::optional<SharedShadow::Race>
SharedShadow::read(unsigned thread, uint64_t offset, uint64_t bytes) {
  std::optional<Race> race;
  for (uint64_t i = offset; i < offset + bytes; ++i) {
    Byte &byte = shadow[i];
    if (!race && isConcurrent(byte.writer, thread))
      race = Race{"write", byte.writer.thread, i};
    unsigned slot = isConcurrent(byte.readers[0], thread) ? 1 : 0;
    byte.readers[slot] = now(thread);
  }
  return race;
}

std::optional<SharedShadow::Race>
SharedShadow::write(unsigned thread, uint64_t offset, uint64_t bytes) {
  std::optional<Race> race;
  for (uint64_t i = offset; i < offset + bytes; ++i) {
    Byte &byte = shadow[i];
    if (!race && isConcurrent(byte.writer, thread))
      race = Race{"write", byte.writer.thread, i};
    for (const Access &reader : byte.readers)
      if (!race && isConcurrent(reader, thread))
        race = Race{"read", reader.thread, i};
    byte.writer = now(thread);
  }
  return race;
}

void SharedShadow::synchronizeWarps(llvm::ArrayRef<unsigned> warps) {
  for (unsigned component = 0; component < numWarps; ++component) {
    uint32_t latest = 0;
    for (unsigned warp : warps)
      latest = std::max(latest, clock(warp, component));
    for (unsigned warp : warps)
      clock(warp, component) = latest;
  }
  for (unsigned warp : warps)
    ++clock(warp, warp);
}

void SharedShadow::arriveAtCluster(unsigned warp) { release(warp, arriving); }

void SharedShadow::completeClusterPhase() {
  completed.swap(arriving);
  std::fill(arriving.begin(), arriving.end(), 0);
}

void SharedShadow::leaveCluster(unsigned warp) { acquire(warp, completed); }

void SharedShadow::release(unsigned warp, std::vector<uint32_t> &known) {
  known.resize(numWarps);
  for (unsigned component = 0; component < numWarps; ++component)
    known[component] = std::max(known[component], clock(warp, component));
  ++clock(warp, warp);
}

void SharedShadow::acquire(unsigned warp, llvm::ArrayRef<uint32_t> known) {
  for (auto [component, step] : llvm::enumerate(known))
    clock(warp, component) = std::max(clock(warp, component), step);
}
