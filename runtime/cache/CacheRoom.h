//===- CacheRoom.h - Keeping a cache within its size ------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Listing a folder of thousands of entries takes milliseconds, so it is not
// done for every entry that is written, but for the first of a process, and
// again when those written since may have gone over the limit, or are 1/64 of
// it.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_CACHE_CACHEROOM_H
#define BASTILE_RUNTIME_CACHE_CACHEROOM_H

#include "runtime/cache/CacheFolder.h"

#include <atomic>
#include <cstdint>
#include <vector>

namespace bastile::runtime {

/// Removes what killed writers have left.
///
/// A writer holds the lock of its entry, so a temporary file whose lock is free
/// has lost its writer. Seconds of grace are for a writer that went on without
/// the lock; where there are no locks, an hour is.
void removeLeftovers(const CacheFolder &folder,
                     const std::vector<CacheFileInfo> &files);

class CacheRoom {
public:
  explicit CacheRoom(uint64_t limit) : limit(limit) {}

  /// To be called when `bytes` have been written to `folder`. Removes entries
  /// if need be, those first that have not been used for the longest time.
  void noteWritten(const CacheFolder &folder, uint64_t bytes);

private:
  void makeRoom(const CacheFolder &folder);

  const uint64_t limit;
  /// What the folder held when it was last listed.
  std::atomic<uint64_t> listed = UINT64_MAX;
  std::atomic<uint64_t> writtenSince = 0;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_CACHE_CACHEROOM_H
