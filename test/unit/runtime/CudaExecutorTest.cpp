//===- CudaExecutorTest.cpp - Launches through a driver of functions ------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
// The table of entry points is filled with functions that record their calls,
// so these tests need no GPU. CudaDeviceTest.cpp has those that do.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/CudaExecutor.h"
#include "Support.h"
#include "bastile/runtime/Program.h"

#include <cstring>

using namespace bastile::runtime;

namespace {

/// The state of the fake driver, and the calls that it got.
struct FakeState {
  int deviceCount = 1;
  int cudaVersion = 12040;
  int capability = 90;
  cuda::Context currentContext = nullptr;
  cuda::Result launchResult = cuda::successResult;
  const char *assemblerLog = nullptr;
  bool knowsClusters = true;

  std::vector<std::string> calls;
  cuda::LaunchSettings settings = {};
  std::vector<cuda::LaunchAttribute> attributes;
  void **arguments = nullptr;

  /// What the last tensor map was made of.
  struct {
    int type, interleave, swizzle, promotion, fill;
    void *address;
    std::vector<uint64_t> sizes, strides;
    std::vector<uint32_t> box, steps;
  } map;
};

FakeState state;
int primaryContext;
int loadedModule;
int loadedKernel;

void record(const std::string &call) { state.calls.push_back(call); }

int count(const std::string &call) {
  return std::count(state.calls.begin(), state.calls.end(), call);
}

void addContextCalls(CudaDriver &driver) {
  driver.init = [](unsigned) { return 0; };
  driver.getErrorName = [](cuda::Result result, const char **name) {
    *name = "CUDA_ERROR_FAKE";
    return result == 999 ? 1 : 0;
  };
  driver.getErrorString = [](cuda::Result, const char **text) {
    *text = "a made-up failure";
    return 0;
  };
  driver.driverGetVersion = [](int *version) {
    *version = state.cudaVersion;
    return 0;
  };
  driver.deviceGetCount = [](int *count) {
    *count = state.deviceCount;
    return 0;
  };
  driver.deviceGet = [](cuda::Device *device, int ordinal) {
    *device = ordinal;
    return 0;
  };
  driver.deviceGetName = [](char *name, int, cuda::Device) {
    std::strcpy(name, "Fake");
    return 0;
  };
  driver.deviceGetAttribute = [](int *value, int attribute, cuda::Device) {
    *value = attribute == cuda::MultiprocessorCount           ? 132
             : attribute == cuda::MaxThreadsPerMultiprocessor ? 2048
             : attribute == cuda::MaxSharedMemoryPerBlock     ? 232448
             : attribute == cuda::ComputeCapabilityMajor ? state.capability / 10
             : attribute == cuda::ComputeCapabilityMinor ? state.capability % 10
                                                         : 0;
    return 0;
  };
  driver.devicePrimaryCtxRetain = [](cuda::Context *context, cuda::Device) {
    record("retain");
    *context = &primaryContext;
    return 0;
  };
  driver.devicePrimaryCtxRelease = [](cuda::Device) {
    record("release");
    return 0;
  };
  driver.ctxGetCurrent = [](cuda::Context *context) {
    *context = state.currentContext;
    return 0;
  };
  driver.ctxSetCurrent = [](cuda::Context context) {
    record("set context");
    state.currentContext = context;
    return 0;
  };
  driver.ctxGetDevice = [](cuda::Device *device) {
    *device = 0;
    return 0;
  };
}

void addModuleCalls(CudaDriver &driver) {
  driver.moduleLoadDataEx = [](cuda::Module *module, const void *,
                               unsigned optionCount, int *options,
                               void **values) {
    record("load");
    EXPECT_EQ(state.currentContext, &primaryContext);
    if (optionCount != 0) {
      EXPECT_EQ(optionCount, 2u);
      EXPECT_EQ(options[0], 5);
      EXPECT_EQ(options[1], 6);
    }
    *module = &loadedModule;
    if (!state.assemblerLog)
      return 0;
    EXPECT_GT(reinterpret_cast<size_t>(values[1]),
              std::strlen(state.assemblerLog));
    std::strcpy(static_cast<char *>(values[0]), state.assemblerLog);
    *module = nullptr;
    return 218;
  };
  driver.moduleUnload = [](cuda::Module) {
    record("unload");
    return 0;
  };
  driver.moduleGetFunction = [](cuda::Kernel *kernel, cuda::Module,
                                const char *name) {
    record(std::string("find ") + name);
    *kernel = &loadedKernel;
    return std::strcmp(name, "missing") == 0 ? 500 : 0;
  };
  driver.funcSetAttribute = [](cuda::Kernel, int attribute, int value) {
    record("attribute " + std::to_string(attribute) + " = " +
           std::to_string(value));
    return 0;
  };
  driver.funcGetAttribute = [](int *value, int attribute, cuda::Kernel) {
    *value = 100 + attribute;
    return 0;
  };
  driver.occupancyMaxActiveBlocksPerMultiprocessor =
      [](int *blocks, cuda::Kernel, int blockSize, size_t) {
        *blocks = 2048 / blockSize;
        return 0;
      };
  driver.threadExchangeStreamCaptureMode = [](int *) { return 0; };
  // The multiprocessors are in groups of 18, and the last group has the rest.
  driver.occupancyMaxActiveClusters = [](int *clusters, cuda::Kernel,
                                         const cuda::LaunchSettings *settings) {
    record("count clusters");
    EXPECT_EQ(state.currentContext, &primaryContext);
    EXPECT_EQ(settings->sharedMemory, 232448u);
    unsigned blocks = settings->attributes[0].value.clusterDimension[0];
    *clusters = static_cast<int>(7 * (18 / blocks) + 6 / blocks);
    return state.knowsClusters ? 0 : 500;
  };
}

void addStreamCalls(CudaDriver &driver) {
  driver.launchKernel = [](cuda::Kernel, unsigned gridX, unsigned, unsigned,
                           unsigned blockX, unsigned, unsigned,
                           unsigned sharedMemory, cuda::Stream stream,
                           void **arguments, void **) {
    record("launch");
    EXPECT_EQ(state.currentContext, &primaryContext);
    state.settings.gridX = gridX;
    state.settings.blockX = blockX;
    state.settings.sharedMemory = sharedMemory;
    state.settings.stream = stream;
    state.arguments = arguments;
    return state.launchResult;
  };
  driver.launchKernelEx = [](const cuda::LaunchSettings *settings, cuda::Kernel,
                             void **arguments, void **) {
    record("launch with attributes");
    state.settings = *settings;
    state.attributes.assign(settings->attributes,
                            settings->attributes + settings->attributeCount);
    state.arguments = arguments;
    return state.launchResult;
  };
  driver.memsetD8Async = [](cuda::Address address, unsigned char value,
                            size_t bytes, cuda::Stream) {
    record("fill " + std::to_string(address) + " with " +
           std::to_string(value) + " x " + std::to_string(bytes));
    return 0;
  };
}

void addTensorMapCalls(CudaDriver &driver) {
  driver.tensorMapEncodeTiled = [](void *map, int type, uint32_t rank,
                                   void *address, const uint64_t *sizes,
                                   const uint64_t *strides, const uint32_t *box,
                                   const uint32_t *steps, int interleave,
                                   int swizzle, int promotion, int fill) {
    record("encode");
    EXPECT_EQ(state.currentContext, &primaryContext);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(map) % 64, 0u);
    std::memset(map, 'm', 128);
    state.map = {type,
                 interleave,
                 swizzle,
                 promotion,
                 fill,
                 address,
                 {sizes, sizes + rank},
                 {strides, strides + rank - 1},
                 {box, box + rank},
                 {steps, steps + rank}};
    return state.launchResult;
  };
  driver.tensorMapReplaceAddress = [](void *, void *address) {
    record("move");
    state.map.address = address;
    return state.launchResult;
  };
}

