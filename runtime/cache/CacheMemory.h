//===- CacheMemory.h - The part of a cache in memory ------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// An entry that is on the disk is kept in memory while somebody uses it; an
// entry that is not on the disk is kept for good.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_CACHE_CACHEMEMORY_H
#define BASTILE_RUNTIME_CACHE_CACHEMEMORY_H

#include "bastile/runtime/CacheEntry.h"
#include "bastile/runtime/Error.h"
#include "runtime/cache/ForkHook.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>

namespace bastile::runtime {

class CacheMemory {
public:
  using EntryPointer = std::shared_ptr<const CacheEntry>;

  /// The right to create the entry of a key, which one thread at a time has.
  class Claim {
  public:
    Claim() = default;
    Claim(const Claim &) = delete;
    Claim &operator=(const Claim &) = delete;
    ~Claim();

  private:
    friend class CacheMemory;
    CacheMemory *memory = nullptr;
    std::string hash;
    unsigned generation = 0;
  };

  /// The entry of `hash`, or null.
  EntryPointer find(const std::string &hash);

  /// The entry of `hash`; or null, when `claim` is to create it. Waits while
  /// another thread has the claim.
  Expected<EntryPointer> findOrClaim(const std::string &hash, Claim &claim);

  void remember(const std::string &hash, const EntryPointer &entry,
                bool onDisk);

  /// Forgets all entries.
  void clear();

private:
  struct Remembered {
    std::weak_ptr<const CacheEntry> entry;
    /// Keeps an entry that the disk does not have.
    EntryPointer owner;
  };

  EntryPointer findLocked(const std::string &hash);
  void resetInChild();

  std::mutex mutex;
  std::unordered_map<std::string, Remembered> entries;
  std::unordered_map<std::string, std::thread::id> claims;
  std::unique_ptr<std::condition_variable> claimReleased =
      std::make_unique<std::condition_variable>();
  /// Counts forks: a child has none of its parent's claims.
  unsigned generation = 0;
  ForkHook hook{mutex, [this] { resetInChild(); }};
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_CACHE_CACHEMEMORY_H
