//===- CacheRoom.cpp - Keeping a cache within its size --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/cache/CacheRoom.h"
#include "runtime/cache/CacheLock.h"

#include <algorithm>
#include <ctime>

using namespace bastile::runtime;

static constexpr std::time_t graceSeconds = 10;
static constexpr std::time_t abandonedSeconds = 60 * 60;

static bool isAbandoned(const CacheFolder &folder, const CacheFileInfo &file) {
  std::time_t age = std::time(nullptr) - file.lastUsed.tv_sec;
  if (age > abandonedSeconds)
    return true;
  CacheLock lock;
  return age > graceSeconds &&
         lock.tryEntry(folder, file.hash) == CacheLock::Outcome::Taken;
}

void bastile::runtime::removeLeftovers(
    const CacheFolder &folder, const std::vector<CacheFileInfo> &files) {
  for (const CacheFileInfo &file : files)
    if (file.temporary && isAbandoned(folder, file))
      folder.remove(file.file);
}

static bool usedBefore(const CacheFileInfo &a, const CacheFileInfo &b) {
  if (a.lastUsed.tv_sec != b.lastUsed.tv_sec)
    return a.lastUsed.tv_sec < b.lastUsed.tv_sec;
  return a.lastUsed.tv_nsec < b.lastUsed.tv_nsec;
}

/// Removes the oldest of `entries` until at most `goal` bytes are left, but
/// never the last. Returns how many bytes are left.
static uint64_t removeOldest(const CacheFolder &folder,
                             std::vector<CacheFileInfo> entries, uint64_t held,
                             uint64_t goal) {
  std::sort(entries.begin(), entries.end(), usedBefore);
  for (size_t i = 0; i + 1 < entries.size() && held > goal; ++i) {
    folder.remove(entries[i].file);
    held -= entries[i].bytes;
  }
  return held;
}

void CacheRoom::noteWritten(const CacheFolder &folder, uint64_t bytes) {
  uint64_t since = writtenSince += bytes;
  uint64_t before = listed;
  if (before > limit || since > limit - before || since > limit / 64)
    makeRoom(folder);
}

void CacheRoom::makeRoom(const CacheFolder &folder) {
  CacheLock lock;
  // One process at a time makes room; a process that finds another one at work
  // looks again next time.
  if (lock.tryMakingRoom(folder) == CacheLock::Outcome::Busy)
    return;
  Expected<std::vector<CacheFileInfo>> files = folder.list();
  if (!files)
    return;
  removeLeftovers(folder, *files);
  uint64_t held = 0;
  std::vector<CacheFileInfo> entries;
  for (CacheFileInfo &file : *files) {
    held += file.bytes;
    if (!file.temporary)
      entries.push_back(std::move(file));
  }
  // Some extra room is made, so that not every entry written lists the folder
  // anew.
  if (held > limit)
    held = removeOldest(folder, std::move(entries), held, limit - limit / 8);
  listed = held;
  writtenSince = 0;
}
