//===- CacheManagementTest.cpp - Tests of what the command line does ------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "CacheSupport.h"

#include <cstdlib>
#include <optional>

using namespace bastile::runtime;

namespace {

class CacheManagementTest : public CacheTest {};

TEST_F(CacheManagementTest, listsEntries) {
  DiskCache kernels(options());
  Expected<std::vector<CacheListing>> none = kernels.list();
  ASSERT_OK(none.takeError());
  EXPECT_TRUE(none->empty());

  kernels.store(makeKey(0), makeEntry("zero"));
  kernels.store(makeKey(1), {"softmax", {{"ptx", makeBytes(100000)}}});
  kernels.store(makeKey(2), makeEntry("two"));
  setAge(pathOf(makeKey(0)), 2000);
  setAge(pathOf(makeKey(1)), 1000);
  ASSERT_OK(writeFile(pathOf(makeKey(2)), "#!/bin/sh"));
  ASSERT_OK(writeFile(cache + "/README", "not an entry"));

  Expected<std::vector<CacheListing>> entries = kernels.list();
  ASSERT_OK(entries.takeError());
  ASSERT_EQ(entries->size(), 3u);
  EXPECT_EQ((*entries)[0].problem, "it is no cache entry");
  EXPECT_EQ((*entries)[0].bytes, 9u);
  const CacheListing &softmax = (*entries)[1];
  EXPECT_EQ(softmax.file, makeKey(1).hash() + ".kernel");
  EXPECT_EQ(softmax.bytes, std::filesystem::file_size(pathOf(makeKey(1))));
  EXPECT_NEAR(static_cast<double>(std::time(nullptr) - softmax.lastUsed), 1000,
              100);
  EXPECT_EQ(softmax.problem, "");
  EXPECT_EQ(softmax.name, "softmax");
  EXPECT_EQ(softmax.parts, makeKey(1).parts());
  ASSERT_EQ(softmax.sections.size(), 1u);
  EXPECT_EQ(softmax.sections[0].first, "ptx");
  EXPECT_EQ(softmax.sections[0].second, 100000u);
  EXPECT_EQ((*entries)[2].name, "geglu");
}

TEST_F(CacheManagementTest, clearsEntriesOnly) {
  DiskCache kernels(options());
  EXPECT_OK(kernels.clear().takeError());
  kernels.store(makeKey(0), makeEntry("zero"));
  DiskCache::EntryPointer one = kernels.store(makeKey(1), makeEntry("one"));
  ASSERT_OK(writeFile(cache + "/README", "not an entry"));
  uint64_t bytes = std::filesystem::file_size(pathOf(makeKey(0))) +
                   std::filesystem::file_size(pathOf(makeKey(1)));
  Expected<CacheCount> removed = kernels.clear();
  ASSERT_OK(removed.takeError());
  EXPECT_EQ(removed->entries, 2u);
  EXPECT_EQ(removed->bytes, bytes);
  EXPECT_EQ(kernels.find(makeKey(0)), nullptr);
  EXPECT_EQ(kernels.find(makeKey(1)), nullptr) << "even if it is in use";
  EXPECT_TRUE(std::filesystem::exists(cache + "/README"));
}

TEST_F(CacheManagementTest, removesLeftoversOfKilledWriters) {
  DiskCache kernels(options());
  kernels.store(makeKey(0), makeEntry("zero"));
  const std::string young = makeKey(1).hash() + ".1.tmp";
  const std::string old = makeKey(2).hash() + ".2.tmp";
  for (const std::string &file : {young, old, std::string("mine.tmp")})
    ASSERT_OK(writeFile(cache + "/" + file, "half of"));
  setAge(cache + "/" + old, 60);
  setAge(cache + "/mine.tmp", 60);
  DiskCache(options()).store(makeKey(3), makeEntry("three"));
  EXPECT_FALSE(std::filesystem::exists(cache + "/" + old));
  EXPECT_TRUE(std::filesystem::exists(cache + "/" + young));
  EXPECT_TRUE(std::filesystem::exists(cache + "/mine.tmp"));

  setAge(cache + "/" + young, 60);
  EXPECT_OK(kernels.clear().takeError());
  EXPECT_FALSE(std::filesystem::exists(cache + "/" + young));
}

TEST_F(CacheManagementTest, verifiesEveryByte) {
  DiskCache kernels(options());
  for (unsigned i = 0; i != 5; ++i)
    kernels.store(makeKey(i), makeEntry(makeBytes(1000)));
  std::string file = *readFile(pathOf(makeKey(3)));
  file.back() ^= 1;
  ASSERT_OK(writeFile(pathOf(makeKey(3)), file));
  Expected<CacheCheck> check = kernels.verify();
  ASSERT_OK(check.takeError());
  EXPECT_EQ(check->intact.entries, 4u);
  EXPECT_EQ(check->intact.bytes, 4 * file.size());
  ASSERT_EQ(check->damaged.size(), 1u);
  EXPECT_EQ(check->damaged[0].file, makeKey(3).hash() + ".kernel");
  EXPECT_EQ(check->damaged[0].problem, "its checksum is wrong");
  EXPECT_TRUE(check->damaged[0].removed);
  EXPECT_FALSE(std::filesystem::exists(pathOf(makeKey(3))));
}

TEST_F(CacheManagementTest, carriesEntriesToAnotherFolder) {
  DiskCache kernels(options());
  kernels.store(makeKey(0), makeEntry("zero"));
  const std::string file = makeKey(0).hash() + ".kernel";
  Expected<std::string> bytes = kernels.exportEntry(file);
  ASSERT_OK(bytes.takeError());

  cache = root + "/other";
  DiskCache other(options());
  Expected<bool> imported = other.importEntry(file, *bytes);
  ASSERT_OK(imported.takeError());
  EXPECT_TRUE(*imported);
  imported = other.importEntry(file, *bytes);
  ASSERT_OK(imported.takeError());
  EXPECT_FALSE(*imported);
  EXPECT_EQ(cubinOf(other.getOrCreate(makeKey(0), notCreated)), "zero");

  // The import replaces a damaged entry.
  ASSERT_OK(writeFile(pathOf(makeKey(0)), "damaged"));
  expectError(other.exportEntry(file).takeError(), "it is no cache entry");
  imported = other.importEntry(file, *bytes);
  ASSERT_OK(imported.takeError());
  EXPECT_TRUE(*imported);
  EXPECT_EQ(cubinOf(DiskCache(options()).find(makeKey(0))), "zero");
}

TEST_F(CacheManagementTest, importsNothingUnchecked) {
  DiskCache kernels(options());
  const std::string file = makeKey(0).hash() + ".kernel";
  const std::string bytes = encodeCacheEntry(makeKey(0), makeEntry("zero"));
  for (const std::string &name :
       {"../" + file, "/" + file, file + ".kernel", makeKey(0).hash(),
        "A" + file.substr(1), std::string("lock"), std::string()}) {
    expectError(kernels.importEntry(name, bytes).takeError(),
                "is not the name of a cache entry");
    expectError(kernels.exportEntry(name).takeError(),
                "is not the name of a cache entry");
  }
  expectError(
      kernels.importEntry(makeKey(1).hash() + ".kernel", bytes).takeError(),
      "it holds another key than its name says");
  expectError(
      kernels.importEntry(file, bytes.substr(0, bytes.size() - 1)).takeError(),
      "it is cut off");
  expectError(kernels.exportEntry(file).takeError(), "there is no cache entry");
  CacheOptions small = options();
  small.sizeLimit = 10;
  expectError(DiskCache(small).importEntry(file, bytes).takeError(),
              "more than the cache folder may hold");
  EXPECT_FALSE(std::filesystem::exists(cache));
}

/// Sets environment variables until the end of a test.
class CacheOptionsTest : public CacheTest {
protected:
  void SetUp() override {
    CacheTest::SetUp();
    for (const char *name : names) {
      const char *value = getenv(name);
      before.push_back(value ? std::optional<std::string>(value)
                             : std::nullopt);
      unsetenv(name);
    }
    setenv("HOME", "/home/alice", 1);
  }

