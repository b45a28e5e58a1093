//===- CacheManagement.cpp - Looking after a cache's folder ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/Text.h"
#include "runtime/cache/DiskCacheState.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

using namespace bastile::runtime;

static Error makeNoFolderError() {
  return Error("the kernel cache has no folder: it is switched off by "
               "BASTILE_CACHE, BASTILE_CACHE_DIR or BASTILE_CACHE_SIZE, or "
               "there is no home folder");
}

/// The cache's folder, or nothing if none has been created yet.
static Expected<std::optional<CacheFolder>>
openFolder(const CacheOptions &options) {
  if (options.folder.empty())
    return makeNoFolderError();
  return CacheFolder::open(options.folder);
}

namespace {
/// A folder and its files; no files if there is no folder.
struct CacheContents {
  std::optional<CacheFolder> folder;
  std::vector<CacheFileInfo> files;
};
} // namespace

static Expected<CacheContents> readContents(const CacheOptions &options) {
  Expected<std::optional<CacheFolder>> folder = openFolder(options);
  if (!folder)
    return folder.takeError();
  CacheContents contents = {std::move(*folder), {}};
  if (!contents.folder)
    return contents;
  Expected<std::vector<CacheFileInfo>> files = contents.folder->list();
  if (!files)
    return files.takeError();
  contents.files = std::move(*files);
  return contents;
}

static CacheListing describeEntry(const CacheFolder &folder,
                                  const CacheFileInfo &info) {
  CacheListing listing;
  listing.file = info.file;
  listing.bytes = info.bytes;
  listing.lastUsed = info.lastUsed.tv_sec;
  CacheReading reading = folder.readHeader(info.hash);
  listing.problem = reading.problem;
  if (!reading.header)
    return listing;
  listing.name = reading.header->name;
  listing.parts = reading.header->key.parts();
  listing.sections = std::move(reading.header->sections);
  return listing;
}

Expected<std::vector<CacheListing>> DiskCache::list() {
  Expected<CacheContents> contents = readContents(state->options);
  if (!contents)
    return contents.takeError();
  auto &[folder, files] = *contents;
  std::vector<CacheListing> listings;
  for (const CacheFileInfo &info : files)
    if (!info.temporary)
      listings.push_back(describeEntry(*folder, info));
  std::sort(listings.begin(), listings.end(),
            [](const CacheListing &a, const CacheListing &b) {
              return a.lastUsed != b.lastUsed ? a.lastUsed > b.lastUsed
                                              : a.file < b.file;
            });
  return listings;
}

Expected<CacheCount> DiskCache::clear() {
  Expected<CacheContents> contents = readContents(state->options);
  if (!contents)
    return contents.takeError();
  auto &[folder, files] = *contents;
  state->memory.clear();
  CacheCount removed;
  for (const CacheFileInfo &info : files) {
    if (info.temporary)
      continue;
    if (folder->remove(info.file)) {
      ++removed.entries;
      removed.bytes += info.bytes;
    } else if (errno != ENOENT) {
      return makeError("cannot remove '", folder->pathOf(info.file),
                       "': ", std::strerror(errno));
    }
  }
  if (folder)
    removeLeftovers(*folder, files);
  return removed;
}

Expected<CacheCheck> DiskCache::verify() {
  Expected<CacheContents> contents = readContents(state->options);
  if (!contents)
    return contents.takeError();
  auto &[folder, files] = *contents;
  CacheCheck check;
  for (const CacheFileInfo &info : files) {
    if (info.temporary)
      continue;
    CacheReading reading = folder->read(info.hash);
    switch (reading.state) {
    case CacheReading::State::Missing:
      break;
    case CacheReading::State::Intact:
      ++check.intact.entries;
      check.intact.bytes += info.bytes;
      break;
    case CacheReading::State::Bad:
      if (std::optional<CacheDamage> damage = state->drop(*folder, info.hash))
        check.damaged.push_back(std::move(*damage));
      break;
    case CacheReading::State::Unreadable:
      check.damaged.push_back({info.file, reading.problem, /*removed=*/false});
      break;
    }
  }
  return check;
}

/// The hash in the name `file` of an entry's file.
static Expected<std::string> parseName(const std::string &file) {
  if (std::optional<std::string> hash = parseCacheFileName(file))
    return *hash;
  return makeError("'", file, "' is not the name of a cache entry");
}

Expected<std::string> DiskCache::exportEntry(const std::string &file) {
  Expected<std::string> hash = parseName(file);
  if (!hash)
    return hash.takeError();
  Expected<std::optional<CacheFolder>> folder = openFolder(state->options);
  if (!folder)
    return folder.takeError();
  CacheReading reading;
  if (*folder)
    reading = (*folder)->read(*hash);
  if (reading.state == CacheReading::State::Intact)
    return std::move(reading.bytes);
  if (reading.state == CacheReading::State::Missing)
    return makeError("there is no cache entry '", file, "'");
  return makeError("the cache entry '", file,
                   "' is not exported: ", reading.problem);
}

Expected<bool> DiskCache::importEntry(const std::string &file,
                                      const std::string &bytes) {
  auto reject = [&](const std::string &reason) {
    return makeError("the cache entry '", file, "' is not imported: ", reason);
  };
  Expected<std::string> hash = parseName(file);
  if (!hash)
    return hash.takeError();
  Expected<CacheEntryFile> contents = decodeCacheEntry(bytes);
  if (!contents)
    return reject(contents.takeError().message());
  if (contents->key.hash() != *hash)
    return reject("it holds another key than its name says");
  if (bytes.size() > std::min(state->options.sizeLimit, maxCacheEntryBytes))
    return reject(concat("it has ", bytes.size(),
                         " bytes, more than the cache folder may hold"));
  if (state->options.folder.empty())
    return makeNoFolderError();
  Expected<CacheFolder> folder = CacheFolder::create(state->options.folder);
  if (!folder)
    return folder.takeError();
  if (folder->read(*hash).state == CacheReading::State::Intact)
    return false;
  CacheLock lock;
  // If another process creates the entry now, the two are equal.
  (void)lock.tryEntry(*folder, *hash);
  if (Error error = state->write(*folder, *hash, bytes))
    return error;
  return true;
}
