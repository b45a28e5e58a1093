//===- PrivateFileTest.cpp ------------------------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/PrivateFile.h"
#include "CacheSupport.h"

using namespace bastile::runtime;

namespace {

class PrivateFileTest : public CacheTest {
protected:
  Expected<std::optional<int>> open(int flags) {
    return openPrivateFile({cache, cache + "/sub"}, "log", flags);
  }

  /// Makes the file, with its folders.
  void make() {
    Expected<std::optional<int>> file = open(O_RDWR | O_CREAT);
    ASSERT_OK(file.takeError());
    ASSERT_TRUE(*file);
    close(**file);
  }

  void expectRefused(const std::string &reason) {
    expectError(open(O_RDONLY).takeError(), reason);
    expectError(open(O_RDWR | O_CREAT).takeError(), reason);
  }

  static mode_t modeOf(const std::string &path) {
    struct stat status;
    return stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }
};

TEST_F(PrivateFileTest, makesWhatIsMissingForTheUserAlone) {
  Expected<std::optional<int>> file = open(O_RDONLY);
  ASSERT_OK(file.takeError());
  EXPECT_FALSE(*file);
  EXPECT_FALSE(std::filesystem::exists(cache));
  make();
  EXPECT_EQ(modeOf(cache), 0700u);
  EXPECT_EQ(modeOf(cache + "/sub"), 0700u);
  EXPECT_EQ(modeOf(cache + "/sub/log"), 0600u);
  file = open(O_RDONLY);
  ASSERT_OK(file.takeError());
  ASSERT_TRUE(*file);
  close(**file);
}

TEST_F(PrivateFileTest, refusesFoldersThatOthersMayWriteTo) {
  make();
  for (const std::string &folder : {cache, cache + "/sub"}) {
    ASSERT_EQ(chmod(folder.c_str(), 0770), 0);
    expectRefused("others may write to it (mode 0770)");
    ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
  }
}

TEST_F(PrivateFileTest, refusesFilesThatOthersMayHaveWritten) {
  make();
  const std::string path = cache + "/sub/log";
  ASSERT_EQ(chmod(path.c_str(), 0622), 0);
  expectRefused("others may write to it");
  ASSERT_EQ(unlink(path.c_str()), 0);
  ASSERT_EQ(symlink("/etc/passwd", path.c_str()), 0);
  expectRefused("cannot open");
  ASSERT_EQ(unlink(path.c_str()), 0);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  expectError(open(O_RDONLY).takeError(), "it is no regular file");
}

TEST_F(PrivateFileTest, refusesTheFilesOfOtherUsers) {
  make();
  if (chown((cache + "/sub/log").c_str(), geteuid() + 1, -1) != 0)
    GTEST_SKIP() << "only the superuser gives files away";
  expectRefused("it belongs to user ");
}

} // namespace
