//===- CacheEntry.cpp - The file format of cache entries ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
//   bytes 0-7    magic
//   bytes 8-11   version of the format
//   bytes 12-15  length of the header
//   bytes 16-23  checksum of the header
//   header       name, key parts, names and sizes of the sections, checksum of
//                all sections
//   sections     one after the other, to the end of the file
//
// Every byte is compared with something or covered by a checksum. Numbers are
// little-endian, a string is its 64-bit length and its bytes. The header is no
// JSON because key parts are any bytes, not only UTF-8, and have to come back
// as they were.
//
// XXH3 finds accidents, not forgeries: who may write to the folder may run
// code.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/CacheEntry.h"
#include "runtime/Text.h"

// The hash comes from the header alone, so that there is no library to link or
// to ship.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <optional>

using namespace bastile::runtime;

static constexpr std::string_view magic = "BASTILE\n";
static constexpr uint64_t formatVersion = 1;

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

static void appendNumber(std::string &bytes, uint64_t number, unsigned size) {
  for (unsigned i = 0; i != size; ++i)
    bytes += static_cast<char>(number >> (8 * i));
}

static uint64_t readNumber(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = bytes.size(); i-- > 0;)
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

static void appendString(std::string &bytes, std::string_view text) {
  appendNumber(bytes, text.size(), 8);
  bytes += text;
}

namespace {

/// Takes a header apart; a read beyond the header's end gives nothing.
class HeaderReader {
public:
  explicit HeaderReader(std::string_view bytes) : rest(bytes) {}

  std::optional<uint64_t> takeNumber() {
    std::optional<std::string_view> bytes = take(8);
    if (!bytes)
      return std::nullopt;
    return readNumber(*bytes);
  }

  std::optional<std::string> takeString() {
    std::optional<uint64_t> size = takeNumber();
    std::optional<std::string_view> bytes = take(size.value_or(UINT64_MAX));
    if (!bytes)
      return std::nullopt;
    return std::string(*bytes);
  }

  bool atEnd() const { return rest.empty(); }

private:
  std::optional<std::string_view> take(uint64_t size) {
    if (size > rest.size())
      return std::nullopt;
    std::string_view taken = rest.substr(0, size);
    rest.remove_prefix(size);
    return taken;
  }

  std::string_view rest;
};

/// A header as it stands in the file.
struct RawHeader {
  std::string name;
  std::vector<CacheKeyPart> parts;
  std::vector<std::pair<std::string, uint64_t>> sections;
  uint64_t checksum = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

static std::string hashParts(const std::vector<CacheKeyPart> &parts) {
  // The text has the lengths of parts, so that no two lists of parts give the
  // same text.
  std::string text;
  for (const CacheKeyPart &part : parts) {
    appendString(text, part.name);
    appendString(text, part.value);
  }
  XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);

