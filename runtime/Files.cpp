//===- Files.cpp - Whole files in memory ----------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/Files.h"
#include "runtime/Text.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

using namespace bastile::runtime;

Expected<std::string> bastile::runtime::readFile(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return makeError("cannot open '", path, "': ", std::strerror(errno));
  // Of a folder, opening succeeds, and reading does not. An iterator over the
  // stream would throw.
  std::ostringstream contents;
  if (stream.peek() != std::ifstream::traits_type::eof())
    contents << stream.rdbuf();
  if (stream.bad() || contents.fail())
    return makeError("cannot read '", path, "': ", std::strerror(errno));
  return std::move(contents).str();
}

Error bastile::runtime::writeFile(const std::string &path,
                                  std::string_view contents) {
  // A file that cannot be written as a whole leaves what was there. Pipes and
  // devices have no such place beside them.
  std::error_code code;
  const auto kind = std::filesystem::status(path, code).type();
  const bool isReplaced = kind == std::filesystem::file_type::regular ||
                          kind == std::filesystem::file_type::not_found;
  const std::string written = isReplaced ? path + ".partial" : path;
  std::ofstream stream(written, std::ios::binary | std::ios::trunc);
  if (!stream)
    return makeError("cannot create '", path, "': ", std::strerror(errno));
  stream.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  stream.close();
  const int reason = errno;
  if (!stream) {
    if (isReplaced)
      std::filesystem::remove(written, code);
    return makeError("cannot write '", path, "': ", std::strerror(reason));
  }
  if (!isReplaced)
    return Error::success();
  code.clear();
  std::filesystem::rename(written, path, code);
  if (code)
    return makeError("cannot write '", path, "': ", code.message());
  return Error::success();
}
