//===- CacheLock.h - Who may create an entry --------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A lock is one byte of the file `lock` in the cache's folder, locked for the
// open file (F_OFD_SETLK). So each key has a lock of its own without files that
// pile up, creating an entry may ask for another entry, and the kernel frees
// the locks of a killed process. A child of fork() gives up its share of a lock
// at once; the lock stays its parent's.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_CACHE_CACHELOCK_H
#define BASTILE_RUNTIME_CACHE_CACHELOCK_H

#include "runtime/cache/CacheFolder.h"

#include <cstdint>
#include <string>

namespace bastile::runtime {

/// A lock that is held for as long as the object lives.
class CacheLock {
public:
  enum class Outcome : uint8_t {
    Taken,
    /// Another process or thread holds the lock.
    Busy,
    /// The lock file cannot be opened: the folder cannot be written.
    Unwritable,
    /// The file system has no locks.
    Unsupported
  };

  /// A lock that holds nothing.
  CacheLock() = default;
  CacheLock(const CacheLock &) = delete;
  CacheLock &operator=(const CacheLock &) = delete;
  ~CacheLock() { release(); }

  /// Tries to take the lock of the entry of `hash`, or the one for making room.
  Outcome tryEntry(const CacheFolder &folder, const std::string &hash);
  Outcome tryMakingRoom(const CacheFolder &folder);

  void release();

  /// The reason, after Unwritable and Unsupported.
  const std::string &problem() const { return reason; }

private:
  Outcome tryByte(const CacheFolder &folder, int64_t byte);

  int file = -1;
  /// The process in which `file` was opened, counted by forks.
  unsigned generation = 0;
  std::string reason;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_CACHE_CACHELOCK_H
