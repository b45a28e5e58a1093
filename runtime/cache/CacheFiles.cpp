//===- CacheFiles.cpp - The files of a cache's folder ---------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Files are not flushed to the medium: after a loss of power, a file may be cut
// off or hold zeros, which its checksum finds like any other damage.
//
//===----------------------------------------------------------------------===//

#include "runtime/Text.h"
#include "runtime/cache/CacheFolder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/stat.h>

using namespace bastile::runtime;

static constexpr std::string_view entrySuffix = ".kernel";
static constexpr std::string_view temporarySuffix = ".tmp";
static constexpr size_t hashSize = 32;

/// How long an entry counts as just used: until then, reading one writes
/// nothing.
static constexpr time_t usedInterval = 24 * 60 * 60;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string bastile::runtime::cacheFileName(const std::string &hash) {
  return hash + std::string(entrySuffix);
}

static bool endsWith(std::string_view text, std::string_view suffix) {
  return text.size() >= suffix.size() &&
         text.substr(text.size() - suffix.size()) == suffix;
}

/// The hash at the beginning of the name `file`, if there is one.
static std::optional<std::string> takeHash(const std::string &file) {
  if (file.find_first_not_of("0123456789abcdef") != hashSize)
    return std::nullopt;
  return file.substr(0, hashSize);
}

std::optional<std::string>
bastile::runtime::parseCacheFileName(const std::string &file) {
  if (file.size() != hashSize + entrySuffix.size() ||
      !endsWith(file, entrySuffix))
    return std::nullopt;
  return takeHash(file);
}

static std::string makeTemporaryName(const std::string &hash) {
  // The random number is the system's, so that a child of fork() does not
  // repeat its parent's. If it cannot be had, the name may be taken, and
  // creating the file fails.
  uint64_t random = 0;
  (void)!getentropy(&random, sizeof(random));
  return concat(hash, '.', std::hex, random, temporarySuffix);
}

static bool isTemporaryName(const std::string &file) {
  return takeHash(file) && file[hashSize] == '.' &&
         endsWith(file, temporarySuffix);
}

