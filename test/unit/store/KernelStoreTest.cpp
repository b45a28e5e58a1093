//===- KernelStoreTest.cpp - Compilations that the store makes ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/KernelStore.h"
#include "gtest/gtest.h"

using namespace bastile;

namespace {

constexpr const char *scale = R"(
func.func @scale(%x: tensor<?x4096xf32>) -> tensor<?x4096xf32> {
  %0 = arith.addf %x, %x : tensor<?x4096xf32>
  return %0 : tensor<?x4096xf32>
}
)";

CompileRequest request(const char *target) {
  CompileRequest result;
  result.source = scale;
  result.name = "scale";
  result.target = target;
  return result;
}

/// The lines of PTX that begin a kernel.
std::vector<std::string> getEntries(const std::string &ptx) {
  const std::string keyword = ".visible .entry ";
  std::vector<std::string> result;
  for (size_t at = ptx.find(keyword); at != std::string::npos;
       at = ptx.find(keyword, at + 1)) {
    const size_t name = at + keyword.size();
    result.push_back(ptx.substr(name, ptx.find('(', name) - name));
  }
  return result;
}

using Names = std::vector<std::string>;

class KernelStoreTest : public testing::Test {
protected:
  /// The kernels whose code compiling `asked` generates.
  Names compile(const CompileRequest &asked) {
    auto entry = store.compile(asked);
    EXPECT_TRUE(bool(entry)) << entry.takeError().message();
    return entry ? getEntries(*(*entry)->find("code")) : Names();
  }

  KernelStore store{runtime::CacheOptions()};
};

TEST_F(KernelStoreTest, CompilesEveryVariant) {
  EXPECT_EQ(compile(request("sm_90")),
            (Names{"scale_kernel", "scale_kernel_unaligned"}));
}

TEST_F(KernelStoreTest, CompilesTheFirstVariants) {
  CompileRequest first = request("sm_90");
  first.kernels = KernelSelection::firstVariants();
  EXPECT_EQ(compile(first), (Names{"scale_kernel"}));
}

TEST_F(KernelStoreTest, CompilesOneKernel) {
  CompileRequest one = request("sm_90");
  one.kernels = KernelSelection::only("scale_kernel_unaligned");
  EXPECT_EQ(compile(one), (Names{"scale_kernel_unaligned"}));
}

TEST_F(KernelStoreTest, DescribesAllVariantsWhicheverItCompiles) {
  auto all = store.compile(request("sm_90"));
  CompileRequest first = request("sm_90");
  first.kernels = KernelSelection::firstVariants();
  auto some = store.compile(first);
  ASSERT_TRUE(all && some);
  EXPECT_EQ(*(*all)->find("metadata"), *(*some)->find("metadata"));
}

TEST_F(KernelStoreTest, LoadsTheFirstVariants) {
  auto program = store.load(request("sm_90"));
  ASSERT_TRUE(bool(program)) << program.takeError().message();
  EXPECT_EQ(getEntries(*program->entry->find("code")), Names{"scale_kernel"});
  EXPECT_EQ(program->program->metadata()
                .functions.front()
                .launches.front()
                .variants.size(),
            2u);
}

TEST_F(KernelStoreTest, LoadsTheWholeHostObject) {
  auto program = store.load(request("host"));
  ASSERT_TRUE(bool(program)) << program.takeError().message();
  auto all = store.compile(request("host"));
  ASSERT_TRUE(bool(all));
  EXPECT_EQ(program->entry, *all);
  EXPECT_EQ(store.compilations(), 1);
}

TEST_F(KernelStoreTest, CompilesAKernelWhenItIsWanted) {
  auto program = store.load(request("sm_90"));
  ASSERT_TRUE(bool(program));
  EXPECT_EQ(store.compilations(), 1);

  auto first = store.compileKernel(request("sm_90"), "scale_kernel");
  ASSERT_TRUE(bool(first)) << first.takeError().message();
  EXPECT_EQ(getEntries(*first), Names{"scale_kernel"});
  EXPECT_EQ(store.compilations(), 1);

  auto other = store.compileKernel(request("sm_90"), "scale_kernel_unaligned");
  ASSERT_TRUE(bool(other)) << other.takeError().message();
  EXPECT_EQ(getEntries(*other), Names{"scale_kernel_unaligned"});
  EXPECT_EQ(store.compilations(), 2);
}

TEST_F(KernelStoreTest, RefusesAKernelThatIsNotThere) {
  auto none = store.compileKernel(request("sm_90"), "scale");
  ASSERT_FALSE(bool(none));
  EXPECT_NE(none.takeError().message().find("there is no kernel 'scale'"),
            std::string::npos);
}

TEST_F(KernelStoreTest, CountsWhatItCompiles) {
  ASSERT_TRUE(bool(store.load(request("sm_90"))));
  EXPECT_EQ(store.compilations(), 1);
  ASSERT_TRUE(bool(store.compile(request("sm_90"))));
  EXPECT_EQ(store.compilations(), 2);
}

} // namespace
