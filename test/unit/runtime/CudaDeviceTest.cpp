//===- CudaDeviceTest.cpp - Kernels written by hand, on a GPU -------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// The tests are skipped on machines without a GPU of compute capability 9.0 or
// later.
//
//===----------------------------------------------------------------------===//

#include "Support.h"
#include "bastile/runtime/CudaExecutor.h"

#include <numeric>

using namespace bastile::runtime;

namespace {

/// Doubles rows of 64 elements, one row to a block, and writes to the end of
/// 100 kB of shared memory. The function runs it twice, the second time in
/// clusters and with permission to start early.
const char *const program = R"(.version 7.8
.target sm_90
.address_size 64
// bastile-metadata-begin
// {"schema": "bastile.kernels", "version": 1, "compiler": "hand",
//  "target": "sm_90", "functions": [{
//   "name": "four_times",
//   "inputs": [{"name": "x", "type": "f32", "shape": [null, null, 64]}],
//   "outputs": [
//     {"name": "y", "type": "f32",
//      "shape": [{"input": 0, "dimension": 0},
//                {"input": 0, "dimension": 1}, 64]},
//     {"name": "z", "type": "f32", "shape": [4], "zero_if_no_rows": true}],
//   "temporaries": [
//     {"type": "f32", "shape": [{"input": 0, "dimension": 0},
//                               {"input": 0, "dimension": 1}, 64]}],
//   "launches": [
//     {"kernel": "twice", "leading": 2, "overlap_next": true,
//      "operands": [{"input": 0, "rows": true}, {"temporary": 0, "rows": true},
//                   {"output": 1}],
//      "variants": [{"entry": "twice", "leading": 1, "alignment": [4, 4, 4],
//        "arguments": [{"pointer": 0}, {"stride": 0, "dimension": 0},
//                      {"pointer": 1}, {"stride": 1, "dimension": 0}],
//        "grid": "rows", "block": 64, "shared_memory": 100000}]},
//     {"kernel": "twice", "leading": 2,
//      "operands": [{"temporary": 0, "rows": true},
//                   {"output": 0, "rows": true}],
//      "variants": [{"entry": "twice", "leading": 1, "alignment": [4, 4],
//        "arguments": [{"pointer": 0}, {"stride": 0, "dimension": 0},
//                      {"pointer": 1}, {"stride": 1, "dimension": 0}],
//        "grid": "rows", "block": 64, "cluster": 2,
//        "shared_memory": 100000}]}]}]}
// bastile-metadata-end
.extern .shared .align 16 .b8 scratch[];
.visible .entry twice(.param .u64 source, .param .u64 sourceStride,
                      .param .u64 target, .param .u64 targetStride) {
  .reg .b32 %r<3>;
  .reg .b64 %d<8>;
  .reg .f32 %f<2>;
  mov.u32 %r0, %ctaid.x;
  cvt.u64.u32 %d0, %r0;
  mov.u32 %r1, %tid.x;
  cvt.u64.u32 %d1, %r1;
  mov.u32 %r2, scratch;
  st.shared.u32 [%r2+99996], %r1;
  ld.param.u64 %d2, [source];
  ld.param.u64 %d3, [sourceStride];
  mad.lo.u64 %d4, %d0, %d3, %d1;
  shl.b64 %d4, %d4, 2;
  add.u64 %d2, %d2, %d4;
  ld.param.u64 %d5, [target];
  ld.param.u64 %d6, [targetStride];
  mad.lo.u64 %d7, %d0, %d6, %d1;
  shl.b64 %d7, %d7, 2;
  add.u64 %d5, %d5, %d7;
  griddepcontrol.launch_dependents;
  griddepcontrol.wait;
  ld.global.f32 %f0, [%d2];
  add.f32 %f1, %f0, %f0;
  st.global.f32 [%d5], %f1;
  ret;
}
)";

class CudaDeviceTest : public testing::Test {
protected:
  void SetUp() override {
    auto driver = CudaDriver::open();
    if (!driver)
      GTEST_SKIP() << driver.takeError().message();
    auto opened = CudaDevice::open(*driver);
    if (!opened)
      GTEST_SKIP() << opened.takeError().message();
    if ((*opened)->computeCapability() < 90)
      GTEST_SKIP() << (*opened)->name() << " is too old";
    device = *opened;
  }

