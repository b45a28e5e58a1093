//===- CacheRoom.h - Keeping a cache within its size ------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Listing a folder of thousands of entries takes milliseconds, so that not
// every entry written causes one. The folder is listed for the first entry of a
// process, and again when the entries written since may have exceeded the
// limit, or amount to 1/64 of it.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_CACHE_CACHEROOM_H
#define BASTILE_RUNTIME_CACHE_CACHEROOM_H

#include "runtime/cache/CacheFolder.h"

#include <atomic>
#include <cstdint>
#include <vector>

namespace bastile::runtime {

/// Removes temporary files of killed writers.
///
/// A writer holds the lock of its entry, so a temporary file whose lock is free
/// has lost its writer. Such a file is left for some seconds in case a writer
/// went on without the lock, and for an hour where there are no locks.
void removeLeftovers(const CacheFolder &folder,
                     const std::vector<CacheFileInfo> &files);

class CacheRoom {
public:
  explicit CacheRoom(uint64_t limit) : limit(limit) {}

  /// To be called after `bytes` have been written to `folder`. Removes entries
  /// if the folder is too large, those unused for the longest time first.
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
