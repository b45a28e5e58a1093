//===- Files.h - Whole files in memory --------------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_FILES_H
#define BASTILE_RUNTIME_FILES_H

#include "bastile/runtime/Error.h"

#include <string>
#include <string_view>

namespace bastile::runtime {

Expected<std::string> readFile(const std::string &path);

Error writeFile(const std::string &path, std::string_view contents);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_FILES_H
