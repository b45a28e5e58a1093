//===- DiskCacheTest.cpp - Tests of a cache in one process ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "CacheSupport.h"

#include <atomic>
#include <chrono>
#include <thread>

using namespace bastile::runtime;

namespace {

class DiskCacheTest : public CacheTest {};

TEST_F(DiskCacheTest, keepsEntriesAcrossRuns) {
  EXPECT_EQ(DiskCache(options()).find(makeKey(0)), nullptr);
  // Looking for an entry creates nothing.
  EXPECT_FALSE(std::filesystem::exists(cache));

  EXPECT_EQ(cubinOf(DiskCache(options()).store(makeKey(0), makeEntry("zero"))),
            "zero");
  EXPECT_EQ(
      cubinOf(DiskCache(options()).getOrCreate(makeKey(1), creator("one"))),
      "one");

  DiskCache later(options());
  DiskCache::EntryPointer entry = later.find(makeKey(0));
  EXPECT_EQ(cubinOf(entry), "zero");
  EXPECT_EQ(entry->name, "geglu");
  EXPECT_EQ(later.find(makeKey(0)), entry) << "an entry in use is shared";
  EXPECT_EQ(cubinOf(later.getOrCreate(makeKey(1), notCreated)), "one");
  EXPECT_EQ(later.find(makeKey(2)), nullptr);
  EXPECT_EQ(cubinOf(later.store(makeKey(0), makeEntry("new"))), "new");
  EXPECT_EQ(cubinOf(DiskCache(options()).find(makeKey(0))), "new");
}

TEST_F(DiskCacheTest, createsItsFolderForTheUserAlone) {
  cache = root + "/parent/of/the//cache/";
  DiskCache(options()).store(makeKey(0), makeEntry("zero"));
  struct stat status;
  ASSERT_EQ(stat(cache.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  ASSERT_EQ(stat(pathOf(makeKey(0)).c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_TRUE(filesEndingIn(".tmp").empty());
}

TEST_F(DiskCacheTest, worksWithoutADisk) {
  cache = "";
  DiskCache kernels(options());
  EXPECT_EQ(cubinOf(kernels.getOrCreate(makeKey(0), creator("zero"))), "zero");
  EXPECT_EQ(cubinOf(kernels.getOrCreate(makeKey(0), notCreated)), "zero");
  EXPECT_EQ(cubinOf(kernels.find(makeKey(0))), "zero");
  expectError(kernels.list().takeError(), "the kernel cache has no folder");
}

TEST_F(DiskCacheTest, survivesTheRemovalOfItsFolder) {
  DiskCache kernels(options());
  kernels.store(makeKey(0), makeEntry("zero"));
  std::filesystem::remove_all(cache);
  EXPECT_EQ(kernels.find(makeKey(0)), nullptr);
  EXPECT_EQ(cubinOf(kernels.getOrCreate(makeKey(0), creator("again"))),
            "again");
  EXPECT_EQ(cubinOf(DiskCache(options()).find(makeKey(0))), "again");
}

TEST_F(DiskCacheTest, createsOnceForAllThreads) {
  DiskCache first(options()), second(options());
  std::atomic<unsigned> created = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i != 16; ++i) {
    threads.emplace_back([&, i] {
      // There are two caches in one folder, as two libraries of a process may
      // have.
      DiskCache &kernels = i % 2 ? first : second;
      auto create = [&]() -> Expected<CacheEntry> {
        ++created;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return makeEntry("zero");
      };
      EXPECT_EQ(cubinOf(kernels.getOrCreate(makeKey(0), create)), "zero");
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(created, 1u);
}

TEST_F(DiskCacheTest, leavesAFailureToTheOneWhoFailed) {
  DiskCache kernels(options());
  std::atomic<unsigned> created = 0, failed = 0;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i != 4; ++i) {
    threads.emplace_back([&] {
      auto create = [&]() -> Expected<CacheEntry> {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        if (++created == 1)
          return Error("no registers");
        return makeEntry("zero");
      };
      std::string cubin = cubinOf(kernels.getOrCreate(makeKey(0), create));
      failed += cubin == "no registers";
      EXPECT_TRUE(cubin == "zero" || cubin == "no registers") << cubin;
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(created, 2u);
  EXPECT_EQ(failed, 1u);
}

TEST_F(DiskCacheTest, releasesAKeyWhenItsCreationThrows) {
  DiskCache kernels(options());
  auto create = []() -> Expected<CacheEntry> { throw 1; };
  EXPECT_THROW((void)kernels.getOrCreate(makeKey(0), create), int);
  EXPECT_EQ(cubinOf(kernels.getOrCreate(makeKey(0), creator("zero"))), "zero");
}

TEST_F(DiskCacheTest, createsEntriesFromEntries) {
  DiskCache kernels(options());
  auto create = [&]() -> Expected<CacheEntry> {
    return makeEntry("from " +
                     cubinOf(kernels.getOrCreate(makeKey(1), creator("one"))));
  };
  EXPECT_EQ(cubinOf(kernels.getOrCreate(makeKey(0), create)), "from one");
  auto createItself = [&]() -> Expected<CacheEntry> {
    return kernels.getOrCreate(makeKey(2), notCreated).takeError();
  };
  expectError(kernels.getOrCreate(makeKey(2), createItself).takeError(),
              "of the cache asks for it");
}

TEST_F(DiskCacheTest, dropsWhatIsDamaged) {
  const std::string cubin = makeBytes(5000);
  auto damage = [&](const std::function<void(std::string &)> &change,
                    const std::string &reason) {
    DiskCache(options()).store(makeKey(0), makeEntry(cubin));
    Expected<std::string> file = readFile(pathOf(makeKey(0)));
    ASSERT_OK(file.takeError());
    change(*file);
    ASSERT_OK(writeFile(pathOf(makeKey(0)), *file));
    DiskCache kernels(options());
    EXPECT_EQ(cubinOf(kernels.getOrCreate(makeKey(0), creator("again"))),
              "again");
    expectOneWarning("the cache entry '" + pathOf(makeKey(0)) +
                     "' is dropped and compiled again: " + reason);
    EXPECT_EQ(cubinOf(DiskCache(options()).find(makeKey(0))), "again");
  };
  damage([](std::string &file) { file[file.size() / 2] ^= 4; },
         "its checksum is wrong");
  damage([](std::string &file) { file.resize(4000); }, "it is cut off");
  damage([](std::string &file) { file.clear(); }, "it is cut off");
  damage([](std::string &file) { file += "more"; }, "4 bytes follow its end");
  damage([](std::string &file) { file = "#!/bin/sh\n"; },
         "it is no cache entry");
  damage([](std::string &file) { file.assign(file.size(), '\0'); },
         "it is no cache entry");
  damage(
      [](std::string &file) {
        file = encodeCacheEntry(makeKey(1), makeEntry("another"));
      },
      "it holds another key than its name says");
}

TEST_F(DiskCacheTest, dropsWhatIsNoFileOfTheUser) {
  auto replace = [&](const std::function<void(const char *)> &change,
                     const std::string &reason) {
    DiskCache(options()).store(makeKey(0), makeEntry("zero"));
    change(pathOf(makeKey(0)).c_str());
    EXPECT_EQ(DiskCache(options()).find(makeKey(0)), nullptr);
    expectOneWarning(reason);
    EXPECT_EQ(DiskCache(options()).find(makeKey(0)), nullptr);
  };
  replace([](const char *path) { chmod(path, 0622); },
          "others may write to it");
  replace(
      [&](const char *path) {
        std::string target = root + "/target";
        std::filesystem::rename(path, target);
        ASSERT_EQ(symlink(target.c_str(), path), 0);
      },
      "it is a symbolic link");
  replace(
      [](const char *path) {
        std::filesystem::remove(path);
        ASSERT_EQ(mkfifo(path, 0600), 0);
      },
      "it is no regular file");
  replace(
      [](const char *path) {
        // The file is a hole, which takes no space on the disk.
        ASSERT_EQ(truncate(path, off_t(1) << 40), 0);
      },
      "it has 1099511627776 bytes");
}

TEST_F(DiskCacheTest, keepsDamageThatCannotBeRemovedOutOfUse) {
  DiskCache kernels(options());
  kernels.store(makeKey(1), makeEntry("one"));
  std::filesystem::create_directory(pathOf(makeKey(0)));
  EXPECT_EQ(cubinOf(kernels.getOrCreate(makeKey(0), creator("zero"))), "zero");
  expectOneWarning("is damaged and cannot be removed: it is no regular file");
  EXPECT_EQ(cubinOf(kernels.getOrCreate(makeKey(0), notCreated)), "zero");
  EXPECT_EQ(cubinOf(kernels.find(makeKey(1))), "one");
}

TEST_F(DiskCacheTest, removesWhatWasNotUsedForLongest) {
  CacheOptions small = options();
  small.sizeLimit = 100000;
  const std::string cubin = makeBytes(20000);
  for (unsigned i = 0; i != 4; ++i)
    DiskCache(small).store(makeKey(i), makeEntry(cubin));
  // The first entry has just been used; the third has been unused for longest.
  const time_t day = 24 * 60 * 60;
  setAge(pathOf(makeKey(0)), 9 * day);
  setAge(pathOf(makeKey(1)), 3 * day);
  setAge(pathOf(makeKey(2)), 5 * day);
  EXPECT_NE(DiskCache(small).find(makeKey(0)), nullptr);

  // Five entries are too many: room is made down to seven eighths.
  DiskCache(small).store(makeKey(4), makeEntry(cubin));
  for (unsigned i : {0, 1, 3, 4})
    EXPECT_NE(DiskCache(small).find(makeKey(i)), nullptr) << i;
  EXPECT_EQ(DiskCache(small).find(makeKey(2)), nullptr);
}

TEST_F(DiskCacheTest, staysWithinItsSize) {
  CacheOptions small = options();
  small.sizeLimit = 100000;
  DiskCache kernels(small);
  for (unsigned i = 0; i != 50; ++i) {
    kernels.store(makeKey(i), makeEntry(makeBytes(1000 * (i % 30))));
    uint64_t bytes = 0;
    for (const std::string &file : filesEndingIn(".kernel"))
      bytes += std::filesystem::file_size(cache + "/" + file);
    EXPECT_LE(bytes, small.sizeLimit);
    EXPECT_NE(DiskCache(small).find(makeKey(i)), nullptr);
  }
}

TEST_F(DiskCacheTest, keepsInMemoryWhatIsLargerThanItsSize) {
  CacheOptions small = options();
  small.sizeLimit = 10000;
  DiskCache kernels(small);
  kernels.store(makeKey(0), makeEntry("zero"));
  kernels.store(makeKey(1), makeEntry(makeBytes(10000)));
  expectOneWarning("more than the cache folder may hold");
  kernels.store(makeKey(2), makeEntry(makeBytes(10000)));
  EXPECT_EQ(cubinOf(kernels.getOrCreate(makeKey(1), notCreated)),
            makeBytes(10000));
  EXPECT_NE(DiskCache(small).find(makeKey(0)), nullptr);
  EXPECT_EQ(DiskCache(small).find(makeKey(1)), nullptr);
}

TEST_F(DiskCacheTest, notesUseOnceADay) {
  DiskCache(options()).store(makeKey(0), makeEntry("zero"));
  auto lastUsed = [&] {
    struct stat status;
    EXPECT_EQ(stat(pathOf(makeKey(0)).c_str(), &status), 0);
    return std::time(nullptr) - status.st_mtime;
  };
  const time_t hour = 60 * 60;
  setAge(pathOf(makeKey(0)), 23 * hour);
  EXPECT_NE(DiskCache(options()).find(makeKey(0)), nullptr);
  EXPECT_GE(lastUsed(), 23 * hour);
  setAge(pathOf(makeKey(0)), 25 * hour);
  EXPECT_OK(DiskCache(options()).list().takeError());
  EXPECT_OK(DiskCache(options()).verify().takeError());
  EXPECT_GE(lastUsed(), 25 * hour) << "looking is not using";
  EXPECT_NE(DiskCache(options()).find(makeKey(0)), nullptr);
  EXPECT_LT(lastUsed(), hour);
}

TEST_F(DiskCacheTest, readsFast) {
  const std::string cubin = makeBytes(200 * 1000);
  for (unsigned i = 0; i != 50; ++i)
    DiskCache(options()).store(makeKey(i), makeEntry(cubin));
  using Clock = std::chrono::steady_clock;
  Clock::duration best = Clock::duration::max();
  for (unsigned i = 0; i != 50; ++i) {
    Clock::time_point start = Clock::now();
    DiskCache kernels(options());
    DiskCache::EntryPointer entry = kernels.find(makeKey(i));
    best = std::min(best, Clock::now() - start);
    EXPECT_EQ(cubinOf(entry), cubin);
  }
  auto microseconds =
      std::chrono::duration_cast<std::chrono::microseconds>(best).count();
  RecordProperty("microseconds", static_cast<int>(microseconds));
  EXPECT_LT(microseconds, 1000);
}

} // namespace
