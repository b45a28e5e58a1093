//===- EmulatedMessages.cpp - Messages between blocks, and copies ---------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Data that arrives in shared memory while the program goes on: numbers from
// other blocks of the cluster, which an mbarrier counts, and copies from the
// memory of the grid, for which a thread waits itself.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/EmulatedCluster.h"
#include <cstring>

using namespace bastile;

static constexpr unsigned warpSize = 32;

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void EmulatedCluster::initBarrier(char *address, uint32_t count,
                                  uint32_t site) {
  access(reinterpret_cast<uintptr_t>(address), 8, 8, EmulatedAccess::Atomic,
         site);
  MessageBarrier &barrier = messageBarriers[address];
  if (barrier.component == 0)
    barrier.component = clocks.addComponent();
  barrier.count = barrier.pending = count;
  barrier.phase = barrier.bytes = 0;
  barrier.initializer = running;
  barrier.initStep = clocks.step(running / warpSize);
  barrier.isFenced = false;
  barrier.arriving.clear();
  barrier.completed.clear();
}

EmulatedCluster::MessageBarrier *
EmulatedCluster::findBarrier(char *address, bool isByEngine, uint32_t site) {
  auto found = messageBarriers.find(address);
  if (found == messageBarriers.end()) {
    fail(siteName(site) + " by " + threadName(running) +
         " uses an mbarrier that nobody has initialized");
    return nullptr;
  }
  MessageBarrier &barrier = found->second;
  unsigned warp = running / warpSize;
  unsigned initWarp = barrier.initializer / warpSize;
  bool isKnown = barrier.initializer == running ||
                 (initWarp == warp
                      ? barrier.initStep < clocks.step(warp)
                      : barrier.initStep <= stepOf(clocks.of(warp), initWarp));
  // A fence orders what it follows even ahead of a relaxed arrival.
  isKnown |= barrier.isFenced && arrivals[warp].hasMet;
  if (!isKnown)
    fail(siteName(site) + " by " + threadName(running) +
         " uses an mbarrier that " + threadName(barrier.initializer) +
         " initializes, and no barrier lies in between");
  else if (isByEngine && !barrier.isFenced)
    fail(siteName(site) + " by " + threadName(running) +
         " arrives at an mbarrier that " + threadName(barrier.initializer) +
         " has initialized without a fence after that");
  return failure.empty() ? &barrier : nullptr;
}

void EmulatedCluster::completeMessages(MessageBarrier &barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0)
    return;
  ++barrier.phase;
  barrier.pending = barrier.count;
  barrier.completed.swap(barrier.arriving);
  barrier.arriving.clear();
  VectorClocks::raise(barrier.completed, barrier.component, barrier.copyStep++);
  // Each of these threads checks itself whether its phase has ended.
  for (Thread &thread : threads)
    if (thread.state == Thread::Waiting && thread.wait.kind == Wait::Messages)
      thread.state = Thread::Ready;
}

void EmulatedCluster::expectMessages(char *address, uint32_t arrivals,
                                     uint32_t bytes, uint32_t site) {
  access(reinterpret_cast<uintptr_t>(address), 8, 8, EmulatedAccess::Atomic,
         site);
  if (MessageBarrier *barrier =
          findBarrier(address, /*isByEngine=*/false, site)) {
    if (barrier->pending < arrivals) {
      fail(threadName(running) + " arrives in " + siteName(site) +
           " at an mbarrier at which all have arrived");
    } else {
      barrier->pending -= arrivals;
      barrier->bytes += bytes;
      if (arrivals != 0)
        clocks.release(running / warpSize, barrier->arriving);
      completeMessages(*barrier);
    }
  }
  if (!failure.empty())
    yield();
}

void EmulatedCluster::sendMessage(char *address, uint32_t bits, char *barrierAt,
                                  uint32_t site) {
  access(reinterpret_cast<uintptr_t>(address), 4, 4, EmulatedAccess::Store,
         site);
  access(reinterpret_cast<uintptr_t>(barrierAt), 8, 8, EmulatedAccess::Atomic,
         site);
  std::memcpy(address, &bits, sizeof(bits));
  if (MessageBarrier *barrier =
          findBarrier(barrierAt, /*isByEngine=*/true, site)) {
    barrier->bytes -= sizeof(bits);
    clocks.release(running / warpSize, barrier->arriving);
    completeMessages(*barrier);
  }
  if (!failure.empty())
    yield();
}

