//===- CacheOptions.cpp - Where a cache is, by the environment ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/DiskCache.h"
#include "runtime/Text.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <pwd.h>
#include <string_view>
#include <unistd.h>

using namespace bastile::runtime;

void CacheOptions::warnOnStderr(const std::string &message) {
  std::fprintf(stderr, "warning: bastile: %s\n", message.c_str());
}

/// The value of an environment variable that holds an absolute path; the
/// specification of XDG_CACHE_HOME ignores any other value.
static std::optional<std::string> getAbsolutePath(const char *variable) {
  const char *value = std::getenv(variable);
  if (!value || value[0] != '/')
    return std::nullopt;
  return value;
}

static std::optional<std::string> getHome() {
  if (std::optional<std::string> home = getAbsolutePath("HOME"))
    return home;
  char buffer[4096];
  passwd entry;
  passwd *found = nullptr;
  if (getpwuid_r(geteuid(), &entry, buffer, sizeof(buffer), &found) != 0 ||
      !found || found->pw_dir[0] != '/')
    return std::nullopt;
  return found->pw_dir;
}

/// The folder that the environment asks for; empty if the disk is switched off.
static std::string findFolder(const CacheOptions::Warn &warn) {
  const char *enabled = std::getenv("BASTILE_CACHE");
  if (enabled && std::string_view(enabled) == "0")
    return "";
  if (const char *folder = std::getenv("BASTILE_CACHE_DIR"))
    return folder;
  if (std::optional<std::string> caches = getAbsolutePath("XDG_CACHE_HOME"))
    return *caches + "/bastile";
  if (std::optional<std::string> home = getHome())
    return *home + "/.cache/bastile";
  warn("there is no home folder for the kernel cache: kernels are kept in "
       "memory only; set BASTILE_CACHE_DIR to a folder");
  return "";
}

/// Reads a size such as "1073741824", "1024M" or "1g", in bytes.
static std::optional<uint64_t> parseSize(std::string_view text) {
  unsigned shift = 0;
  if (!text.empty()) {
    switch (std::toupper(static_cast<unsigned char>(text.back()))) {
    case 'K':
      shift = 10;
      break;
    case 'M':
      shift = 20;
      break;
    case 'G':
      shift = 30;
      break;
    }
  }
  if (shift)
    text.remove_suffix(1);
  if (text.empty())
    return std::nullopt;
  uint64_t size = 0;
  const uint64_t most = (UINT64_MAX >> shift) / 10 - 1;
  for (char digit : text) {
    if (digit < '0' || digit > '9' || size > most)
      return std::nullopt;
    size = 10 * size + static_cast<uint64_t>(digit - '0');
  }
  return size << shift;
}

CacheOptions CacheOptions::fromEnvironment(Warn warn) {
  CacheOptions options;
  options.warn = std::move(warn);
  options.folder = findFolder(options.warn);
  const char *size = std::getenv("BASTILE_CACHE_SIZE");
  if (!size)
    return options;
  std::optional<uint64_t> limit = parseSize(size);
  if (limit == 0)
    options.folder.clear();
  else if (limit)
    options.sizeLimit = *limit;
  else
    options.warn(concat("BASTILE_CACHE_SIZE is '", size,
                        "', expected bytes, with K, M or G behind the number "
                        "or without: the kernel cache keeps to ",
                        options.sizeLimit, " bytes"));
  return options;
}
