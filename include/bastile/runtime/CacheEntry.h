//===- CacheEntry.h - A compiled kernel as the cache keeps it ---*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A key names everything that a compiled kernel depends on; an entry holds what
// was compiled. docs/cache.md describes the file that holds both.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_CACHEENTRY_H
#define BASTILE_RUNTIME_CACHEENTRY_H

#include "bastile/runtime/Error.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bastile::runtime {

/// One thing that a compiled kernel depends on: its IR, the schedule, the
/// target, the version of the compiler or of the driver.
struct CacheKeyPart {
  std::string name;
  std::string value;
};

inline bool operator==(const CacheKeyPart &a, const CacheKeyPart &b) {
  return a.name == b.name && a.value == b.value;
}

/// The key of a compiled kernel. Two kernels that differ must differ in some
/// part; the order of the parts counts.
class CacheKey {
public:
  explicit CacheKey(std::vector<CacheKeyPart> parts);

  const std::vector<CacheKeyPart> &parts() const { return keyParts; }

  /// 128 bits over all parts as 32 hexadecimal digits.
  const std::string &hash() const { return digits; }

private:
  std::vector<CacheKeyPart> keyParts;
  std::string digits;
};

/// A piece of an entry, such as its metadata, its PTX or its cubin.
struct CacheSection {
  std::string name;
  std::string bytes;
};

struct CacheEntry {
  /// The bytes of the section called `section`, or null.
  const std::string *find(std::string_view section) const;

  /// The name of the entry in listings.
  std::string name;
  std::vector<CacheSection> sections;
};

/// The contents of the header of an entry's file.
struct CacheEntryHeader {
  CacheKey key;
  std::string name;
  /// The name and size of each section.
  std::vector<std::pair<std::string, uint64_t>> sections;
};

/// The contents of an entry's file.
struct CacheEntryFile {
  CacheKey key;
  CacheEntry entry;
};

/// The bytes of the file that holds `entry`.
std::string encodeCacheEntry(const CacheKey &key, const CacheEntry &entry);

/// Reads an entry's file and checks all of it; any damage is an error.
Expected<CacheEntryFile> decodeCacheEntry(std::string_view file);

/// Reads and checks an entry's header. `start` begins with the header and need
/// not hold the sections; `fileSize`, in bytes, has to agree with it.
Expected<CacheEntryHeader> decodeCacheEntryHeader(std::string_view start,
                                                  uint64_t fileSize);

/// How many bytes of a file tell how long its header is, and the number of
/// bytes up to the header's end.
constexpr size_t cacheEntryPrefixSize = 24;
Expected<uint64_t> cacheEntryHeaderEnd(std::string_view prefix);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_CACHEENTRY_H