class CudaExecutorTest : public testing::Test {
protected:
  CudaExecutorTest() {
    state = FakeState();
    auto table = std::make_shared<CudaDriver>();
    addContextCalls(*table);
    addModuleCalls(*table);
    addStreamCalls(*table);
    addTensorMapCalls(*table);
    driver = table;
  }

  std::shared_ptr<CudaModule> load() {
    auto device = CudaDevice::open(driver);
    EXPECT_OK(device.takeError());
    auto module = CudaModule::load(*device, ".version 8.0");
    EXPECT_OK(module.takeError());
    return *module;
  }

  /// The reason why a GPU lacks `feature`; empty if it has it.
  std::string explainLack(Feature feature) {
    auto device = CudaDevice::open(driver);
    EXPECT_OK(device.takeError());
    const Capacity capacity = (*device)->capacity();
    return capacity.has(feature) ? "" : capacity.explainLack(feature);
  }

  std::shared_ptr<const CudaDriver> driver;
};

TEST_F(CudaExecutorTest, knowsWhichDriversMiscompile) {
  for (int version : {12000, 12040, 12060, 13000, 13010}) {
    state.cudaVersion = version;
    EXPECT_EQ(explainLack(Feature::Wgmma), "") << version;
  }
  for (int version : {12080, 12090}) {
    state.cudaVersion = version;
    EXPECT_EQ(explainLack(Feature::Wgmma),
              "which the driver's CUDA 12." +
                  std::to_string(version / 10 % 10) +
                  " compiles wrongly; install a driver of CUDA 13.0 or later");
    EXPECT_EQ(explainLack(Feature::TensorMaps), "");
  }
}