  void TearDown() override {
    for (size_t i = 0; i != before.size(); ++i) {
      if (before[i])
        setenv(names[i], before[i]->c_str(), 1);
      else
        unsetenv(names[i]);
    }
    CacheTest::TearDown();
  }

  CacheOptions read() {
    return CacheOptions::fromEnvironment(warnings.collector());
  }

private:
  static constexpr const char *names[] = {"BASTILE_CACHE", "BASTILE_CACHE_DIR",
                                          "BASTILE_CACHE_SIZE",
                                          "XDG_CACHE_HOME", "HOME"};
  std::vector<std::optional<std::string>> before;
};

TEST_F(CacheOptionsTest, findsTheFolder) {
  EXPECT_EQ(read().folder, "/home/alice/.cache/bastile");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(read().folder, "/home/alice/.cache/bastile");
  setenv("XDG_CACHE_HOME", "/scratch/alice", 1);
  EXPECT_EQ(read().folder, "/scratch/alice/bastile");
  setenv("BASTILE_CACHE_DIR", "kernels", 1);
  EXPECT_EQ(read().folder, "kernels");
  setenv("BASTILE_CACHE", "0", 1);
  EXPECT_EQ(read().folder, "");
  setenv("BASTILE_CACHE", "1", 1);
  EXPECT_EQ(read().folder, "kernels");
  setenv("BASTILE_CACHE_DIR", "", 1);
  EXPECT_EQ(read().folder, "");
}

TEST_F(CacheOptionsTest, asksTheSystemForTheHome) {
  unsetenv("HOME");
  std::string folder = read().folder;
  EXPECT_EQ(folder.find("/home/alice"), std::string::npos);
  const std::string suffix = "/.cache/bastile";
  ASSERT_GT(folder.size(), suffix.size());
  EXPECT_EQ(folder[0], '/');
  EXPECT_EQ(folder.substr(folder.size() - suffix.size()), suffix);
}

TEST_F(CacheOptionsTest, readsTheSize) {
  auto size = [&](const char *text) {
    setenv("BASTILE_CACHE_SIZE", text, 1);
    return read().sizeLimit;
  };
  EXPECT_EQ(read().sizeLimit, 1u << 30);
  EXPECT_EQ(size("123456"), 123456u);
  EXPECT_EQ(size("12k"), 12u << 10);
  EXPECT_EQ(size("12M"), 12u << 20);
  EXPECT_EQ(size("12G"), uint64_t(12) << 30);
  EXPECT_NE(read().folder, "");
  (void)size("0");
  EXPECT_EQ(read().folder, "");
  for (const char *text :
       {"", "G", "1.5G", "-1", "12T", "99999999999G", "99999999999999999999"}) {
    EXPECT_EQ(size(text), 1u << 30);
    expectOneWarning("BASTILE_CACHE_SIZE is '" + std::string(text) + "'");
  }
}

} // namespace
