//===- DiskCacheState.h - The state of a cache ------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_CACHE_DISKCACHESTATE_H
#define BASTILE_RUNTIME_CACHE_DISKCACHESTATE_H

#include "bastile/runtime/DiskCache.h"
#include "runtime/cache/CacheFolder.h"
#include "runtime/cache/CacheLock.h"
#include "runtime/cache/CacheMemory.h"
#include "runtime/cache/CacheRoom.h"

#include <array>
#include <atomic>
#include <optional>

namespace bastile::runtime {

class DiskCache::State {
public:
  explicit State(CacheOptions options)
      : options(std::move(options)), room(this->options.sizeLimit) {}

  /// The entry of `key` on the disk, or null. Takes no lock.
  EntryPointer read(const CacheKey &key);

  /// Waits until `lock` holds the right to create the entry of `key` on the
  /// disk, and returns null; or returns the entry as soon as another process
  /// has stored it. After a warning, it may also return null without the lock.
  EntryPointer acquire(const CacheKey &key, CacheLock &lock);

  /// Keeps `entry` in memory, and on the disk if possible.
  EntryPointer keep(const CacheKey &key, CacheEntry entry);

  /// Writes the file of an entry.
  Error write(const CacheFolder &folder, const std::string &hash,
              const std::string &bytes);

  /// Removes the damaged entry of `hash` unless somebody has replaced it or is
  /// about to. Returns the damage, if the entry was removed or cannot be.
  std::optional<CacheDamage> drop(const CacheFolder &folder,
                                  const std::string &hash);

  const CacheOptions options;
  CacheMemory memory;

private:
  /// Warnings that are given only once.
  enum Warning : uint8_t {
    DiskUnusable,
    NoLocks,
    NoPatience,
    NotKept,
    WarningCount
  };
  void warnOnce(Warning warning, const std::string &message);
  void warnMemoryOnly(const std::string &reason);

  std::optional<CacheFolder> openForReading();
  std::optional<CacheFolder> openForWriting();
  CacheReading readEntry(const CacheFolder &folder, const CacheKey &key);
  std::optional<CacheDamage> dropLocked(const CacheFolder &folder,
                                        const std::string &hash);
  void dropWithWarning(const CacheFolder &folder, const CacheKey &key);
  bool writeOrWarn(const CacheKey &key, const CacheEntry &entry);

  CacheRoom room;
  std::array<std::atomic<bool>, WarningCount> warned = {};
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_CACHE_DISKCACHESTATE_H
