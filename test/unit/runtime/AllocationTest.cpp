//===- AllocationTest.cpp - What happens when memory runs out -------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// Each test does something again and again, and has the first, the second, the
// third... allocation fail, until none is left to fail. Every time the code
// must throw std::bad_alloc, report an error or succeed; and work afterwards as
// if nothing had happened.
//
//===----------------------------------------------------------------------===//

#include "Allocations.h"
#include "CacheSupport.h"
#include "bastile/runtime/HostExecutor.h"
#include "bastile/runtime/Npy.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <new>
#include <utility>

using namespace bastile::runtime;

namespace {

/// While it lives, all allocations after the next `count` fail.
class LittleMemory {
public:
  explicit LittleMemory(int64_t count) { allocationsLeft = count; }
  ~LittleMemory() { allocationsLeft = -1; }
  LittleMemory(const LittleMemory &) = delete;
  LittleMemory &operator=(const LittleMemory &) = delete;

  static bool ranOut() { return allocationsLeft == 0; }
};

/// Calls `work(count)` with fewer allocations than it makes, and finally with
/// enough. Returns how many it makes.
template <typename Work>
int64_t failEachAllocation(Work work) {
  for (int64_t count = 0; count != 100000; ++count) {
    bool ranOut;
    try {
      LittleMemory memory(count);
      work();
      ranOut = LittleMemory::ranOut();
    } catch (const std::bad_alloc &) {
      ranOut = true;
    }
    if (!ranOut)
      return count;
  }
  ADD_FAILURE() << "it allocates without end";
  return 0;
}

const char *const add = R"({
  "name": "add",
  "inputs": [{"name": "x", "type": "f32", "shape": [null, 4]}],
  "outputs": [{"name": "y", "type": "f32",
               "shape": [{"input": 0, "dimension": 0}, 4]}],
  "temporaries": [{"type": "f32", "shape": [{"mul": ["multiprocessors", 4]}],
                   "zeroed_by": "runtime"}],
  "launches": [{"kernel": "a kernel whose name is on the heap", "leading": 1,
    "operands": [{"input": 0, "rows": true}, {"output": 0, "rows": true},
                 {"temporary": 0}],
    "variants": [{"entry": "add", "leading": 1, "alignment": [4, 4, 4],
      "arguments": [{"size": 0}, {"pointer": 0}, {"pointer": 1},
                    {"stride": 0, "dimension": 0}],
      "grid": {"ceildiv": ["rows", 2]}, "block": 1}]}]})";

TEST(AllocationTest, metadataIsReadOrNot) {
  const std::string text = document(add);
  // The library that reads JSON allocates to destroy a document. Where that
  // fails, the process ends: in a child, and by abort() alone.
  auto succeeds = [&](int64_t count) {
    const pid_t child = fork();
    if (child == 0) {
      // The message is the library's.
      fclose(stderr);
      try {
        LittleMemory memory(count);
        Expected<Metadata> metadata = parseMetadata(text);
        _exit(metadata ? 0 : 1);
      } catch (const std::bad_alloc &) {
        _exit(1);
      }
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) || WTERMSIG(status) == SIGABRT)
        << "after " << count << " allocations";
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  };
  int64_t count = 0;
  while (count != 10000 && !succeeds(count))
    ++count;
  EXPECT_GT(count, 50);
  EXPECT_LT(count, 10000);
}

TEST(AllocationTest, anErrorStaysOne) {
  const Function function = parseFunction(add);
  const std::vector<TensorView> inputs = {
      TensorView::contiguous(nullptr, ElementType::F16, {3, 4})};
  EXPECT_GT(failEachAllocation([&] {
              EXPECT_TRUE(bool(checkInputs(function, inputs)));
              EXPECT_FALSE(bool(parseNpy("no array")));
            }),
            2);
}

TEST(AllocationTest, arraysAreReadOrNot) {
  const NpyArray array = {ElementType::F32, {2, 2}, std::string(16, 'a')};
  const std::string file = formatNpy(array);
  EXPECT_GT(failEachAllocation([&] {
              Expected<NpyArray> read = parseNpy(file);
              if (read)
                EXPECT_EQ(read->data, array.data);
              EXPECT_EQ(formatNpy(array), file);
            }),
            3);
}

TEST(AllocationTest, launchesArePlannedAndRunOrNot) {
  const Function function = parseFunction(add);
  float x[12] = {}, y[12] = {}, temporary[8] = {};
  const std::vector<TensorView> inputs = {
      TensorView::contiguous(x, ElementType::F32, {3, 4})};
  const std::vector<TensorView> outputs = {
      TensorView::contiguous(y, ElementType::F32, {3, 4})};
  const std::vector<TensorView> temporaries = {
      TensorView::contiguous(temporary, ElementType::F32, {8})};
  // One object is used throughout, as programs do, whatever a failure leaves in
  // it.
  static std::atomic<int> blocks;
  HostExecutor executor(
      [](const std::string &) {
        return reinterpret_cast<void *>(
            +[](void **, int64_t begin, int64_t end, int64_t) {
              blocks += static_cast<int>(end - begin);
            });
      },
      /*threads=*/2);
  LaunchPlan plan;
  auto run = [&] {
    blocks = 0;
    Error error = plan.prepare(function, {inputs, outputs, temporaries}, 2);
    if (!error)
      error = execute(plan, executor);
    if (!error)
      EXPECT_EQ(blocks, 2);
    return !error;
  };
  EXPECT_GT(failEachAllocation([&] { (void)run(); }), 3);
  EXPECT_TRUE(run());
}

class CacheAllocationTest : public CacheTest {
protected:
  static CacheEntry makeEntry() {
    return {"an entry whose name is on the heap",
            {{"code", std::string(100, 'c')}, {"metadata", "{}"}}};
  }

  const CacheKey key{{{"source", "a source that is on the heap as well"},
                      {"target", "sm_90"}}};
};

TEST_F(CacheAllocationTest, entriesAreReadOrNot) {
  const std::string file = encodeCacheEntry(key, makeEntry());
  EXPECT_GT(failEachAllocation([&] {
              Expected<CacheEntryFile> read = decodeCacheEntry(file);
              if (read)
                EXPECT_EQ(read->entry.sections.front().bytes.size(), 100u);
            }),
            10);
}

TEST_F(CacheAllocationTest, anEntryIsMadeByWhoeverAsksNext) {
  CacheOptions options = this->options();
  // Warnings of temporary failures are allowed.
  options.warn = [](const std::string &) {};
  DiskCache disk(options);
  auto get = [&] {
    Expected<DiskCache::EntryPointer> entry = disk.getOrCreate(
        key, []() -> Expected<CacheEntry> { return makeEntry(); });
    if (entry)
      EXPECT_EQ((*entry)->sections.size(), 2u);
    return bool(entry);
  };
  EXPECT_GT(failEachAllocation([&] {
              (void)get();
              // The next call does all of the work once more.
              const int64_t left = std::exchange(allocationsLeft, -1);
              std::filesystem::remove_all(cache);
              (void)disk.clear();
              allocationsLeft = left;
            }),
            20);
  // No claim and no lock is left, for which this would wait.
  EXPECT_TRUE(get());
}

} // namespace