TEST_F(CudaExecutorTest, knowsWhichGpusHaveFeatures) {
  state.capability = 80;
  const std::string old = "which Fake of compute capability 8.0 lacks";
  EXPECT_EQ(explainLack(Feature::Wgmma), old);
  EXPECT_EQ(explainLack(Feature::TensorMaps), old);
  state.capability = 100;
  EXPECT_EQ(explainLack(Feature::Wgmma),
            "which Fake of compute capability 10.0 lacks");
  EXPECT_EQ(explainLack(Feature::TensorMaps), "");

  state = FakeState();
  auto old525 = std::make_shared<CudaDriver>(*driver);
  old525->tensorMapEncodeTiled = nullptr;
  driver = old525;
  state.cudaVersion = 11080;
  EXPECT_EQ(explainLack(Feature::Wgmma), "");
  EXPECT_EQ(explainLack(Feature::TensorMaps),
            "which the driver's CUDA 11.8 does not know");
}

TEST_F(CudaExecutorTest, makesTensorMaps) {
  auto module = load();
  CudaExecutor executor(*module);
  EXPECT_EQ(executor.device(), &module->device());
  const TensorMapSpec spec(
      {fakeAddress(0x1000), ElementType::BF16, {2, 300, 64}, {64, 128, 1}},
      {1, 128, 64}, /*swizzle=*/128);
  EncodedTensorMap map;
  ASSERT_OK(executor.encode(spec, map));
  EXPECT_EQ(map.bytes[127], 'm');
  EXPECT_EQ(state.map.type, 9);
  EXPECT_EQ(state.map.interleave, 0);
  EXPECT_EQ(state.map.swizzle, 3);
  EXPECT_EQ(state.map.promotion, 3);
  EXPECT_EQ(state.map.fill, 0);
  EXPECT_EQ(state.map.address, fakeAddress(0x1000));
  EXPECT_EQ(state.map.sizes, (std::vector<uint64_t>{64, 300, 2}));
  EXPECT_EQ(state.map.strides, (std::vector<uint64_t>{256, 128}));
  EXPECT_EQ(state.map.box, (std::vector<uint32_t>{64, 128, 1}));
  EXPECT_EQ(state.map.steps, (std::vector<uint32_t>{1, 1, 1}));

  TensorMapSpec moved = spec;
  moved.address = fakeAddress(0x2000);
  ASSERT_OK(executor.replaceAddress(moved, map));
  EXPECT_EQ(count("encode"), 1);
  EXPECT_EQ(count("move"), 1);
  EXPECT_EQ(state.map.address, fakeAddress(0x2000));

  state.launchResult = 1;
  expectError(executor.encode(spec, map),
              "cannot make a tensor map of 3 dimensions at 0x1000: a made-up");
  expectError(executor.replaceAddress(moved, map),
              "cannot move a tensor map to 0x2000: a made-up failure");
}

