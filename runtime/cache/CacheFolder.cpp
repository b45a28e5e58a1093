//===- CacheFolder.cpp - Opening a cache's folder -------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/cache/CacheFolder.h"
#include "runtime/Text.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <pwd.h>

using namespace bastile::runtime;

/// Describes a user as in "user 1000 (alice)".
static std::string describeUser(uid_t user) {
  char buffer[4096];
  passwd entry;
  passwd *found = nullptr;
  std::string text = concat("user ", user);
  if (getpwuid_r(user, &entry, buffer, sizeof(buffer), &found) == 0 && found)
    text += concat(" (", found->pw_name, ")");
  return text;
}

static Error refuse(const std::string &path, const std::string &reason,
                    const std::string &remedy) {
  return makeError("the cache folder '", path, "' is refused, since ", reason,
                   " and compiled kernels are code: ", remedy,
                   " or set BASTILE_CACHE_DIR to a folder of your own");
}

static Error refuseOwner(const std::string &path, const char *what,
                         uid_t owner) {
  return refuse(path,
                concat(what, " belongs to ", describeUser(owner), ", not to ",
                       describeUser(geteuid())),
                "remove it");
}

/// Whoever made a symbolic link chooses the folder, so it must be the user's.
static Error checkLink(const std::string &path) {
  struct stat status;
  if (lstat(path.c_str(), &status) != 0 || !S_ISLNK(status.st_mode) ||
      status.st_uid == geteuid())
    return Error::success();
  return refuseOwner(path, "the symbolic link", status.st_uid);
}

static Error checkFolder(const std::string &path, int folder) {
  struct stat status;
  if (fstat(folder, &status) != 0)
    return makeError("cannot examine the cache folder '", path,
                     "': ", std::strerror(errno));
  if (status.st_uid != geteuid())
    return refuseOwner(path, "it", status.st_uid);
  if (status.st_mode & (S_IWGRP | S_IWOTH)) {
    char mode[8];
    std::snprintf(mode, sizeof(mode), "%04o", status.st_mode & 07777);
    return refuse(path, concat("others may write to it (mode ", mode, ")"),
                  concat("run chmod 700 '", path,
                         "' if nobody else has put anything there,"));
  }
  return Error::success();
}

std::optional<std::string>
bastile::runtime::findForeign(const struct stat &status) {
  if (!S_ISREG(status.st_mode))
    return "it is no regular file";
  if (status.st_uid != geteuid() || status.st_mode & (S_IWGRP | S_IWOTH))
    return concat("it belongs to user ", status.st_uid,
                  " or others may write to it");
  return std::nullopt;
}

/// The path without its last slashes: behind a slash, a symbolic link would
/// pass for a folder.
static std::string withoutTrailingSlashes(const std::string &path) {
  size_t last = path.find_last_not_of('/');
  return last == std::string::npos ? path : path.substr(0, last + 1);
}

Expected<std::optional<CacheFolder>>
CacheFolder::open(const std::string &givenPath) {
  std::string path = withoutTrailingSlashes(givenPath);
  if (Error error = checkLink(path))
    return error;
  FileDescriptor folder(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder) {
    if (errno == ENOENT)
      return std::optional<CacheFolder>();
    return makeError("cannot open the cache folder '", path,
                     "': ", std::strerror(errno));
  }
  if (Error error = checkFolder(path, folder.get()))
    return error;
  return std::optional<CacheFolder>(CacheFolder(std::move(folder), path));
}

/// Creates the folder `path` with `mode`; an existing folder is no error.
static Error makeFolder(const std::string &path, mode_t mode) {
  if (mkdir(path.c_str(), mode) == 0 || errno == EEXIST)
    return Error::success();
  if (errno != ENOENT)
    return makeError("cannot create the folder '", path,
                     "': ", std::strerror(errno));
  size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash == 0)
    return makeError("cannot create the folder '", path,
                     "': ", std::strerror(ENOENT));
  std::string parent = withoutTrailingSlashes(path.substr(0, slash));
  if (Error error = makeFolder(parent, 0777))
    return error;
  if (mkdir(path.c_str(), mode) == 0 || errno == EEXIST)
    return Error::success();
  return makeError("cannot create the folder '", path,
                   "': ", std::strerror(errno));
}

Expected<CacheFolder> CacheFolder::create(const std::string &path) {
  for (bool created : {false, true}) {
    Expected<std::optional<CacheFolder>> folder = open(path);
    if (!folder)
      return folder.takeError();
    if (*folder)
      return std::move(**folder);
    if (created)
      break;
    if (Error error = makeFolder(withoutTrailingSlashes(path), 0700))
      return error;
  }
  return makeError("the cache folder '", path, "' vanishes as it is created");
}