void EmulatedCluster::sendUnit(char *address,
                               const std::array<uint32_t, 4> &words,
                               char *barrierAt, uint32_t site) {
  constexpr uint64_t bytes = sizeof(words);
  const auto at = reinterpret_cast<uintptr_t>(address);
  std::optional<SharedPlace> place = placeOf(at);
  std::optional<SharedPlace> barrierPlace =
      placeOf(reinterpret_cast<uintptr_t>(barrierAt));
  if (at % bytes != 0)
    fail(siteName(site) + " by " + threadName(running) +
         " sends to an address that is no multiple of " + llvm::Twine(bytes));
  else if (place && barrierPlace && place->block != barrierPlace->block)
    fail(siteName(site) + " by " + threadName(running) + " sends to block " +
         llvm::Twine(place->block) + ", and tells an mbarrier in block " +
         llvm::Twine(barrierPlace->block));
  else
    arriveBytes(address, barrierAt, bytes, site,
                [&](char *to) { std::memcpy(to, words.data(), bytes); });
  if (!failure.empty())
    yield();
}

void EmulatedCluster::waitForMessages(char *address, uint32_t parity,
                                      uint32_t site) {
  MessageBarrier *barrier = findBarrier(address, /*isByEngine=*/false, site);
  // While the current phase has this parity, the awaited phase has not ended.
  while (barrier && (barrier->phase & 1) == parity) {
    wait({Wait::Messages, 0, parity, 0, 0, 0, site});
    barrier = findBarrier(address, /*isByEngine=*/false, site);
  }
  if (!failure.empty())
    yield();
  clocks.acquire(running / warpSize, barrier->completed);
}

void EmulatedCluster::fenceProxies() {
  shadow.fenceProxies(running);
  fenceBarriers();
}

void EmulatedCluster::fenceBarriers() {
  for (auto &[address, barrier] : messageBarriers)
    barrier.isFenced |= barrier.initializer == running;
}

//===----------------------------------------------------------------------===//
// Copies ahead
//===----------------------------------------------------------------------===//

void EmulatedCluster::startCopy(char *to, char *from, uint32_t bytes,
                                uint32_t sourceBytes, uint32_t site) {
  if (sourceBytes > bytes) {
    fail("copy of " + llvm::Twine(bytes) + " bytes from " +
         llvm::Twine(sourceBytes) + " in " + siteName(site) + " by " +
         threadName(running));
    yield();
  }
  if (sourceBytes > 0)
    access(reinterpret_cast<uintptr_t>(from), sourceBytes, bytes,
           EmulatedAccess::Load, site);
  access(reinterpret_cast<uintptr_t>(to), bytes, bytes, EmulatedAccess::Store,
         site);
  if (auto place = placeOf(reinterpret_cast<uintptr_t>(to)))
    shadow.beginCopy(running, shadowOffset(*place), bytes);
  copies[running].open.push_back({to, from, bytes, sourceBytes, site});
}

void EmulatedCluster::closeCopies() {
  ThreadCopies &own = copies[running];
  own.groups.push_back(std::move(own.open));
  own.open.clear();
}

/// A copy arrives only when a thread waits for it: until then nobody may touch
/// what it writes. Its arrival counts as the thread's access: another thread
/// has to know of it to read what has arrived.
void EmulatedCluster::waitForCopies(uint32_t mostPending) {
  ThreadCopies &own = copies[running];
  while (own.groups.size() > mostPending) {
    for (const Copy &copy : own.groups.front()) {
      if (auto place = placeOf(reinterpret_cast<uintptr_t>(copy.to)))
        shadow.endCopy(shadowOffset(*place), copy.bytes);
      access(reinterpret_cast<uintptr_t>(copy.to), copy.bytes, copy.bytes,
             EmulatedAccess::Store, copy.site);
      std::memcpy(copy.to, copy.from, copy.sourceBytes);
      std::memset(copy.to + copy.sourceBytes, 0, copy.bytes - copy.sourceBytes);
    }
    own.groups.pop_front();
  }
}
