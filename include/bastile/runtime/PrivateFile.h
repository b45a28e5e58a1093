//===- PrivateFile.h - Files beside the cached kernels ----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_PRIVATEFILE_H
#define BASTILE_RUNTIME_PRIVATEFILE_H

#include "bastile/runtime/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace bastile::runtime {

/// Opens the file `name` in the last of `folders`, as the cache opens its own
/// (docs/cache.md). The file and each of the folders must belong to the user
/// and be writable by nobody else, and none may be a link that another user has
/// made. `flags` are those of open(2); with O_CREAT, missing folders and a
/// missing file are made, for the user alone. The caller closes the descriptor;
/// there is none if a folder or the file is missing.
Expected<std::optional<int>>
openPrivateFile(const std::vector<std::string> &folders,
                const std::string &name, int flags);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_PRIVATEFILE_H