TEST_F(CudaExecutorTest, namesTypesAndSwizzlesAsTheDriverDoes) {
  auto module = load();
  CudaExecutor executor(*module);
  EncodedTensorMap map;
  const std::pair<ElementType, int> types[] = {
      {ElementType::F64, 8},      {ElementType::F32, 7},
      {ElementType::F16, 6},      {ElementType::BF16, 9},
      {ElementType::F8E4M3FN, 0}, {ElementType::F8E5M2, 0},
      {ElementType::I1, 0},       {ElementType::I8, 0},
      {ElementType::I32, 3},      {ElementType::I64, 5}};
  for (auto [type, number] : types) {
    const TensorView view =
        TensorView::contiguous(fakeAddress(0x1000), type, {16});
    ASSERT_OK(executor.encode({view, {16}, /*swizzle=*/0}, map));
    EXPECT_EQ(state.map.type, number) << name(type);
    EXPECT_EQ(state.map.swizzle, 0);
  }
  const TensorView view =
      TensorView::contiguous(fakeAddress(0x1000), ElementType::I8, {4, 16});
  ASSERT_OK(executor.encode({view, {4, 16}, /*swizzle=*/32}, map));
  EXPECT_EQ(state.map.swizzle, 1);
  ASSERT_OK(executor.encode({view, {4, 16}, /*swizzle=*/64}, map));
  EXPECT_EQ(state.map.swizzle, 2);
}

TEST_F(CudaExecutorTest, asksOnceHowManyClustersRunAtOnce) {
  auto device = CudaDevice::open(driver);
  ASSERT_OK(device.takeError());
  Capacity capacity = (*device)->capacity();
  EXPECT_EQ(capacity.multiprocessors(), 132);
  EXPECT_EQ(count("load"), 0);
  EXPECT_EQ(capacity.clusters(4), 7 * 4 + 1);
  EXPECT_EQ(capacity.clusters(16), 7);
  // The driver is not asked about these sizes.
  EXPECT_EQ(capacity.clusters(3), 44);
  EXPECT_EQ(capacity.clusters(1000), 1);
  EXPECT_EQ(count("load"), 1);
  EXPECT_EQ(count("count clusters"), 5);
}

TEST_F(CudaExecutorTest, guessesHowManyClustersRunAtOnce) {
  state.knowsClusters = false;
  auto device = CudaDevice::open(driver);
  ASSERT_OK(device.takeError());
  EXPECT_EQ((*device)->capacity().clusters(8), 16);
}

TEST_F(CudaExecutorTest, readsPropertiesOfTheDevice) {
  {
    auto device = CudaDevice::open(driver);
    ASSERT_OK(device.takeError());
    EXPECT_EQ((*device)->name(), "Fake");
    EXPECT_EQ((*device)->multiprocessors(), 132);
    EXPECT_EQ((*device)->computeCapability(), 90);
    EXPECT_EQ((*device)->maxSharedMemory(), 232448);
  }
  EXPECT_EQ(state.calls, (std::vector<std::string>{"retain", "release"}));
}

TEST_F(CudaExecutorTest, reportsMissingDevices) {
  expectError(CudaDevice::open(driver, 1).takeError(), "no GPU 1: there are 1");
  state.deviceCount = 0;
  expectError(CudaDevice::open(driver).takeError(), "no GPU 0: there are 0");
  expectError(CudaDevice::current(driver).takeError(),
              "no CUDA context is current");
}

TEST_F(CudaExecutorTest, worksInAnExistingContext) {
  state.currentContext = &primaryContext;
  {
    auto device = CudaDevice::current(driver);
    ASSERT_OK(device.takeError());
    auto module = CudaModule::load(*device, "");
    ASSERT_OK(module.takeError());
    ASSERT_OK(CudaExecutor(**module).launch("k", LaunchConfig{1}, nullptr));
  }
  // The device neither retains, releases nor switches a context.
  EXPECT_EQ(state.calls,
            (std::vector<std::string>{"load", "find k", "launch", "unload"}));
}

