//===- TensorMapTest.cpp - Limits of tensor maps, and their reuse ---------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Allocations.h"
#include "Product.h"
#include "bastile/runtime/HostExecutor.h"

#include <cstring>
#include <new>

using namespace bastile::runtime;

namespace {

/// Why there is no map of a tensor of bfloat16; empty if there is one.
std::string refuse(const Dimensions &sizes, const Dimensions &strides,
                   intptr_t address = 0x1000, bool isWritten = false) {
  std::string reason;
  const TensorView view = {fakeAddress(address), ElementType::BF16, sizes,
                           strides};
  const bool suits = suitsTensorMap(view, isWritten, &reason);
  EXPECT_EQ(suits, suitsTensorMap(view, isWritten, nullptr));
  EXPECT_EQ(suits, reason.empty());
  return reason;
}

TEST(TensorMapTest, hasLimits) {
  constexpr int64_t most = int64_t(1) << 31;
  EXPECT_EQ(refuse({300, 64}, {64, 1}), "");
  EXPECT_EQ(refuse({2, 3, 4, 5, 64}, {8192, 2048, 512, 64, 1}), "");
  EXPECT_EQ(refuse({300, 64}, {64, 1}, 0x1010), "");
  EXPECT_EQ(refuse({300, 64}, {64, 1}, 0x1008),
            "its address 0x1008 is no multiple of 16");

  EXPECT_EQ(refuse({most, 8}, {8, 1}), "");
  EXPECT_EQ(refuse({most + 1, 8}, {8, 1}),
            "its size 2147483649 in dimension 0 is not within 1 to 2147483648");
  EXPECT_EQ(refuse({0, 8}, {8, 1}),
            "its size 0 in dimension 0 is not within 1 to 2147483648");
  EXPECT_EQ(refuse({8, 0}, {0, 1}),
            "its size 0 in dimension 1 is not within 1 to 2147483648");
  EXPECT_EQ(refuse({8, most + 8}, {most + 8, 1}),
            "its size 2147483656 in dimension 1 is not within 1 to 2147483648");

  EXPECT_EQ(refuse({300, 64}, {72, 1}), "");
  const std::string stride = " elements in dimension 0 is no multiple of 16 "
                             "bytes, above 0 and below 1099511627776";
  EXPECT_EQ(refuse({300, 60}, {60, 1}), "its stride of 60" + stride);
  EXPECT_EQ(refuse({300, 64}, {-64, 1}), "its stride of -64" + stride);
  EXPECT_EQ(refuse({300, 64}, {0, 1}), "its stride of 0" + stride);
  EXPECT_EQ(refuse({2, 64}, {(int64_t(1) << 39) - 8, 1}), "");
  EXPECT_EQ(refuse({2, 64}, {int64_t(1) << 39, 1}),
            "its stride of 549755813888" + stride);
  EXPECT_EQ(refuse({2, 64}, {int64_t(1) << 62, 1}),
            "its stride of 4611686018427387904" + stride);
  EXPECT_EQ(refuse({64, 64}, {1, 64}), "its stride of 1" + stride);
  EXPECT_EQ(refuse({64, 64}, {8, 64}),
            "its stride in the last dimension is 64, not 1");
  // Copies write 16 bytes at a time, and what they read beyond is zero.
  EXPECT_EQ(refuse({300, 60}, {64, 1}), "");
  EXPECT_EQ(refuse({300, 64}, {72, 1}, 0x1000, /*isWritten=*/true), "");
  EXPECT_EQ(refuse({300, 60}, {64, 1}, 0x1000, /*isWritten=*/true),
            "its 60 elements in the last dimension, which are written, are no "
            "multiple of 16 bytes");
  EXPECT_EQ(refuse({1, 1}, {64, 1}, 0x1000, /*isWritten=*/true),
            "its 1 elements in the last dimension, which are written, are no "
            "multiple of 16 bytes");
  // Where there is one element, no stride counts.
  EXPECT_EQ(refuse({1, 60}, {60, 1}), "");
  EXPECT_EQ(refuse({300, 1}, {8, 5}), "");
}

TEST(TensorMapTest, hasStridesForDimensionsOfOneElement) {
  auto getStrides = [](const Dimensions &sizes, const Dimensions &strides) {
    const Dimensions box = {1, 1, 64};
    const TensorMapSpec spec(
        {fakeAddress(0x1000), ElementType::BF16, sizes, strides}, box, 0);
    return std::vector<int64_t>(spec.strides.begin(), spec.strides.begin() + 3);
  };
  using Strides = std::vector<int64_t>;
  EXPECT_EQ(getStrides({2, 3, 60}, {192, 64, 1}), (Strides{384, 128, 2}));
  EXPECT_EQ(getStrides({2, 1, 60}, {192, 5, 1}), (Strides{384, 128, 2}));
  EXPECT_EQ(getStrides({1, 3, 60}, {5, 64, 1}), (Strides{384, 128, 2}));
  EXPECT_EQ(getStrides({1, 1, 1}, {0, 0, 0}), (Strides{16, 16, 2}));
  // No stride reaches over dimensions that are this large.
  constexpr int64_t most = (int64_t(1) << 40) - 16;
  EXPECT_EQ(getStrides({1, int64_t(1) << 31, 64}, {0, most / 2, 1}),
            (Strides{most, most, 2}));
}

TEST(TensorMapTest, isChosenWithinItsLimits) {
  ProductPlan plan(300, 512, 64);
  EXPECT_EQ(plan.entry(), "product_wgmma");
  plan.inputs[0].strides[0] = 60;
  EXPECT_EQ(plan.entry(), "product_strided");
  plan.inputs[0].strides[0] = 64;
  plan.inputs[0].data = fakeAddress(0x10008);
  EXPECT_EQ(plan.entry(), "product_strided");

  // A variant that names no other alignment says what the map lacks.
  plan.function.launches[0].variants.resize(1);
  plan.function.launches[0].variants[0].alignment[0] = 1;
  expectError(plan.prepare(),
              "no variant takes these operands: 'product_wgmma' needs a tensor "
              "map of input 'x', but its address 0x10008 is no multiple of 16");
}

//===----------------------------------------------------------------------===//
// Making maps
//===----------------------------------------------------------------------===//

/// Counts what it is asked for; launches nothing.
class CountingExecutor final : public Executor {
public:
  Error launch(const std::string &, const LaunchConfig &,
               void **arguments) override {
    std::memcpy(&first, arguments[3], sizeof(first));
    std::memcpy(&second, arguments[4], sizeof(second));
    return Error::success();
  }
  Error zero(void *, int64_t) override { return Error::success(); }
  Error encode(const TensorMapSpec &spec, EncodedTensorMap &map) override {
    ++encoded;
    if (fails)
      return Error("no map today");
    const EmulatedTensorMap plain(spec);
    std::memcpy(map.bytes.data(), &plain, sizeof(plain));
    return Error::success();
  }
  Error replaceAddress(const TensorMapSpec &spec,
                       EncodedTensorMap &map) override {
    ++moved;
    EmulatedTensorMap plain;
    std::memcpy(&plain, map.bytes.data(), sizeof(plain));
    plain.address = reinterpret_cast<uintptr_t>(spec.address);
    std::memcpy(map.bytes.data(), &plain, sizeof(plain));
    return Error::success();
  }
  Capacity capacity() const override { return {132, &gpu}; }
  const void *device() const override { return place; }

