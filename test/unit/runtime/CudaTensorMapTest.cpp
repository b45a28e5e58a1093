//===- CudaTensorMapTest.cpp - Copies by tensor maps, on a GPU ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// The tests are skipped on machines without a GPU that has tensor maps.
//
//===----------------------------------------------------------------------===//

#include "Support.h"
#include "bastile/runtime/CudaExecutor.h"

#include <numeric>

using namespace bastile::runtime;

namespace {

/// Copies boxes of 8 x 16 numbers of a matrix to shared memory, swizzled in
/// rows of 64 bytes, and from there one after the other to the result.
const char *const program = R"(.version 8.0
.target sm_90
.address_size 64
// bastile-metadata-begin
// {"schema": "bastile.kernels", "version": 4, "compiler": "hand",
//  "target": "sm_90", "functions": [{
//   "name": "boxes",
//   "inputs": [{"name": "x", "type": "f32", "shape": [null, null]}],
//   "outputs": [
//     {"name": "y", "type": "f32",
//      "shape": [{"mul": [{"ceildiv": [{"input": 0, "dimension": 0}, 8]},
//                         {"ceildiv": [{"input": 0, "dimension": 1}, 16]}]},
//                128]}],
//   "launches": [
//     {"kernel": "boxes", "dimensions": ["m", "n", "boxes"],
//      "operands": [{"input": 0, "map": ["m", "n"]},
//                   {"output": 0, "map": ["boxes", 128]}],
//      "variants": [{"entry": "boxes", "alignment": [16, 4],
//        "arguments": [{"tensor_map": 0, "box": [8, 16], "swizzle": 64},
//                      {"size": "n"}, {"pointer": 1}],
//        "grid": {"size": "boxes"}, "block": 128}]}]}]}
// bastile-metadata-end
.visible .entry boxes(.param .align 64 .b8 map[128], .param .u64 columns,
                      .param .u64 target) {
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %d<6>;
  .reg .f32 %f<1>;
  .shared .align 512 .b8 box[512];
  .shared .align 8 .b64 barrier;
  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, box;
  mov.u32 %r3, barrier;
  ld.param.u64 %d0, [columns];
  cvt.u32.u64 %r4, %d0;
  add.u32 %r4, %r4, 15;
  shr.u32 %r4, %r4, 4;
  rem.u32 %r5, %r0, %r4;
  div.u32 %r6, %r0, %r4;
  shl.b32 %r5, %r5, 4;
  shl.b32 %r6, %r6, 3;
  setp.ne.u32 %p0, %r1, 0;
  @%p0 bra WAIT;
  mbarrier.init.shared::cta.b64 [%r3], 1;
  fence.proxy.async.shared::cta;
  mbarrier.arrive.expect_tx.shared::cta.b64 %d1, [%r3], 512;
  mov.b64 %d2, map;
  cvta.param.u64 %d3, %d2;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
    [%r2], [%d3, {%r5, %r6}], [%r3];
WAIT:
  bar.sync 0;
AGAIN:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r3], 0;
  @!%p1 bra AGAIN;
  shl.b32 %r7, %r1, 2;
  add.u32 %r2, %r2, %r7;
  ld.shared.f32 %f0, [%r2];
  ld.param.u64 %d4, [target];
  shl.b32 %r0, %r0, 7;
  add.u32 %r0, %r0, %r1;
  mul.wide.u32 %d5, %r0, 4;
  add.u64 %d4, %d4, %d5;
  st.global.f32 [%d4], %f0;
  ret;
}
)";

class CudaTensorMapTest : public testing::Test {
protected:
  void SetUp() override {
    auto driver = CudaDriver::open();
    if (!driver)
      GTEST_SKIP() << driver.takeError().message();
    auto opened = CudaDevice::open(*driver);
    if (!opened)
      GTEST_SKIP() << opened.takeError().message();
    if (!(*opened)->has(Feature::TensorMaps))
      GTEST_SKIP() << "tensor maps, "
                   << (*opened)->explainLack(Feature::TensorMaps);
    device = *opened;
  }

  CudaBuffer upload(const std::vector<float> &values) {
    const size_t bytes = values.size() * sizeof(float);
    auto buffer = CudaBuffer::allocate(device, bytes);
    EXPECT_OK(buffer.takeError());
    EXPECT_OK(device->copyToDevice(buffer->data(), values.data(), bytes));
    return std::move(*buffer);
  }

