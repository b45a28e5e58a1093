//===- PrivateFile.cpp - Files beside the cached kernels ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/PrivateFile.h"
#include "runtime/Text.h"
#include "runtime/cache/CacheFolder.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>

using namespace bastile::runtime;

Expected<std::optional<int>>
bastile::runtime::openPrivateFile(const std::vector<std::string> &folders,
                                  const std::string &name, int flags) {
  std::optional<CacheFolder> folder;
  for (const std::string &path : folders) {
    if (flags & O_CREAT) {
      Expected<CacheFolder> created = CacheFolder::create(path);
      if (!created)
        return created.takeError();
      folder = std::move(*created);
      continue;
    }
    Expected<std::optional<CacheFolder>> opened = CacheFolder::open(path);
    if (!opened)
      return opened.takeError();
    if (!*opened)
      return std::optional<int>();
    folder = std::move(**opened);
  }
  if (!folder)
    return makeError("'", name, "' is in no folder");

  // Without O_NONBLOCK, a pipe of this name would be waited for.
  FileDescriptor file(openat(folder->descriptor(), name.c_str(),
                             flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                             0600));
  if (!file) {
    if (errno == ENOENT)
      return std::optional<int>();
    return makeError("cannot open '", folder->pathOf(name),
                     "': ", std::strerror(errno));
  }
  struct stat status;
  if (fstat(file.get(), &status) != 0)
    return makeError("cannot examine '", folder->pathOf(name),
                     "': ", std::strerror(errno));
  if (std::optional<std::string> problem = findForeign(status))
    return makeError("'", folder->pathOf(name), "' is not used: ", *problem);
  return std::optional<int>(file.release());
}