std::string CacheFolder::pathOf(const std::string &file) const {
  return path + '/' + file;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static void setBad(CacheReading &reading, std::string problem) {
  reading.state = CacheReading::State::Bad;
  reading.problem = std::move(problem);
}

static void setUnreadable(CacheReading &reading) {
  reading.state = CacheReading::State::Unreadable;
  reading.problem = concat("it cannot be read: ", std::strerror(errno));
}

/// Reads from `file` until `bytes` has `size` bytes. False and `errno` when the
/// system fails; fewer bytes at the end of the file.
static bool readUpTo(int file, std::string &bytes, size_t size) {
  size_t done = bytes.size();
  bytes.resize(size);
  while (done != size) {
    ssize_t count = ::read(file, &bytes[done], size - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return false;
    if (count == 0)
      break;
    done += static_cast<size_t>(count);
  }
  bytes.resize(done);
  return true;
}

static void openFailed(CacheReading &reading) {
  switch (errno) {
  case ENOENT:
    reading.state = CacheReading::State::Missing;
    return;
  case ELOOP:
    return setBad(reading, "it is a symbolic link");
  case EACCES:
  case ENXIO:
    // The file belongs to another user, or is no file but a socket, for
    // example.
    return setBad(reading, concat("it is foreign: ", std::strerror(errno)));
  default:
    return setUnreadable(reading);
  }
}

/// Opens an entry, if nobody but the user can have put it there.
FileDescriptor CacheFolder::openEntry(const std::string &hash, uint64_t &size,
                                      CacheReading &reading) const {
  // Without O_NONBLOCK, a pipe of this name would be waited for.
  FileDescriptor file(openat(descriptor(), cacheFileName(hash).c_str(),
                             O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) {
    openFailed(reading);
    return FileDescriptor();
  }
  struct stat status;
  if (fstat(file.get(), &status) != 0) {
    setUnreadable(reading);
    return FileDescriptor();
  }
  if (std::optional<std::string> problem = findForeign(status)) {
    setBad(reading, std::move(*problem));
    return FileDescriptor();
  }
  size = static_cast<uint64_t>(status.st_size);
  if (size > maxCacheEntryBytes) {
    setBad(reading, concat("it has ", size, " bytes"));
    return FileDescriptor();
  }
  reading.lastUsed = status.st_mtim;
  return file;
}

static const char *const wrongName = "it holds another key than its name says";

CacheReading CacheFolder::read(const std::string &hash) const {
  CacheReading reading;
  uint64_t size = 0;
  FileDescriptor file = openEntry(hash, size, reading);
  if (!file)
    return reading;
  if (!readUpTo(file.get(), reading.bytes, size)) {
    setUnreadable(reading);
    return reading;
  }
  Expected<CacheEntryFile> contents = decodeCacheEntry(reading.bytes);
  if (!contents) {
    setBad(reading, contents.takeError().message());
  } else if (contents->key.hash() != hash) {
    setBad(reading, wrongName);
  } else {
    reading.state = CacheReading::State::Intact;
    reading.contents = std::move(*contents);
  }
  return reading;
}

void CacheFolder::markUsed(const std::string &hash,
                           const CacheReading &reading) const {
  // An entry is read even if the folder cannot be written.
  if (std::time(nullptr) - reading.lastUsed.tv_sec > usedInterval)
    (void)utimensat(descriptor(), cacheFileName(hash).c_str(), nullptr,
                    AT_SYMLINK_NOFOLLOW);
}

CacheReading CacheFolder::readHeader(const std::string &hash) const {
  CacheReading reading;
  uint64_t size = 0;
  FileDescriptor file = openEntry(hash, size, reading);
  if (!file)
    return reading;
  std::string start;
  if (!readUpTo(file.get(), start, cacheEntryPrefixSize)) {
    setUnreadable(reading);
    return reading;
  }
  Expected<uint64_t> end = cacheEntryHeaderEnd(start);
  // The file's size bounds the memory that a damaged length can ask for.
  if (end && !readUpTo(file.get(), start, std::min(*end, size))) {
    setUnreadable(reading);
    return reading;
  }
  Expected<CacheEntryHeader> header = decodeCacheEntryHeader(start, size);
  if (!header) {
    setBad(reading, header.takeError().message());
  } else if (header->key.hash() != hash) {
    setBad(reading, wrongName);
  } else {
    reading.state = CacheReading::State::Intact;
    reading.header = std::move(*header);
  }
  return reading;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Writes all of `bytes`; false and `errno` if not all is written.
static bool writeAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

Error CacheFolder::write(const std::string &hash,
                         const std::string &bytes) const {
  std::string temporary = makeTemporaryName(hash);
  FileDescriptor file(openat(descriptor(), temporary.c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file)
    return makeError("cannot create '", pathOf(temporary),
                     "': ", std::strerror(errno));
  // File systems across a network report a full disk at the end.
  if (writeAll(file.get(), bytes) && file.close() &&
      renameat(descriptor(), temporary.c_str(), descriptor(),
               cacheFileName(hash).c_str()) == 0)
    return Error::success();
  Error error = makeError("cannot write '", pathOf(cacheFileName(hash)),
                          "': ", std::strerror(errno));
  remove(temporary);
  return error;
}

bool CacheFolder::remove(const std::string &file) const {
  return unlinkat(descriptor(), file.c_str(), 0) == 0;
}

//===----------------------------------------------------------------------===//
// Listing
//===----------------------------------------------------------------------===//

Expected<std::vector<CacheFileInfo>> CacheFolder::list() const {
  // fdopendir owns its descriptor, and a duplicate would share its position.
  int copy = openat(descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::unique_ptr<DIR, int (*)(DIR *)> stream(
      copy < 0 ? nullptr : fdopendir(copy), closedir);
  if (!stream)
    return makeError("cannot list the cache folder '", path,
                     "': ", std::strerror(errno));
  std::vector<CacheFileInfo> files;
  while (const dirent *item = readdir(stream.get())) {
    CacheFileInfo info;
    info.file = item->d_name;
    info.temporary = isTemporaryName(info.file);
    if (!info.temporary && !parseCacheFileName(info.file))
      continue;
    info.hash = *takeHash(info.file);
    struct stat status;
    // The file may have been removed since it was listed.
    if (fstatat(descriptor(), item->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    info.bytes = static_cast<uint64_t>(status.st_size);
    info.lastUsed = status.st_mtim;
    files.push_back(std::move(info));
  }
  return files;
}