TEST_F(CudaExecutorTest, restoresTheContextOfTheCaller) {
  int other;
  state.currentContext = &other;
  auto module = load();
  EXPECT_EQ(state.currentContext, &other);
  ASSERT_OK(CudaExecutor(*module).launch("k", LaunchConfig{1}, nullptr));
  EXPECT_EQ(state.currentContext, &other);
}

TEST_F(CudaExecutorTest, launchesPlainly) {
  auto module = load();
  int stream;
  void *arguments[] = {nullptr};
  CudaExecutor executor(*module, &stream);
  EXPECT_EQ(executor.capacity().multiprocessors(), 132);
  ASSERT_OK(executor.launch("k", {7, 128, 1, 0, false}, arguments));
  ASSERT_OK(executor.launch("k", {7, 128, 1, 0, false}, arguments));
  EXPECT_EQ(count("launch"), 2);
  EXPECT_EQ(count("find k"), 1);
  EXPECT_EQ(state.settings.gridX, 7u);
  EXPECT_EQ(state.settings.blockX, 128u);
  EXPECT_EQ(state.settings.sharedMemory, 0u);
  EXPECT_EQ(state.settings.stream, &stream);
  EXPECT_EQ(state.arguments, arguments);
}

TEST_F(CudaExecutorTest, launchesWithAttributes) {
  auto module = load();
  int stream;
  CudaExecutor executor(*module, &stream);
  ASSERT_OK(executor.launch("k", {8, 256, 4, 512, true}, nullptr));
  EXPECT_EQ(state.settings.gridX, 8u);
  EXPECT_EQ(state.settings.gridY, 1u);
  EXPECT_EQ(state.settings.gridZ, 1u);
  EXPECT_EQ(state.settings.blockX, 256u);
  EXPECT_EQ(state.settings.blockZ, 1u);
  EXPECT_EQ(state.settings.sharedMemory, 512u);
  EXPECT_EQ(state.settings.stream, &stream);
  ASSERT_EQ(state.attributes.size(), 2u);
  EXPECT_EQ(state.attributes[0].id, cuda::ClusterDimension);
  EXPECT_EQ(state.attributes[0].value.clusterDimension[0], 4u);
  EXPECT_EQ(state.attributes[0].value.clusterDimension[2], 1u);
  EXPECT_EQ(state.attributes[1].id, cuda::ProgrammaticStreamSerialization);
  EXPECT_EQ(state.attributes[1].value.programmaticStreamSerialization, 1);

  ASSERT_OK(executor.launch("k", {8, 256, 1, 0, true}, nullptr));
  ASSERT_EQ(state.attributes.size(), 1u);
  EXPECT_EQ(state.attributes[0].id, cuda::ProgrammaticStreamSerialization);
}

TEST_F(CudaExecutorTest, liftsLimitsOnce) {
  auto module = load();
  CudaExecutor executor(*module);
  for (int64_t bytes : {100000, 50000, 100000, 200000})
    ASSERT_OK(executor.launch("k", {16, 32, 16, bytes, false}, nullptr));
  EXPECT_EQ(count("attribute 8 = 100000"), 1);
  EXPECT_EQ(count("attribute 8 = 50000"), 0);
  EXPECT_EQ(count("attribute 8 = 200000"), 1);
  EXPECT_EQ(count("attribute 14 = 1"), 1);
  expectError(executor.launch("k", {1, 32, 1, 232449, false}, nullptr),
              "kernel 'k' needs 232449 bytes of shared memory, but Fake has at "
              "most 232448");
}

TEST_F(CudaExecutorTest, fillsWithZeros) {
  auto module = load();
  ASSERT_OK(CudaExecutor(*module).zero(fakeAddress(4096), 1024));
  EXPECT_EQ(count("fill 4096 with 0 x 1024"), 1);
}