  /// A copy of `values` on the device.
  CudaBuffer upload(const std::vector<float> &values) {
    const size_t bytes = values.size() * sizeof(float);
    auto buffer = CudaBuffer::allocate(device, bytes);
    EXPECT_OK(buffer.takeError());
    if (bytes != 0)
      EXPECT_OK(device->copyToDevice(buffer->data(), values.data(), bytes));
    return std::move(*buffer);
  }

  std::vector<float> download(const CudaBuffer &buffer, size_t count) {
    std::vector<float> values(count);
    EXPECT_OK(device->copyToHost(values.data(), buffer.data(),
                                 count * sizeof(float)));
    return values;
  }

  std::shared_ptr<const CudaDevice> device;
};

TEST_F(CudaDeviceTest, runsAPlan) {
  auto module = CudaModule::load(device, program);
  ASSERT_OK(module.takeError());
  Expected<Metadata> metadata = parseMetadata(program);
  ASSERT_OK(metadata.takeError());
  const Function &function = *metadata->find("four_times");

  const int64_t outer = 200, inner = 3, count = outer * inner * 64;
  std::vector<float> x(count);
  std::iota(x.begin(), x.end(), 0.0f);
  CudaBuffer xData = upload(x), zData = upload({1.0f, 1.0f, 1.0f, 1.0f});
  CudaBuffer yData = upload(std::vector<float>(count));
  CudaBuffer scratch = upload(std::vector<float>(count));
  auto view = [](const CudaBuffer &buffer, const Dimensions &sizes) {
    return TensorView::contiguous(buffer.data(), ElementType::F32, sizes);
  };
  const Dimensions sizes = {outer, inner, 64};
  std::vector<TensorView> inputs = {view(xData, sizes)};
  std::vector<TensorView> outputs = {view(yData, sizes), view(zData, {4})};
  std::vector<TensorView> temporaries = {view(scratch, sizes)};

  cuda::Stream stream = nullptr;
  {
    CudaContextScope scope(*device);
    ASSERT_OK(device->driver().check(
        device->driver().streamCreate(&stream, /*flags=*/1), "make a stream"));
  }
  CudaExecutor executor(**module, stream);
  EXPECT_EQ(executor.capacity().multiprocessors(), device->multiprocessors());
  LaunchPlan plan;
  ASSERT_OK(plan.prepare(function, {inputs, outputs, temporaries},
                         executor.capacity()));
  for (int i = 0; i != 20; ++i)
    ASSERT_OK(execute(plan, executor));
  ASSERT_OK(device->synchronize(stream));
  std::vector<float> y = download(yData, count);
  for (int64_t i = 0; i != count; ++i)
    ASSERT_EQ(y[i], 4 * x[i]) << i;
  EXPECT_EQ(download(zData, 4), std::vector<float>(4, 1.0f));

  CudaBuffer nothing = upload({});
  const Dimensions noRows = {0, inner, 64};
  inputs[0] = outputs[0] = temporaries[0] = view(nothing, noRows);
  ASSERT_OK(plan.prepare(function, {inputs, outputs, temporaries},
                         executor.capacity()));
  ASSERT_OK(execute(plan, executor));
  ASSERT_OK(device->synchronize(stream));
  EXPECT_EQ(download(zData, 4), std::vector<float>(4, 0.0f));

  Expected<CudaKernelInfo> info = (*module)->info("twice");
  ASSERT_OK(info.takeError());
  EXPECT_GT(info->registers, 0);
  EXPECT_EQ(info->localMemory, 0);
  Expected<int> blocks =
      (*module)->blocksPerMultiprocessor("twice", {1, 64, 1, 100000, false});
  ASSERT_OK(blocks.takeError());
  EXPECT_GE(*blocks, 1);

  CudaContextScope scope(*device);
  EXPECT_EQ(device->driver().streamDestroy(stream), cuda::successResult);
}

TEST_F(CudaDeviceTest, reportsErrors) {
  expectError(CudaModule::load(device, ".version 7.8\n.target sm_90\nrubbish")
                  .takeError(),
              "CUDA_ERROR_INVALID_PTX)\n");
  auto module = CudaModule::load(device, program);
  ASSERT_OK(module.takeError());
  expectError(CudaExecutor(**module).launch("thrice", LaunchConfig{1}, nullptr),
              "cannot find kernel 'thrice'");
  expectError(CudaBuffer::allocate(device, size_t(1) << 50).takeError(),
              "CUDA_ERROR_OUT_OF_MEMORY");
}

} // namespace
