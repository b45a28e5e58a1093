//===- CacheFolder.h - The folder that holds a cache ------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Files are named by their key's hash:
//
//   <hash>.kernel              an entry
//   <hash>.<random>.tmp        an entry that is being written
//   lock                       the file whose bytes CacheLock.h locks
//
// All other files in the folder are left alone. Every file is reached from the
// open folder, so that the folder that was checked is the one that is used. The
// folder is opened for each use, so that it may be removed or moved at any
// time.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_CACHE_CACHEFOLDER_H
#define BASTILE_RUNTIME_CACHE_CACHEFOLDER_H

#include "bastile/runtime/CacheEntry.h"
#include "runtime/FileDescriptor.h"

#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <vector>

namespace bastile::runtime {

/// A larger file is no entry; it is not even read.
constexpr uint64_t maxCacheEntryBytes = uint64_t(1) << 30;

/// The name of the file of the entry with this hash.
std::string cacheFileName(const std::string &hash);

/// A file of the cache as the folder lists it.
struct CacheFileInfo {
  std::string file;
  std::string hash;
  bool temporary = false;
  uint64_t bytes = 0;
  timespec lastUsed = {};
};

/// The outcome of reading an entry.
struct CacheReading {
  enum class State : uint8_t {
    Missing,
    Intact,
    /// The file is not what was once written under this name: it is to be
    /// dropped.
    Bad,
    /// The system failed to read the file, whose contents are unknown.
    Unreadable
  };
  State state = State::Missing;
  /// Why an entry is Bad or Unreadable.
  std::string problem;
  timespec lastUsed = {};
  /// The contents of an Intact entry, if all of it was read.
  std::optional<CacheEntryFile> contents;
  /// The header of an Intact entry, if only that was read.
  std::optional<CacheEntryHeader> header;
  /// The bytes of the file of an Intact entry, if all of it was read.
  std::string bytes;
};

class CacheFolder {
public:
  /// The folder at `path`, or nothing if there is none. Refuses a folder to
  /// which others may write, as its contents will be run.
  static Expected<std::optional<CacheFolder>> open(const std::string &path);

  /// The folder at `path`; creates it and its parents where they are missing.
  static Expected<CacheFolder> create(const std::string &path);

  int descriptor() const { return folder.get(); }
  std::string pathOf(const std::string &file) const;

  /// Reads the entry of `hash`.
  CacheReading read(const std::string &hash) const;

  /// Notes, at most once a day, that the entry of `hash`, just read, was used.
  void markUsed(const std::string &hash, const CacheReading &reading) const;

  /// Reads what the header of the entry of `hash` says.
  CacheReading readHeader(const std::string &hash) const;

  /// Puts `bytes` in place as the entry of `hash`, all of it or nothing.
  Error write(const std::string &hash, const std::string &bytes) const;

  /// The entries and temporary files, in no order.
  Expected<std::vector<CacheFileInfo>> list() const;

  /// Removes `file`; false if it was not there any more or could not be
  /// removed.
  bool remove(const std::string &file) const;

private:
  CacheFolder(FileDescriptor folder, std::string path)
      : folder(std::move(folder)), path(std::move(path)) {}

  FileDescriptor openEntry(const std::string &hash, uint64_t &size,
                           CacheReading &reading) const;

  FileDescriptor folder;
  std::string path;
};

/// Why a file is not to be trusted: it is no regular file, or somebody else may
/// have written to it. Nothing if only the user may have.
std::optional<std::string> findForeign(const struct stat &status);

/// The hash of the entry whose file is called `file`; nothing for other names.
std::optional<std::string> parseCacheFileName(const std::string &file);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_CACHE_CACHEFOLDER_H