  std::string digits;
  for (unsigned char byte : canonical.digest) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}

CacheKey::CacheKey(std::vector<CacheKeyPart> parts)
    : keyParts(std::move(parts)), digits(hashParts(keyParts)) {}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

const std::string *CacheEntry::find(std::string_view section) const {
  auto found = std::find_if(
      sections.begin(), sections.end(),
      [&](const CacheSection &candidate) { return candidate.name == section; });
  return found == sections.end() ? nullptr : &found->bytes;
}

std::string bastile::runtime::encodeCacheEntry(const CacheKey &key,
                                               const CacheEntry &entry) {
  std::string payload;
  for (const CacheSection &section : entry.sections)
    payload += section.bytes;

  std::string header;
  appendString(header, entry.name);
  appendNumber(header, key.parts().size(), 8);
  for (const CacheKeyPart &part : key.parts()) {
    appendString(header, part.name);
    appendString(header, part.value);
  }
  appendNumber(header, entry.sections.size(), 8);
  for (const CacheSection &section : entry.sections) {
    appendString(header, section.name);
    appendNumber(header, section.bytes.size(), 8);
  }
  appendNumber(header, XXH3_64bits(payload.data(), payload.size()), 8);

  std::string file(magic);
  file.reserve(cacheEntryPrefixSize + header.size() + payload.size());
  appendNumber(file, formatVersion, 4);
  appendNumber(file, header.size(), 4);
  appendNumber(file, XXH3_64bits(header.data(), header.size()), 8);
  return file + header + payload;
}

Expected<uint64_t>
bastile::runtime::cacheEntryHeaderEnd(std::string_view prefix) {
  if (prefix.substr(0, magic.size()) != magic.substr(0, prefix.size()))
    return Error("it is no cache entry");
  if (prefix.size() < cacheEntryPrefixSize)
    return makeError("it is cut off after ", prefix.size(), " bytes");
  uint64_t version = readNumber(prefix.substr(8, 4));
  if (version != formatVersion)
    return makeError("it has version ", version, " of the format, expected ",
                     formatVersion);
  return cacheEntryPrefixSize + readNumber(prefix.substr(12, 4));
}

static std::optional<RawHeader> parseHeader(std::string_view bytes) {
  HeaderReader reader(bytes);
  RawHeader header;
  std::optional<std::string> name = reader.takeString();
  if (!name)
    return std::nullopt;
  header.name = std::move(*name);

  // Counts are not trusted with memory: each element takes bytes of the header.
  uint64_t partCount = reader.takeNumber().value_or(UINT64_MAX);
  for (uint64_t i = 0; i != partCount; ++i) {
    std::optional<std::string> name = reader.takeString();
    std::optional<std::string> value = reader.takeString();
    if (!name || !value)
      return std::nullopt;
    header.parts.push_back({std::move(*name), std::move(*value)});
  }
  uint64_t sectionCount = reader.takeNumber().value_or(UINT64_MAX);
  for (uint64_t i = 0; i != sectionCount; ++i) {
    std::optional<std::string> name = reader.takeString();
    std::optional<uint64_t> size = reader.takeNumber();
    if (!name || !size)
      return std::nullopt;
    header.sections.emplace_back(std::move(*name), *size);
  }
  std::optional<uint64_t> checksum = reader.takeNumber();
  if (!checksum || !reader.atEnd())
    return std::nullopt;
  header.checksum = *checksum;
  return header;
}

/// Checks that the sections end where the file does.
static Error checkSize(const RawHeader &header, uint64_t headerEnd,
                       uint64_t fileSize) {
  uint64_t rest = fileSize - headerEnd;
  for (const auto &[name, size] : header.sections) {
    if (size > rest)
      return makeError("it is cut off after ", fileSize, " bytes");
    rest -= size;
  }
  if (rest)
    return makeError(rest, " bytes follow its end");
  return Error::success();
}

static Expected<RawHeader> readHeader(std::string_view start,
                                      uint64_t fileSize) {
  Expected<uint64_t> end =
      cacheEntryHeaderEnd(start.substr(0, cacheEntryPrefixSize));
  if (!end)
    return end.takeError();
  if (*end > start.size())
    return makeError("it is cut off after ", start.size(), " bytes");
  std::string_view bytes =
      start.substr(cacheEntryPrefixSize, *end - cacheEntryPrefixSize);
  if (XXH3_64bits(bytes.data(), bytes.size()) !=
      readNumber(start.substr(16, 8)))
    return Error("the checksum of its header is wrong");
  std::optional<RawHeader> header = parseHeader(bytes);
  if (!header)
    return Error("its header is malformed");
  if (Error error = checkSize(*header, *end, fileSize))
    return error;
  return std::move(*header);
}

Expected<CacheEntryHeader>
bastile::runtime::decodeCacheEntryHeader(std::string_view start,
                                         uint64_t fileSize) {
  Expected<RawHeader> header = readHeader(start, fileSize);
  if (!header)
    return header.takeError();
  return CacheEntryHeader{CacheKey(std::move(header->parts)),
                          std::move(header->name), std::move(header->sections)};
}

Expected<CacheEntryFile>
bastile::runtime::decodeCacheEntry(std::string_view file) {
  Expected<RawHeader> header = readHeader(file, file.size());
  if (!header)
    return header.takeError();
  // The header ends where the sections begin, which reach to the file's end.
  std::string_view rest = file.substr(*cacheEntryHeaderEnd(file));
  if (XXH3_64bits(rest.data(), rest.size()) != header->checksum)
    return Error("its checksum is wrong");

  CacheEntry entry;
  entry.name = std::move(header->name);
  for (auto &[name, size] : header->sections) {
    entry.sections.push_back(
        {std::move(name), std::string(rest.substr(0, size))});
    rest.remove_prefix(size);
  }
  return CacheEntryFile{CacheKey(std::move(header->parts)), std::move(entry)};
}
