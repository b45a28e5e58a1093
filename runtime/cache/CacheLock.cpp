//===- CacheLock.cpp - Who may create an entry ----------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/cache/CacheLock.h"
#include "runtime/Text.h"
#include "runtime/cache/ForkHook.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <unistd.h>
#include <utility>

using namespace bastile::runtime;

static constexpr const char *lockFileName = "lock";

namespace {

/// The lock files that this process has open. A child of fork() closes its
/// copies, as they would keep the parent's locks alive after the parent.
struct OpenLockFiles {
  std::mutex mutex;
  std::set<int> files;
  unsigned generation = 0;
  ForkHook hook{mutex, [this] {
                  for (int file : files)
                    ::close(file);
                  files.clear();
                  ++generation;
                }};
};

} // namespace

/// Registries are never destroyed: locks may be released while the process
/// exits.
static OpenLockFiles &getOpenLockFiles() {
  static OpenLockFiles &files = *new OpenLockFiles;
  return files;
}

/// Locks or unlocks one byte of `file`; false and `errno` on failure.
static bool setLock(int file, short type, int64_t byte, int64_t count) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = count;
  return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

CacheLock::Outcome CacheLock::tryEntry(const CacheFolder &folder,
                                       const std::string &hash) {
  // 60 bits of the hash, which leaves byte 0 and stays within an off_t.
  uint64_t bits = std::strtoull(hash.substr(0, 15).c_str(), nullptr, 16);
  return tryByte(folder, static_cast<int64_t>(bits) + 1);
}

CacheLock::Outcome CacheLock::tryMakingRoom(const CacheFolder &folder) {
  return tryByte(folder, 0);
}

CacheLock::Outcome CacheLock::tryByte(const CacheFolder &folder, int64_t byte) {
  release();
  OpenLockFiles &open = getOpenLockFiles();
  {
    std::lock_guard<std::mutex> guard(open.mutex);
    file = openat(folder.descriptor(), lockFileName,
                  O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) {
      reason = concat("cannot open '", folder.pathOf(lockFileName),
                      "': ", std::strerror(errno));
      return Outcome::Unwritable;
    }
    generation = open.generation;
    open.files.insert(file);
  }
  if (setLock(file, F_WRLCK, byte, 1))
    return Outcome::Taken;
  int error = errno;
  release();
  if (error == EAGAIN || error == EACCES)
    return Outcome::Busy;
  reason = concat("cannot lock '", folder.pathOf(lockFileName),
                  "': ", std::strerror(error));
  return Outcome::Unsupported;
}

void CacheLock::release() {
  if (file < 0)
    return;
  OpenLockFiles &open = getOpenLockFiles();
  std::lock_guard<std::mutex> guard(open.mutex);
  int held = std::exchange(file, -1);
  if (generation != open.generation)
    return;
  // The byte is unlocked and not only closed, as a child of vfork() may share
  // the file right now.
  (void)setLock(held, F_UNLCK, 0, 0);
  open.files.erase(held);
  ::close(held);
}
