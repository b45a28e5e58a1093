//===- CacheFailuresTest.cpp - Tests of disks and folders that refuse -----===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "CacheSupport.h"

#include <csignal>
#include <cstddef>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

using namespace bastile::runtime;

namespace {

/// Gives a file, a folder or a link to another user. This needs root and, in a
/// container, more.
bool giveAway(const std::string &path) {
  return lchown(path.c_str(), 54321, 54321) == 0;
}

class CacheFailuresTest : public CacheTest {
protected:
  /// Calls `body` in a process that the permissions of files apply to, even if
  /// its user is root.
  void runWithoutPrivileges(const std::function<void()> &body) {
    std::filesystem::create_directory(cache);
    ASSERT_EQ(chmod(cache.c_str(), 0700), 0);
    runProcess([&] {
      __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
      __user_cap_data_struct none[2] = {};
      ASSERT_EQ(syscall(SYS_capset, &header, none), 0);
      body();
      EXPECT_EQ(warnings.messages, std::vector<std::string>());
    });
  }

  /// Expects that entries are kept in memory, and one warning that says `part`.
  void expectMemoryOnly(const std::string &part) {
    DiskCache kernels(options());
    for (unsigned repeat = 0; repeat != 2; ++repeat) {
      auto create = repeat ? notCreated : creator(makeBytes(200000));
      EXPECT_EQ(cubinOf(kernels.getOrCreate(makeKey(1000), create)),
                makeBytes(200000));
    }
    EXPECT_EQ(cubinOf(kernels.store(makeKey(1001), makeEntry("stored"))),
              "stored");
    EXPECT_EQ(cubinOf(kernels.find(makeKey(1001))), "stored");
    expectOneWarning(part);
  }
};

TEST_F(CacheFailuresTest, fallsBackToMemoryOnAFullDisk) {
  const int notPermitted = 2;
  pid_t child = startProcess([&] {
    std::filesystem::create_directory(cache);
    // The test has a name space of its own, so that nothing is left mounted.
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", cache.c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0)
      return notPermitted;
    DiskCache kernels(options());
    unsigned stored = 0;
    for (; warnings.messages.empty(); ++stored)
      kernels.store(makeKey(stored), makeEntry(makeBytes(5000, stored)));
    EXPECT_GT(stored, 5u);
    expectOneWarning("No space left on device; kernels compiled from here on "
                     "are kept in memory only");
    kernels.store(makeKey(stored), makeEntry(makeBytes(5000, stored)));
    // Entries on the disk and entries in memory are both found.
    for (unsigned i = 0; i <= stored; ++i)
      EXPECT_EQ(cubinOf(kernels.find(makeKey(i))), makeBytes(5000, i)) << i;
    EXPECT_TRUE(filesEndingIn(".tmp").empty());
    EXPECT_EQ(filesEndingIn(".kernel").size(), stored - 1);
    expectMemoryOnly("No space left on device");
    return HasFailure() ? 1 : 0;
  });
  int status = waitForProcess(child);
  if (status == notPermitted)
    GTEST_SKIP() << "mounting a file system is not permitted";
  EXPECT_EQ(status, 0);
}

TEST_F(CacheFailuresTest, fallsBackToMemoryWhenFilesMayNotGrow) {
  runProcess([&] {
    const rlimit limit = {100000, 100000};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    // Python ignores this signal, too.
    signal(SIGXFSZ, SIG_IGN);
    expectMemoryOnly("File too large; kernels compiled from here on are kept "
                     "in memory only");
    EXPECT_TRUE(filesEndingIn(".tmp").empty());
    EXPECT_TRUE(filesEndingIn(".kernel").empty());
  });
}

TEST_F(CacheFailuresTest, fallsBackToMemoryWithoutFilesToOpen) {
  runProcess([&] {
    DiskCache(options()).store(makeKey(0), makeEntry("zero"));
    const rlimit limit = {0, 0};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    expectMemoryOnly("Too many open files");
  });
}

/// Makes locking fail in this process, as on some network file systems.
void forbidLocks() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_OFD_SETLK, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST_F(CacheFailuresTest, doesWithoutLocks) {
  runProcess([&] {
    forbidLocks();
    DiskCache kernels(options());
    for (unsigned i = 0; i != 3; ++i)
      EXPECT_EQ(cubinOf(kernels.getOrCreate(makeKey(i), creator("entry"))),
                "entry");
    expectOneWarning("No locks available; processes that start at once may "
                     "compile the same kernels");
    ASSERT_OK(writeFile(pathOf(makeKey(0)), "damaged"));
    EXPECT_EQ(DiskCache(options()).find(makeKey(0)), nullptr);
    expectOneWarning("is dropped");
    EXPECT_EQ(cubinOf(DiskCache(options()).find(makeKey(1))), "entry");

    // Without locks, only a file's age tells that its writer is gone.
    const std::string file = cache + "/" + makeKey(0).hash() + ".1.tmp";
    ASSERT_OK(writeFile(file, "half of"));
    setAge(file, 60);
    EXPECT_OK(DiskCache(options()).clear().takeError());
    EXPECT_TRUE(std::filesystem::exists(file));
    setAge(file, 2 * 60 * 60);
    EXPECT_OK(DiskCache(options()).clear().takeError());
    EXPECT_FALSE(std::filesystem::exists(file));
  });
}

TEST_F(CacheFailuresTest, readsAFolderThatCannotBeWritten) {
  DiskCache(options()).store(makeKey(0), makeEntry("zero"));
  for (bool locked : {true, false}) {
    runWithoutPrivileges([&] {
      // Whether the lock file exists decides which step fails first.
      if (!locked)
        unlink((cache + "/lock").c_str());
      ASSERT_EQ(chmod(cache.c_str(), 0500), 0);
      setAge(pathOf(makeKey(0)), 10 * 24 * 60 * 60);
      EXPECT_EQ(
          cubinOf(DiskCache(options()).getOrCreate(makeKey(0), notCreated)),
          "zero");
      EXPECT_EQ(warnings.messages, std::vector<std::string>());
      expectMemoryOnly("Permission denied; kernels compiled from here on are "
                       "kept in memory only");
      EXPECT_OK(DiskCache(options()).list().takeError());
      expectError(DiskCache(options()).clear().takeError(), "cannot remove");
      ASSERT_EQ(chmod(cache.c_str(), 0700), 0);
    });
  }
}

TEST_F(CacheFailuresTest, reportsDamageThatItCannotRemove) {
  runWithoutPrivileges([&] {
    DiskCache(options()).store(makeKey(0), makeEntry("zero"));
    ASSERT_OK(writeFile(pathOf(makeKey(0)), "damaged"));
    ASSERT_EQ(chmod(cache.c_str(), 0500), 0);
    DiskCache kernels(options());
    EXPECT_EQ(cubinOf(kernels.getOrCreate(makeKey(0), creator("again"))),
              "again");
    expectOneWarning("is damaged and cannot be removed: it is no cache entry "
                     "(Permission denied)");
    EXPECT_EQ(cubinOf(kernels.getOrCreate(makeKey(0), notCreated)), "again");
    Expected<CacheCheck> check = DiskCache(options()).verify();
    ASSERT_OK(check.takeError());
    ASSERT_EQ(check->damaged.size(), 1u);
    EXPECT_FALSE(check->damaged[0].removed);
    ASSERT_EQ(chmod(cache.c_str(), 0700), 0);
  });
}

TEST_F(CacheFailuresTest, fallsBackToMemoryWithoutAFolder) {
  runWithoutPrivileges([&] {
    ASSERT_EQ(chmod(cache.c_str(), 0500), 0);
    const std::string parent = cache;
    cache = parent + "/new";
    expectMemoryOnly("cannot create the folder '" + cache + "'");
    cache = parent + "/new/er";
    expectMemoryOnly("cannot create the folder '" + parent + "/new'");
  });
  ASSERT_OK(writeFile(root + "/file", ""));
  cache = root + "/file";
  expectMemoryOnly("cannot open the cache folder '" + cache +
                   "': Not a directory");
}

TEST_F(CacheFailuresTest, refusesAFolderOfSomebodyElse) {
  DiskCache(options()).store(makeKey(0), makeEntry("zero"));
  std::string owner = "user 54321";
  const bool givenAway = giveAway(cache);
  if (!givenAway) {
    // The system's folders are root's.
    if (geteuid() == 0)
      GTEST_SKIP() << "giving a folder away is not permitted";
    cache = "/usr";
    owner = "user 0 (root)";
  }
  const std::string refused = "the cache folder '" + cache +
                              "' is refused, since it belongs to " + owner;
  EXPECT_EQ(DiskCache(options()).find(makeKey(0)), nullptr);
  expectOneWarning(refused);
  expectMemoryOnly(refused);
  expectError(DiskCache(options()).list().takeError(), refused);
  expectError(DiskCache(options()).clear().takeError(), refused);
  expectError(DiskCache(options()).verify().takeError(), refused);
  if (givenAway) {
    EXPECT_EQ(filesEndingIn(".kernel").size(), 1u);
  }
}

TEST_F(CacheFailuresTest, refusesAFolderThatOthersMayWriteTo) {
  for (mode_t mode : {0770, 0702, 0777}) {
    std::filesystem::create_directory(cache);
    ASSERT_EQ(chmod(cache.c_str(), mode), 0);
    expectMemoryOnly("others may write to it (mode 07");
    EXPECT_TRUE(std::filesystem::is_empty(cache));
  }
  ASSERT_EQ(chmod(cache.c_str(), 0755), 0);
  DiskCache(options()).store(makeKey(0), makeEntry("zero"));
  EXPECT_EQ(cubinOf(DiskCache(options()).find(makeKey(0))), "zero");
}

TEST_F(CacheFailuresTest, followsOnlyLinksOfTheUser) {
  const std::string target = root + "/target";
  ASSERT_EQ(mkdir(target.c_str(), 0700), 0);
  ASSERT_EQ(symlink(target.c_str(), cache.c_str()), 0);
  DiskCache(options()).store(makeKey(0), makeEntry("zero"));
  EXPECT_EQ(cubinOf(DiskCache(options()).find(makeKey(0))), "zero");
  if (!giveAway(cache))
    GTEST_SKIP() << "giving a link away is not permitted";
  expectMemoryOnly("since the symbolic link belongs to user 54321");
  cache += '/';
  expectMemoryOnly("since the symbolic link belongs to user 54321");
}

TEST_F(CacheFailuresTest, dropsEntriesOfSomebodyElse) {
  DiskCache(options()).store(makeKey(0), makeEntry("zero"));
  if (!giveAway(pathOf(makeKey(0))))
    GTEST_SKIP() << "giving a file away is not permitted";
  EXPECT_EQ(
      cubinOf(DiskCache(options()).getOrCreate(makeKey(0), creator("again"))),
      "again");
  expectOneWarning("it belongs to user 54321");

  // This entry cannot even be opened.
  ASSERT_TRUE(giveAway(pathOf(makeKey(0))));
  runWithoutPrivileges([&] {
    EXPECT_EQ(DiskCache(options()).find(makeKey(0)), nullptr);
    expectOneWarning("it is foreign: Permission denied");
  });
  EXPECT_FALSE(std::filesystem::exists(pathOf(makeKey(0))));
}

} // namespace
