//===- CacheEntryTest.cpp - Tests of keys and of the file format ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "CacheSupport.h"

#include <set>

using namespace bastile::runtime;

namespace {

TEST(CacheKeyTest, hashesEveryPart) {
  const CacheKeyPart ir = {"ir", "module {}"}, target = {"target", "sm_90"};
  const std::vector<std::vector<CacheKeyPart>> keys = {
      {},
      {ir},
      {ir, target},
      {target, ir},
      {ir, {"target", "sm_100"}},
      {ir, {"schedule", "sm_90"}},
      // The text of the parts is the same, cut elsewhere.
      {{"irm", "odule {}"}, target},
      {{"ir", "module {}target"}, {"", "sm_90"}},
      {{"ir", std::string("module {}\0", 10)}, target}};
  std::set<std::string> hashes;
  for (const std::vector<CacheKeyPart> &parts : keys) {
    CacheKey key(parts);
    EXPECT_EQ(key.hash().size(), 32u);
    hashes.insert(key.hash());
  }
  EXPECT_EQ(hashes.size(), keys.size());
}

TEST(CacheKeyTest, neverChanges) {
  // All machines of a cluster must compute the same name.
  EXPECT_EQ(CacheKey({{"ir", "module {}"}, {"target", "sm_90"}}).hash(),
            "fa7b11a7402e8f46eeae61b8f62a1d76");
}

class CacheEntryTest : public testing::Test {
protected:
  const CacheKey key{{{"ir", std::string("\0\xff text", 7)}, {"empty", ""}}};
  const CacheEntry entry = {"geglu",
                            {{"metadata", "{}"},
                             {"nothing", ""},
                             {"cubin", std::string("\x7f"
                                                   "ELF\0\0",
                                                   6)}}};
  const std::string file = encodeCacheEntry(key, entry);
};

TEST_F(CacheEntryTest, readsWhatItWrites) {
  Expected<CacheEntryFile> read = decodeCacheEntry(file);
  ASSERT_OK(read.takeError());
  EXPECT_EQ(read->key.parts(), key.parts());
  EXPECT_EQ(read->key.hash(), key.hash());
  EXPECT_EQ(read->entry.name, "geglu");
  ASSERT_EQ(read->entry.sections.size(), 3u);
  for (const CacheSection &section : entry.sections) {
    ASSERT_NE(read->entry.find(section.name), nullptr);
    EXPECT_EQ(*read->entry.find(section.name), section.bytes);
  }
  EXPECT_EQ(read->entry.find("ptx"), nullptr);
}

TEST_F(CacheEntryTest, readsHeadersAlone) {
  Expected<uint64_t> end =
      cacheEntryHeaderEnd(file.substr(0, cacheEntryPrefixSize));
  ASSERT_OK(end.takeError());
  // The header ends before the sections of 2, 0 and 6 bytes.
  ASSERT_EQ(*end, file.size() - 8);
  Expected<CacheEntryHeader> header =
      decodeCacheEntryHeader(file.substr(0, *end), file.size());
  ASSERT_OK(header.takeError());
  EXPECT_EQ(header->key.parts(), key.parts());
  EXPECT_EQ(header->name, "geglu");
  ASSERT_EQ(header->sections.size(), 3u);
  EXPECT_EQ(header->sections[2].first, "cubin");
  EXPECT_EQ(header->sections[2].second, 6u);
  expectError(
      decodeCacheEntryHeader(file.substr(0, *end), *end + 7).takeError(),
      "it is cut off");
}

TEST_F(CacheEntryTest, noticesEveryFlippedBit) {
  for (size_t byte = 0; byte != file.size(); ++byte) {
    for (unsigned bit = 0; bit != 8; ++bit) {
      std::string damaged = file;
      damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
      EXPECT_TRUE(decodeCacheEntry(damaged).takeError())
          << "byte " << byte << ", bit " << bit;
    }
  }
}

TEST_F(CacheEntryTest, noticesEveryTruncation) {
  for (size_t size = 0; size != file.size(); ++size)
    expectError(decodeCacheEntry(file.substr(0, size)).takeError(),
                "it is cut off after " + std::to_string(size) + " bytes");
  expectError(decodeCacheEntry(file + '\0').takeError(),
              "1 bytes follow its end");
}

TEST_F(CacheEntryTest, saysWhatIsForeign) {
  expectError(decodeCacheEntry("\x7f"
                               "ELF and so on")
                  .takeError(),
              "it is no cache entry");
  expectError(decodeCacheEntry(std::string(file.size(), '\0')).takeError(),
              "it is no cache entry");
  std::string later = file;
  later[8] = 2;
  expectError(decodeCacheEntry(later).takeError(),
              "it has version 2 of the format, expected 1");
  std::string damaged = file;
  damaged.back() ^= 1;
  expectError(decodeCacheEntry(damaged).takeError(), "its checksum is wrong");
  damaged = file;
  damaged[cacheEntryPrefixSize] ^= 1;
  expectError(decodeCacheEntry(damaged).takeError(),
              "the checksum of its header is wrong");
}

} // namespace
