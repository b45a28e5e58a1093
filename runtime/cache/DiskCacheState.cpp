//===- DiskCacheState.cpp - A cache's disk and its failures ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/cache/DiskCacheState.h"
#include "runtime/Text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

using namespace bastile::runtime;

//===----------------------------------------------------------------------===//
// Warnings
//===----------------------------------------------------------------------===//

void DiskCache::State::warnOnce(Warning warning, const std::string &message) {
  if (!warned[warning].exchange(true))
    options.warn(message);
}

void DiskCache::State::warnMemoryOnly(const std::string &reason) {
  warnOnce(DiskUnusable,
           reason + "; kernels compiled from here on are kept in memory only");
}

static std::string describeDrop(const CacheFolder &folder,
                                const CacheDamage &damage) {
  return concat("the cache entry '", folder.pathOf(damage.file),
                damage.removed ? "' is dropped and compiled again: "
                               : "' is damaged and cannot be removed: ",
                damage.problem);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

std::optional<CacheFolder> DiskCache::State::openForReading() {
  if (options.folder.empty())
    return std::nullopt;
  Expected<std::optional<CacheFolder>> folder =
      CacheFolder::open(options.folder);
  if (folder)
    return std::move(*folder);
  warnMemoryOnly(folder.takeError().message());
  return std::nullopt;
}

CacheReading DiskCache::State::readEntry(const CacheFolder &folder,
                                         const CacheKey &key) {
  CacheReading reading = folder.read(key.hash());
  // Two keys with the same hash replace each other on the disk.
  if (reading.contents && !(reading.contents->key.parts() == key.parts()))
    reading.state = CacheReading::State::Missing;
  if (reading.state == CacheReading::State::Unreadable)
    warnMemoryOnly(concat("the cache entry '",
                          folder.pathOf(cacheFileName(key.hash())),
                          "' is not used: ", reading.problem));
  return reading;
}

/// The entry that was read, if it is intact.
static DiskCache::EntryPointer takeEntry(CacheReading &reading) {
  if (reading.state != CacheReading::State::Intact)
    return nullptr;
  return std::make_shared<const CacheEntry>(std::move(reading.contents->entry));
}

DiskCache::EntryPointer DiskCache::State::read(const CacheKey &key) {
  std::optional<CacheFolder> folder = openForReading();
  if (!folder)
    return nullptr;
  CacheReading reading = readEntry(*folder, key);
  if (reading.state == CacheReading::State::Bad)
    dropWithWarning(*folder, key);
  EntryPointer entry = takeEntry(reading);
  if (!entry)
    return nullptr;
  folder->markUsed(key.hash(), reading);
  memory.remember(key.hash(), entry, /*onDisk=*/true);
  return entry;
}

//===----------------------------------------------------------------------===//
// Dropping
//===----------------------------------------------------------------------===//

std::optional<CacheDamage> DiskCache::State::drop(const CacheFolder &folder,
                                                  const std::string &hash) {
  CacheLock lock;
  // Another holder of the lock sees the damage too.
  if (lock.tryEntry(folder, hash) == CacheLock::Outcome::Busy)
    return std::nullopt;
  return dropLocked(folder, hash);
}

std::optional<CacheDamage>
DiskCache::State::dropLocked(const CacheFolder &folder,
                             const std::string &hash) {
  CacheReading reading = folder.read(hash);
  if (reading.state != CacheReading::State::Bad)
    return std::nullopt;
  CacheDamage damage = {cacheFileName(hash), reading.problem,
                        folder.remove(cacheFileName(hash))};
  if (!damage.removed)
    damage.problem += concat(" (", std::strerror(errno), ")");
  return damage;
}

void DiskCache::State::dropWithWarning(const CacheFolder &folder,
                                       const CacheKey &key) {
  std::optional<CacheDamage> damage = drop(folder, key.hash());
  if (!damage)
    return;
  if (damage->removed)
    options.warn(describeDrop(folder, *damage));
  else
    warnMemoryOnly(describeDrop(folder, *damage));
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// The folder for writing; nothing once the disk has failed: the failure of one
/// entry would repeat for the next, after as much work.
std::optional<CacheFolder> DiskCache::State::openForWriting() {
  if (options.folder.empty() || warned[DiskUnusable])
    return std::nullopt;
  Expected<CacheFolder> folder = CacheFolder::create(options.folder);
  if (folder)
    return std::move(*folder);
  warnMemoryOnly(folder.takeError().message());
  return std::nullopt;
}

DiskCache::EntryPointer DiskCache::State::acquire(const CacheKey &key,
                                                  CacheLock &lock) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + options.patience;
  std::chrono::microseconds pause(500);
  for (;; pause = std::min(2 * pause, std::chrono::microseconds(20000))) {
    std::optional<CacheFolder> folder = openForWriting();
    if (!folder)
      return nullptr;
    CacheLock::Outcome outcome = lock.tryEntry(*folder, key.hash());
    if (outcome == CacheLock::Outcome::Unwritable) {
      warnMemoryOnly(lock.problem());
      return nullptr;
    }
    if (outcome == CacheLock::Outcome::Unsupported)
      warnOnce(NoLocks, lock.problem() +
                            "; processes that start at once may compile the "
                            "same kernels");
    // The last holder of the lock may have stored the entry.
    CacheReading reading = readEntry(*folder, key);
    if (EntryPointer entry = takeEntry(reading)) {
      lock.release();
      memory.remember(key.hash(), entry, /*onDisk=*/true);
      return entry;
    }
    if (outcome != CacheLock::Outcome::Busy)
      return nullptr;
    if (Clock::now() >= deadline) {
      warnOnce(NoPatience,
               concat("another process has been compiling the cache entry '",
                      folder->pathOf(cacheFileName(key.hash())), "' for ",
                      options.patience.count(),
                      " ms and may have stopped: it is compiled here as well"));
      return nullptr;
    }
    std::this_thread::sleep_for(pause);
  }
}

Error DiskCache::State::write(const CacheFolder &folder,
                              const std::string &hash,
                              const std::string &bytes) {
  if (Error error = folder.write(hash, bytes))
    return error;
  room.noteWritten(folder, bytes.size());
  return Error::success();
}

bool DiskCache::State::writeOrWarn(const CacheKey &key,
                                   const CacheEntry &entry) {
  std::optional<CacheFolder> folder = openForWriting();
  if (!folder)
    return false;
  std::string bytes = encodeCacheEntry(key, entry);
  if (bytes.size() > std::min(options.sizeLimit, maxCacheEntryBytes)) {
    warnOnce(NotKept,
             concat("the kernel '", entry.name, "' takes ", bytes.size(),
                    " bytes, more than the cache folder "
                    "may hold, and is kept in memory only"));
    return false;
  }
  if (Error error = write(*folder, key.hash(), bytes)) {
    warnMemoryOnly(error.message());
    return false;
  }
  return true;
}

DiskCache::EntryPointer DiskCache::State::keep(const CacheKey &key,
                                               CacheEntry entry) {
  bool onDisk = writeOrWarn(key, entry);
  auto pointer = std::make_shared<const CacheEntry>(std::move(entry));
  memory.remember(key.hash(), pointer, onDisk);
  return pointer;
}
