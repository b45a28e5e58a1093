//===- CacheSupport.h - The fixture of the cache's tests --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEST_UNIT_RUNTIME_CACHESUPPORT_H
#define BASTILE_TEST_UNIT_RUNTIME_CACHESUPPORT_H

#include "Support.h"
#include "bastile/runtime/DiskCache.h"
#include "bastile/runtime/Files.h"

#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace bastile::runtime {

/// Warnings in the order in which they were given.
class Warnings {
public:
  CacheOptions::Warn collector() {
    return [this](const std::string &message) {
      std::lock_guard<std::mutex> guard(mutex);
      messages.push_back(message);
    };
  }

  /// Expects exactly one warning, which contains `part`.
  void expectOne(const std::string &part) const {
    ASSERT_EQ(messages.size(), 1u) << (messages.empty() ? "" : messages[1]);
    EXPECT_NE(messages[0].find(part), std::string::npos) << messages[0];
  }

  std::vector<std::string> messages;

private:
  std::mutex mutex;
};

/// A test with a folder of its own, in which `cache` is yet to be created.
class CacheTest : public testing::Test {
protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "bastile-cache-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root = name;
    cache = root + "/cache";
  }

  void TearDown() override {
    EXPECT_EQ(warnings.messages, std::vector<std::string>());
    std::filesystem::remove_all(root);
  }

  /// Options whose warnings fail the test, unless `expectOneWarning` expects
  /// them.
  CacheOptions options() {
    CacheOptions options;
    options.folder = cache;
    options.warn = warnings.collector();
    return options;
  }

  void expectOneWarning(const std::string &part) {
    warnings.expectOne(part);
    warnings.messages.clear();
  }

  std::string pathOf(const CacheKey &key) const {
    return cache + "/" + key.hash() + ".kernel";
  }

  /// The names in the cache's folder that end in `suffix`.
  std::vector<std::string> filesEndingIn(const std::string &suffix) const {
    std::vector<std::string> files;
    for (const auto &file : std::filesystem::directory_iterator(cache)) {
      std::string name = file.path().filename();
      if (name.size() >= suffix.size() &&
          name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0)
        files.push_back(name);
    }
    return files;
  }

  std::string root;
  std::string cache;
  Warnings warnings;
};

inline CacheKey makeKey(const std::string &ir) {
  return CacheKey({{"ir", ir}, {"target", "sm_90"}});
}

inline CacheKey makeKey(unsigned number) {
  return makeKey("kernel " + std::to_string(number));
}

/// Bytes that do not compress and differ with `seed`.
inline std::string makeBytes(size_t size, unsigned seed = 0) {
  std::string bytes(size, '\0');
  uint64_t state = seed * 2 + 1;
  for (char &byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(state >> 56);
  }
  return bytes;
}

inline CacheEntry makeEntry(const std::string &cubin) {
  return {"geglu", {{"metadata", "{}"}, {"cubin", cubin}}};
}

inline DiskCache::Creator creator(const std::string &cubin) {
  return [cubin]() -> Expected<CacheEntry> { return makeEntry(cubin); };
}

/// A creation that must not happen.
inline Expected<CacheEntry> notCreated() {
  ADD_FAILURE() << "the entry is created";
  return makeEntry("created");
}

inline std::string cubinOf(const DiskCache::EntryPointer &entry) {
  const std::string *cubin = entry ? entry->find("cubin") : nullptr;
  return cubin ? *cubin : "no cubin";
}

inline std::string cubinOf(Expected<DiskCache::EntryPointer> entry) {
  return entry ? cubinOf(*entry) : entry.takeError().message();
}

/// Sets when `path` was last used.
inline void setAge(const std::string &path, time_t seconds) {
  timespec time = {std::time(nullptr) - seconds, 0};
  const timespec times[2] = {time, time};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0)
      << path;
}

/// Calls `body` in a child, which exits with what it returns.
inline pid_t startProcess(const std::function<int()> &body) {
  pid_t child = fork();
  if (child == 0)
    _exit(body());
  return child;
}

/// The exit status of a child, or -1 if a signal ended it.
inline int waitForProcess(pid_t child) {
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Calls `body` in a child; failed expectations in it are failures here.
inline void runProcess(const std::function<void()> &body) {
  EXPECT_EQ(waitForProcess(startProcess([&] {
              body();
              return testing::Test::HasFailure() ? 1 : 0;
            })),
            0);
}

} // namespace bastile::runtime

#endif // BASTILE_TEST_UNIT_RUNTIME_CACHESUPPORT_H
