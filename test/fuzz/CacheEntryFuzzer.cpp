//===- CacheEntryFuzzer.cpp - Cache entries of any bytes ------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/CacheEntry.h"

#include <cstdlib>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace bastile::runtime;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

/// Every byte of an entry counts: an entry that was read is written as the same
/// bytes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view file(reinterpret_cast<const char *>(data), size);
  const Expected<CacheEntryHeader> header = decodeCacheEntryHeader(file, size);
  const Expected<CacheEntryFile> entry = decodeCacheEntry(file);
  if (!entry)
    return 0;
  if (!header || header->key.hash() != entry->key.hash() ||
      encodeCacheEntry(entry->key, entry->entry) != file)
    std::abort();
  return 0;
}

static uint64_t readNumber(const uint8_t *data, size_t bytes) {
  uint64_t number = 0;
  for (size_t i = bytes; i-- > 0;)
    number = number << 8 | data[i];
  return number;
}

static void writeNumber(uint8_t *data, uint64_t number, size_t bytes) {
  for (size_t i = 0; i != bytes; ++i)
    data[i] = static_cast<uint8_t>(number >> (8 * i));
}

/// Puts the right checksums over bytes, so that the bytes under them are read.
static void seal(uint8_t *data, size_t size) {
  std::memcpy(data, "BASTILE\n\1\0\0\0", 12);
  const size_t room = size - cacheEntryPrefixSize;
  const size_t header = readNumber(data + 12, 4) % (room + 1);
  writeNumber(data + 12, header, 4);
  uint8_t *start = data + cacheEntryPrefixSize;
  if (header >= 8)
    writeNumber(start + header - 8, XXH3_64bits(start + header, room - header),
                8);
  writeNumber(data + 16, XXH3_64bits(start, header), 8);
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size,
                                          size_t maxSize, unsigned seed) {
  if (size < cacheEntryPrefixSize) {
    const std::string entry = encodeCacheEntry(
        CacheKey({{"source", "func.func @f()"}, {"target", "sm_90"}}),
        {"f", {{"ptx", ".version 8.0"}, {"metadata", "{}"}}});
    size = std::min(entry.size(), maxSize);
    std::memcpy(data, entry.data(), size);
  }
  size = LLVMFuzzerMutate(data, size, maxSize);
  if (seed % 4 != 0 && size >= cacheEntryPrefixSize)
    seal(data, size);
  return size;
}