  FakeGpu gpu;
  const void *place = nullptr;
  int encoded = 0, moved = 0;
  bool fails = false;
  EmulatedTensorMap first, second;
};

class MakingMapsTest : public testing::Test {
protected:
  Error run() {
    executor.encoded = executor.moved = 0;
    if (Error error = plan.prepare())
      return error;
    return execute(plan.plan, executor);
  }
  void expectCalls(int encoded, int moved) {
    EXPECT_EQ(executor.encoded, encoded);
    EXPECT_EQ(executor.moved, moved);
  }

  ProductPlan plan{300, 512, 64};
  CountingExecutor executor;
};

TEST_F(MakingMapsTest, onceForAllCallsOfTheSameTensors) {
  ASSERT_OK(run());
  expectCalls(2, 0);
  EXPECT_EQ(executor.first.magic, EmulatedTensorMap::expectedMagic);
  EXPECT_EQ(executor.first.rank, 2);
  EXPECT_EQ(executor.first.type, ElementType::BF16);
  EXPECT_EQ(executor.first.elementBytes, 2);
  EXPECT_EQ(executor.first.swizzle, 128);
  EXPECT_EQ(executor.first.address, 0x10000u);
  // The order is that of coordinates.
  EXPECT_EQ(executor.first.sizes[0], 64);
  EXPECT_EQ(executor.first.sizes[1], 300);
  EXPECT_EQ(executor.first.strides[0], 2);
  EXPECT_EQ(executor.first.strides[1], 128);
  EXPECT_EQ(executor.first.box[0], 64);
  EXPECT_EQ(executor.first.box[1], 128);
  EXPECT_EQ(executor.second.sizes[1], 512);
  ASSERT_OK(run());
  expectCalls(0, 0);
  EXPECT_EQ(executor.second.address, 0x20000u);
}

TEST_F(MakingMapsTest, takesNoMemoryFromTheHeapAgain) {
  ASSERT_OK(run());
  plan.inputs[0] = ProductPlan::make(0x10000, {301, 64});
  plan.outputs[0] = ProductPlan::make(0x40000, {301, 512});
  plan.inputs[1].data = fakeAddress(0x50000);
  allocationsLeft = 0;
  bool ranOut = false, failed = false;
  try {
    failed = bool(run());
  } catch (const std::bad_alloc &) {
    ranOut = true;
  }
  allocationsLeft = -1;
  EXPECT_FALSE(ranOut);
  EXPECT_FALSE(failed);
  expectCalls(1, 1);
}

TEST_F(MakingMapsTest, movesThoseOfTensorsThatLieElsewhere) {
  ASSERT_OK(run());
  plan.inputs[1].data = fakeAddress(0x50000);
  ASSERT_OK(run());
  expectCalls(0, 1);
  EXPECT_EQ(executor.first.address, 0x10000u);
  EXPECT_EQ(executor.second.address, 0x50000u);
  EXPECT_EQ(executor.second.sizes[1], 512);
}

TEST_F(MakingMapsTest, makesThoseOfOtherTensors) {
  ASSERT_OK(run());
  plan.inputs[0].strides[0] = 72;
  ASSERT_OK(run());
  expectCalls(1, 0);
  EXPECT_EQ(executor.first.strides[1], 144);
  plan.inputs[0] = ProductPlan::make(0x10000, {301, 64});
  plan.outputs[0] = ProductPlan::make(0x40000, {301, 512});
  ASSERT_OK(run());
  expectCalls(1, 0);
  EXPECT_EQ(executor.first.sizes[1], 301);
  EXPECT_EQ(executor.first.strides[1], 128);
}

TEST_F(MakingMapsTest, makesThoseOfOtherDevices) {
  ASSERT_OK(run());
  executor.place = this;
  ASSERT_OK(run());
  expectCalls(2, 0);
}

TEST_F(MakingMapsTest, makesThemAgainAfterAFailure) {
  executor.fails = true;
  expectError(run(), "no map today");
  executor.fails = false;
  ASSERT_OK(run());
  expectCalls(2, 0);
}

TEST_F(MakingMapsTest, failsOnTheHost) {
  HostExecutor host([](const std::string &) -> void * { return nullptr; });
  ASSERT_OK(plan.prepare());
  expectError(execute(plan.plan, host), "kernels of the host take no tensor");
}

} // namespace
