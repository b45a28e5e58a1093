//===- CacheProcessesTest.cpp - Tests of a cache that processes share -----===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "CacheSupport.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <random>
#include <thread>

using namespace bastile::runtime;

namespace {

/// A pipe by which processes signal each other and the test, a byte at a time.
class Pipe {
public:
  Pipe() { EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0); }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }

  void send(char byte = '.') { EXPECT_EQ(write(ends[1], &byte, 1), 1); }
  char receive() {
    char byte = 0;
    EXPECT_EQ(read(ends[0], &byte, 1), 1);
    return byte;
  }

private:
  int ends[2];
};

class CacheProcessesTest : public CacheTest {
protected:
  /// Appends to a file that all processes share.
  void note(const std::string &what, const std::string &line) {
    int file = open((root + "/" + what).c_str(),
                    O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    std::string text = line + "\n";
    EXPECT_EQ(write(file, text.data(), text.size()), ssize_t(text.size()));
    close(file);
  }

  /// The lines noted, sorted.
  std::vector<std::string> notes(const std::string &what) {
    std::vector<std::string> lines;
    Expected<std::string> text = readFile(root + "/" + what);
    if (!text)
      return lines;
    size_t start = 0;
    for (size_t end; (end = text->find('\n', start)) != std::string::npos;
         start = end + 1)
      lines.push_back(text->substr(start, end - start));
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  /// Asks for `keys` entries in eight processes at once, each in an order of
  /// its own.
  void startEight(unsigned keys);

  /// A child that is creating `key`, and stays at it until it is killed.
  pid_t startCreating(const CacheKey &key) {
    Pipe ready;
    pid_t child = startProcess([&] {
      (void)DiskCache(options()).getOrCreate(key,
                                             [&]() -> Expected<CacheEntry> {
                                               ready.send();
                                               for (;;)
                                                 pause();
                                             });
      return 0;
    });
    ready.receive();
    return child;
  }

  void end(pid_t child) {
    EXPECT_EQ(kill(child, SIGKILL), 0);
    EXPECT_EQ(waitForProcess(child), -1);
  }
};

void CacheProcessesTest::startEight(unsigned keys) {
  Pipe go;
  std::vector<pid_t> children;
  for (unsigned child = 0; child != 8; ++child) {
    children.push_back(startProcess([&, child] {
      go.receive();
      CacheOptions noting = options();
      noting.warn = [&](const std::string &text) { note("warnings", text); };
      DiskCache kernels(noting);
      for (unsigned i = 0; i != keys; ++i) {
        unsigned number = (i * 7 + child * 3) % keys;
        auto create = [&]() -> Expected<CacheEntry> {
          note("created", std::to_string(100 + number));
          std::this_thread::sleep_for(std::chrono::milliseconds(3));
          return makeEntry(makeBytes(10000, number));
        };
        if (cubinOf(kernels.getOrCreate(makeKey(number), create)) !=
            makeBytes(10000, number))
          return 1;
      }
      return 0;
    }));
  }
  for (unsigned child = 0; child != 8; ++child)
    go.send();
  for (pid_t child : children)
    EXPECT_EQ(waitForProcess(child), 0);
}

TEST_F(CacheProcessesTest, createOnceWhenEightStartAtOnce) {
  const unsigned keys = 20;
  startEight(keys);
  std::vector<std::string> all;
  for (unsigned i = 0; i != keys; ++i)
    all.push_back(std::to_string(100 + i));
  EXPECT_EQ(notes("created"), all);
  EXPECT_TRUE(notes("warnings").empty());

  // The same with every entry damaged: one warning and one creation for each.
  std::mt19937 random(1);
  for (unsigned i = 0; i != keys; ++i) {
    std::string file = *readFile(pathOf(makeKey(i)));
    if (i % 2)
      file[random() % file.size()] ^= 1 + random() % 255;
    else
      file.resize(random() % file.size());
    ASSERT_OK(writeFile(pathOf(makeKey(i)), file));
  }
  std::filesystem::remove(root + "/created");
  startEight(keys);
  EXPECT_EQ(notes("created"), all);
  std::vector<std::string> warned = notes("warnings");
  EXPECT_EQ(warned.size(), keys);
  EXPECT_EQ(std::unique(warned.begin(), warned.end()), warned.end());
}

TEST_F(CacheProcessesTest, findEntriesWholeAfterRandomKills) {
  std::vector<CacheEntry> entries;
  for (unsigned i = 0; i != 7; ++i)
    entries.push_back(makeEntry(makeBytes(1 << 20, i)));
  std::random_device seed;
  std::mt19937 random(seed());
  size_t leftovers = 0;
  uint64_t intact = 0;
  // On a machine that is busy, hardly any of the first rounds stores anything.
  for (unsigned round = 0; round < 100 || (intact < 5 && round < 5000);
       ++round) {
    pid_t writer = startProcess([&] {
      DiskCache kernels(options());
      // Each key gets one content after the other.
      for (unsigned i = round;; ++i)
        kernels.store(makeKey(i % 5), entries[i % 7]);
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 8000));
    end(writer);
    Expected<CacheCheck> check = DiskCache(options()).verify();
    ASSERT_OK(check.takeError());
    ASSERT_TRUE(check->damaged.empty()) << check->damaged[0].problem;
    intact = check->intact.entries;
    if (!std::filesystem::exists(cache))
      continue;
    for (const std::string &file : filesEndingIn(".tmp"))
      setAge(cache + "/" + file, 60);
    leftovers += filesEndingIn(".tmp").size();
  }
  EXPECT_EQ(intact, 5u);
  RecordProperty("leftovers", static_cast<int>(leftovers));
  DiskCache(options()).store(makeKey(5), makeEntry("five"));
  EXPECT_EQ(filesEndingIn(".tmp"), std::vector<std::string>());
}

TEST_F(CacheProcessesTest, takeOverFromTheKilled) {
  pid_t creating = startCreating(makeKey(0));
  // A waiting process takes over as soon as the other is gone.
  Pipe waiting;
  pid_t waiter = startProcess([&] {
    waiting.send();
    return cubinOf(DiskCache(options()).getOrCreate(makeKey(0),
                                                    creator("zero"))) == "zero"
               ? 0
               : 1;
  });
  waiting.receive();
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(waitpid(waiter, nullptr, WNOHANG), 0) << "it does not wait";
  // Nothing waits for the lock of another key.
  EXPECT_EQ(
      cubinOf(DiskCache(options()).getOrCreate(makeKey(1), creator("one"))),
      "one");
  end(creating);
  EXPECT_EQ(waitForProcess(waiter), 0);
  EXPECT_EQ(cubinOf(DiskCache(options()).find(makeKey(0))), "zero");
}

TEST_F(CacheProcessesTest, doNotWaitForTheStoppedForever) {
  pid_t stopped = startCreating(makeKey(0));
  CacheOptions impatient = options();
  impatient.patience = std::chrono::milliseconds(20);
  EXPECT_EQ(
      cubinOf(DiskCache(impatient).getOrCreate(makeKey(0), creator("zero"))),
      "zero");
  expectOneWarning("it is compiled here as well");
  EXPECT_EQ(cubinOf(DiskCache(options()).find(makeKey(0))), "zero");
  end(stopped);
}

TEST_F(CacheProcessesTest, leaveTheFilesOfLivingWriters) {
  pid_t writer = startCreating(makeKey(0));
  const std::string temporary = cache + "/" + makeKey(0).hash() + ".1.tmp";
  ASSERT_OK(writeFile(temporary, "half of"));
  setAge(temporary, 60);
  DiskCache(options()).store(makeKey(1), makeEntry("one"));
  EXPECT_TRUE(std::filesystem::exists(temporary));
  end(writer);
  DiskCache(options()).store(makeKey(2), makeEntry("two"));
  EXPECT_FALSE(std::filesystem::exists(temporary));
}

TEST_F(CacheProcessesTest, forkWithoutTakingLocksAlong) {
  // This child was forked while its parent held a lock, and outlives the
  // parent.
  Pipe forked;
  pid_t parent = startProcess([&] {
    (void)DiskCache(options()).getOrCreate(
        makeKey(0), [&]() -> Expected<CacheEntry> {
          pid_t child = startProcess([&] {
            // The lock is still the parent's.
            CacheOptions impatient;
            impatient.folder = cache;
            impatient.patience = std::chrono::milliseconds(0);
            bool warned = false;
            impatient.warn = [&](const std::string &) { warned = true; };
            (void)DiskCache(impatient).getOrCreate(
                makeKey(0),
                []() -> Expected<CacheEntry> { return Error("not compiled"); });
            forked.send(warned ? 'w' : 'x');
            for (;;)
              pause();
            return 0;
          });
          note("grandchild", std::to_string(child));
          for (;;)
            pause();
        });
    return 0;
  });
  EXPECT_EQ(forked.receive(), 'w') << "it has taken its parent's lock";
  while (notes("grandchild").empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  pid_t grandchild = std::stoi(notes("grandchild")[0]);
  end(parent);
  EXPECT_EQ(kill(grandchild, 0), 0);
  CacheOptions impatient = options();
  impatient.patience = std::chrono::milliseconds(500);
  EXPECT_EQ(
      cubinOf(DiskCache(impatient).getOrCreate(makeKey(0), creator("zero"))),
      "zero");
  EXPECT_EQ(kill(grandchild, SIGKILL), 0);
}

TEST_F(CacheProcessesTest, forkWithThreadsInsideTheCache) {
  DiskCache kernels(options());
  kernels.store(makeKey(0), makeEntry("zero"));
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread != 3; ++thread) {
    threads.emplace_back([&, thread] {
      for (unsigned i = 0; !stop; ++i)
        EXPECT_OK(kernels
                      .getOrCreate(makeKey(1 + (i * 3 + thread) % 200),
                                   creator("entry"))
                      .takeError());
    });
  }
  for (unsigned round = 0; round != 50; ++round) {
    pid_t child = startProcess([&] {
      // A child that hangs is ended, and fails.
      alarm(10);
      for (unsigned i = 0; i != 10; ++i)
        if (cubinOf(kernels.getOrCreate(makeKey(1 + (round + i) % 200),
                                        creator("entry"))) != "entry")
          return 1;
      return cubinOf(kernels.find(makeKey(0))) == "zero" ? 0 : 1;
    });
    EXPECT_EQ(waitForProcess(child), 0);
  }
  stop = true;
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace
