//===- EmulatedCounts.cpp - Blocks that wait for each other ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Counters in memory by which the blocks of a grid wait for each other. A
// cluster whose threads only wait for counts lets other clusters run.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/EmulatedCluster.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>

using namespace bastile;
using llvm::Twine;

static constexpr unsigned warpSize = 32;

static uint32_t readCount(const char *address) {
  uint32_t count = 0;
  std::memcpy(&count, address, sizeof(count));
  return count;
}

void EmulatedCluster::pollCount(char *address, uint32_t count, uint32_t site) {
  access(reinterpret_cast<uintptr_t>(address), sizeof(count), sizeof(count),
         EmulatedAccess::Atomic, site);
  while (readCount(address) < count)
    wait(
        {Wait::Count, 0, count, 0, 0, 0, site, {nullptr, 0, nullptr, address}});
  const unsigned warp = running / warpSize;
  for (const auto &[by, step] :
       launch.shadow->released(reinterpret_cast<uintptr_t>(address)))
    if (by.cluster != number)
      clocks.learn(warp, componentOf(by), step);
}

void EmulatedCluster::publishCount(char *address, uint32_t count,
                                   uint32_t site) {
  access(reinterpret_cast<uintptr_t>(address), sizeof(count), sizeof(count),
         EmulatedAccess::Atomic, site);
  if (uint32_t old = readCount(address); count <= old) {
    fail(threadName(running) + " sets a counter to " + Twine(count) + " in " +
         siteName(site) + ", which is no more than it was, " + Twine(old));
    yield();
  }
  std::memcpy(address, &count, sizeof(count));
  // Only who reads this count knows of what was before it.
  const unsigned warp = running / warpSize;
  GridClock &known =
      launch.shadow->released(reinterpret_cast<uintptr_t>(address));
  known.clear();
  for (auto [component, step] : llvm::enumerate(clocks.of(warp)))
    if (step != 0)
      known[originOf(component)] = step;
  clocks.advance(warp);
}

unsigned EmulatedCluster::componentOf(GridComponent by) {
  auto [entry, isNew] = foreign.insert({by, 0});
  if (isNew) {
    entry->second = clocks.addComponent();
    origins[entry->second] = by;
  }
  return entry->second;
}

GridComponent EmulatedCluster::originOf(unsigned component) const {
  auto found = origins.find(component);
  return found == origins.end() ? GridComponent{number, component}
                                : found->second;
}

void EmulatedCluster::noteInGrid(uintptr_t address, uint64_t bytes,
                                 bool isWrite, unsigned component,
                                 uint32_t step, uint32_t site) {
  if (!launch.shadow)
    return;
  // Of accesses within the cluster, nothing is checked here.
  auto knows = [&](const GridShadow::Access &earlier) {
    auto found = foreign.find(earlier.by);
    return earlier.by.cluster == number ||
           (found != foreign.end() && stepOf(clocks.of(running / warpSize),
                                             found->second) >= earlier.step);
  };
  std::optional<GridShadow::Race> race = launch.shadow->note(
      {{number, component}, step}, address, bytes, isWrite, knows);
  if (!race)
    return;
  const std::string other = (launch.cluster == 1 ? "block " : "cluster ") +
                            std::to_string(race->cluster);
  fail("data race on byte " + Twine(race->offset) + " of '" +
       race->buffer->name + "': " + threadName(running) +
       (isWrite ? " writes" : " reads") + " it in " + siteName(site) + ", " +
       other + " " + race->earlier +
       " it before, and no count that was released after that has been "
       "awaited");
}

bool EmulatedCluster::wakeCounts() {
  bool isAwake = false;
  for (Thread &thread : threads) {
    const Wait &wait = thread.wait;
    if (thread.state != Thread::Waiting || wait.kind != Wait::Count ||
        readCount(wait.operands.a) < wait.mask)
      continue;
    thread.state = Thread::Ready;
    isAwake = true;
  }
  return isAwake;
}

bool EmulatedCluster::isWaitingForCounts() const {
  return llvm::any_of(threads, [](const Thread &thread) {
    return thread.state == Thread::Waiting && thread.wait.kind == Wait::Count;
  });
}

std::string EmulatedCluster::describeCounts() const {
  std::string text;
  for (auto [index, thread] : llvm::enumerate(threads)) {
    const Wait &wait = thread.wait;
    if (thread.state != Thread::Waiting || wait.kind != Wait::Count)
      continue;
    text += (text.empty() ? "" : ", ") + threadName(index) + " waits in " +
            siteName(wait.site).str() + " for count " +
            std::to_string(wait.mask) + " of a counter at " +
            std::to_string(readCount(wait.operands.a));
  }
  return where() + ": " + text;
}
