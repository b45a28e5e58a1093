//===- DiskCache.h - Compiled kernels, kept across runs ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A folder with one file for each compiled kernel, and a memory in front of it.
// docs/cache.md describes both for users. In short:
//
// - Reading takes no lock: a file appears by being renamed, whole or not at
//   all.
// - Creating an entry takes one: of all threads and processes that need an
//   entry at once, one creates it and the others wait. A killed process leaves
//   no lock behind.
// - A damaged entry is dropped and created again. An entry that cannot be
//   written stays in memory. Neither is an error; each is a warning, given
//   once.
// - A process may fork at any time, also with its threads inside the cache.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_DISKCACHE_H
#define BASTILE_RUNTIME_DISKCACHE_H

#include "bastile/runtime/CacheEntry.h"
#include "bastile/runtime/Error.h"

#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bastile::runtime {

struct CacheOptions {
  using Warn = std::function<void(const std::string &message)>;

  /// The options that the environment asks for (docs/cache.md):
  /// BASTILE_CACHE_DIR or the user's cache folder, and BASTILE_CACHE_SIZE; no
  /// folder if the environment switches the disk off.
  static CacheOptions fromEnvironment(Warn warn = warnOnStderr);

  static void warnOnStderr(const std::string &message);

  /// The path of the cache's folder. If empty, entries are kept in memory only.
  std::string folder;
  /// The most bytes in the folder. Each of several processes that write at once
  /// may exceed it by 1/64 until the next one looks.
  uint64_t sizeLimit = uint64_t(1) << 30;
  /// How long to wait for another process before creating an entry beside it:
  /// the other process may have been stopped.
  std::chrono::milliseconds patience = std::chrono::minutes(5);
  /// Receives warnings, from any thread.
  Warn warn = warnOnStderr;
};

/// An entry of the folder.
struct CacheListing {
  std::string file;
  uint64_t bytes = 0;
  /// When it was last read or written, to the day.
  std::time_t lastUsed = 0;
  /// Why the entry will be dropped, or empty. The fields below are empty then.
  std::string problem;
  std::string name;
  std::vector<CacheKeyPart> parts;
  /// The name and size of each section.
  std::vector<std::pair<std::string, uint64_t>> sections;
};

/// How many entries were checked or removed.
struct CacheCount {
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

/// An entry that differs from what was once written.
struct CacheDamage {
  std::string file;
  std::string problem;
  /// Whether it was removed; if not, the folder cannot be written.
  bool removed = false;
};

struct CacheCheck {
  CacheCount intact;
  std::vector<CacheDamage> damaged;
};

/// May be used by any number of threads.
class DiskCache {
public:
  using EntryPointer = std::shared_ptr<const CacheEntry>;
  using Creator = std::function<Expected<CacheEntry>()>;

  explicit DiskCache(CacheOptions options);
  ~DiskCache();

  const CacheOptions &options() const;

  /// The entry of `key`, or null.
  EntryPointer find(const CacheKey &key);

  /// Makes `entry` the entry of `key`.
  EntryPointer store(const CacheKey &key, CacheEntry entry);

  /// The entry of `key`; calls `create` when there is none. A failure of
  /// `create` is the caller's alone: others who wait for the entry try for
  /// themselves. `create` may ask for other entries.
  Expected<EntryPointer> getOrCreate(const CacheKey &key,
                                     const Creator &create);

  // The functions below serve the command line. They fail where the folder is
  // refused or missing, instead of giving a warning.

  /// The entries of the folder, last used first.
  Expected<std::vector<CacheListing>> list();

  /// Removes all entries, except those being written.
  Expected<CacheCount> clear();

  /// Reads all entries and removes those that are damaged.
  Expected<CacheCheck> verify();

  /// The contents of an entry's file, checked.
  Expected<std::string> exportEntry(const std::string &file);

  /// Checks the contents of an entry's file and puts them in place, if they
  /// belong under the name `file`. False if that entry exists already.
  ///
  /// An archive of entries is for the caller to read and write, in a format
  /// that other programs know; nothing in an entry depends on it.
  Expected<bool> importEntry(const std::string &file, const std::string &bytes);

private:
  class State;
  std::unique_ptr<State> state;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_DISKCACHE_H