  std::shared_ptr<const CudaDevice> device;
};

/// What the kernel makes of a matrix in rows of `stride` numbers.
std::vector<float> expectBoxes(const std::vector<float> &x, int64_t rows,
                               int64_t columns, int64_t stride) {
  std::vector<float> result;
  for (int64_t top = 0; top < rows; top += 8)
    for (int64_t left = 0; left < columns; left += 16)
      for (int64_t place = 0; place != 128; ++place) {
        // Bits 4 and 5 of an address in bytes are combined with 7 and 8.
        const int64_t byte = place * 4;
        const int64_t element = (byte ^ ((byte >> 7 & 3) << 4)) / 4;
        const int64_t row = top + element / 16, column = left + element % 16;
        const bool isInside = row < rows && column < columns;
        result.push_back(isInside ? x[row * stride + column] : 0.0f);
      }
  return result;
}

TEST_F(CudaTensorMapTest, copiesBoxes) {
  auto module = CudaModule::load(device, program);
  ASSERT_OK(module.takeError());
  Expected<Metadata> metadata = parseMetadata(program);
  ASSERT_OK(metadata.takeError());
  const Function &function = metadata->functions.front();
  CudaExecutor executor(**module);
  LaunchPlan plan;

  std::vector<float> values(4096);
  std::iota(values.begin(), values.end(), 1.0f);
  CudaBuffer one = upload(values);
  for (float &value : values)
    value += 5000;
  CudaBuffer other = upload(values);
  auto check = [&](const CudaBuffer &x, float first, int64_t rows,
                   int64_t columns, int64_t stride) {
    std::vector<float> numbers(4096);
    std::iota(numbers.begin(), numbers.end(), first);
    const std::vector<float> expected =
        expectBoxes(numbers, rows, columns, stride);
    std::vector<float> y(expected.size(), -1.0f);
    CudaBuffer result = upload(y);
    const std::vector<TensorView> inputs = {
        {x.data(), ElementType::F32, {rows, columns}, {stride, 1}}};
    const std::vector<TensorView> outputs = {
        TensorView::contiguous(result.data(), ElementType::F32,
                               {static_cast<int64_t>(y.size() / 128), 128})};
    ASSERT_OK(
        plan.prepare(function, {inputs, outputs, {}}, executor.capacity()));
    ASSERT_OK(execute(plan, executor));
    ASSERT_OK(
        device->copyToHost(y.data(), result.data(), y.size() * sizeof(float)));
    EXPECT_EQ(y, expected) << rows << "x" << columns;
  };
  check(one, 1.0f, 37, 21, 24);
  // The same map at another address, and back.
  check(other, 5001.0f, 37, 21, 24);
  check(one, 1.0f, 37, 21, 24);
  check(one, 1.0f, 40, 32, 64);
  check(one, 1.0f, 1, 16, 3);
}

TEST_F(CudaTensorMapTest, existWithinTheLimits) {
  auto encode = [&](const Dimensions &sizes, const Dimensions &strides,
                    intptr_t address = 0x1000) {
    const TensorView view = {fakeAddress(address), ElementType::BF16, sizes,
                             strides};
    Dimensions box;
    for (unsigned d = 0; d + 1 != view.rank(); ++d)
      box.push_back(256);
    box.push_back(64);
    EncodedTensorMap map;
    return encodeTensorMap(*device, {view, box, /*swizzle=*/128}, map);
  };
  constexpr int64_t most = int64_t(1) << 31;
  EXPECT_OK(encode({300, 64}, {64, 1}, 0x1010));
  EXPECT_OK(encode({most, 8}, {8, 1}));
  EXPECT_OK(encode({8, most}, {most, 1}));
  EXPECT_OK(encode({2, 64}, {(int64_t(1) << 39) - 8, 1}));
  EXPECT_OK(encode({2, 1, 60}, {64, 3, 1}));
  EXPECT_OK(encode({9, 1}, {8, 5}));
  // A tensor of heads, whose strides are in no order.
  EXPECT_OK(encode({4, 32, 2048, 64}, {4194304, 64, 2048, 1}));
  EXPECT_OK(encode({64}, {1}));
}

} // namespace