TEST_F(CudaExecutorTest, reportsPropertiesOfKernels) {
  auto module = load();
  Expected<CudaKernelInfo> info = module->info("k");
  ASSERT_OK(info.takeError());
  EXPECT_EQ(info->staticSharedMemory, 101);
  EXPECT_EQ(info->localMemory, 103);
  EXPECT_EQ(info->registers, 104);
  Expected<int> blocks =
      module->blocksPerMultiprocessor("k", {1, 512, 1, 60000, false});
  ASSERT_OK(blocks.takeError());
  EXPECT_EQ(*blocks, 4);
  EXPECT_EQ(count("attribute 8 = 60000"), 1);
}

TEST_F(CudaExecutorTest, reportsWhatALaunchTakes) {
  auto module = load();
  Launch launch;
  launch.kernel = "kernel0";
  launch.variants.emplace_back();
  Variant &variant = launch.variants.back();
  variant.entry = "k";
  variant.block = 768;
  variant.sharedMemory = 60000;
  Expected<KernelResources> found = getResources(launch, variant, *module);
  ASSERT_OK(found.takeError());
  EXPECT_EQ(found->kernel, "kernel0");
  EXPECT_EQ(found->threads, 768);
  EXPECT_EQ(found->registers, 104);
  EXPECT_EQ(found->spilledBytes, 103);
  EXPECT_EQ(found->sharedMemory, 60101);
  EXPECT_EQ(found->blocks, 2);
  EXPECT_EQ(found->occupancy, 0.75);
}

TEST_F(CudaExecutorTest, makesCodeWhereTheCallerSays) {
  auto device = CudaDevice::open(driver);
  ASSERT_OK(device.takeError());
  int inside = 0, made = 0;
  std::shared_ptr<Program> program = Program::forGpu(
      Metadata(),
      [&](const CudaDevice &, const std::string &entry) {
        EXPECT_EQ(inside, 1);
        ++made;
        return Expected<std::string>("code of " + entry);
      },
      [&](const std::function<void()> &work) {
        ++inside;
        work();
        --inside;
      });
  for (int call = 0; call < 2; ++call) {
    auto module = program->module(*device, "f");
    ASSERT_OK(module.takeError());
    EXPECT_EQ(made, 1);
  }
}

TEST_F(CudaExecutorTest, reportsErrorsInTheDriversWords) {
  auto module = load();
  CudaExecutor executor(*module);
  expectError(executor.launch("missing", LaunchConfig{1}, nullptr),
              "cannot find kernel 'missing': a made-up failure "
              "(CUDA_ERROR_FAKE)");
  state.launchResult = 701;
  expectError(executor.launch("k", {6, 64, 2, 128, false}, nullptr),
              "cannot launch kernel 'k' with 6 blocks of 64 threads in "
              "clusters of 2 with 128 bytes of shared memory: a made-up");
  state.launchResult = 999;
  expectError(executor.launch("k", {6, 64, 1, 0, false}, nullptr),
              ": CUDA error 999");
  expectError(
      executor.launch("k", {int64_t(1) << 31, 64, 1, 0, false}, nullptr),
      "a grid of 2147483648 blocks is more than a GPU takes");
}

TEST_F(CudaExecutorTest, showsTheLogOfTheAssembler) {
  auto device = CudaDevice::open(driver);
  ASSERT_OK(device.takeError());
  state.assemblerLog = "line 7: unexpected instruction";
  expectError(CudaModule::load(*device, "rubbish").takeError(),
              "cannot load code into Fake: a made-up failure "
              "(CUDA_ERROR_FAKE)\nline 7: unexpected instruction");
  EXPECT_EQ(count("unload"), 0);
}

TEST(CudaDriverTest, reportsAMissingLibrary) {
  expectError(CudaDriver::open("libbastile-no-such-driver.so").takeError(),
              "cannot open the CUDA driver: libbastile-no-such-driver.so");
}

TEST(CudaDriverTest, reportsMissingEntryPoints) {
  expectError(CudaDriver::open("libc.so.6").takeError(),
              "'libc.so.6' lacks 'cuInit': a CUDA driver of version 525");
}

} // namespace
