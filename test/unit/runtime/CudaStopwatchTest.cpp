//===- CudaStopwatchTest.cpp - Time on a GPU that does not exist ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/CudaStopwatch.h"
#include "Support.h"

#include <cstring>
#include <set>

using namespace bastile::runtime;

namespace {

/// The calls that the driver below got. An event is a number in disguise; its
/// time is that of its last record.
struct Calls {
  std::set<intptr_t> events;
  std::vector<float> milliseconds;
  float now = 0;
  bool fails = false;
};
Calls *calls;

/// A driver with one GPU, as far as a stopwatch needs it.
std::shared_ptr<const CudaDriver> makeDriver() {
  auto driver = std::make_shared<CudaDriver>();
  driver->init = [](unsigned) { return 0; };
  driver->getErrorName = [](int, const char **) { return 1; };
  driver->driverGetVersion = [](int *version) {
    *version = 12000;
    return 0;
  };
  driver->deviceGetCount = [](int *count) {
    *count = 1;
    return 0;
  };
  driver->deviceGet = [](int *device, int ordinal) {
    *device = ordinal;
    return 0;
  };
  driver->deviceGetName = [](char *name, int, int) {
    std::strcpy(name, "GPU");
    return 0;
  };
  driver->deviceGetAttribute = [](int *value, int, int) {
    *value = 1;
    return 0;
  };
  driver->devicePrimaryCtxRetain = [](cuda::Context *context, int) {
    *context = fakeAddress(8);
    return 0;
  };
  driver->devicePrimaryCtxRelease = [](int) { return 0; };
  driver->ctxGetCurrent = [](cuda::Context *context) {
    *context = fakeAddress(8);
    return 0;
  };
  driver->ctxSetCurrent = [](cuda::Context) { return 0; };
  driver->eventCreate = [](cuda::Event *event, unsigned) {
    calls->milliseconds.push_back(0);
    intptr_t number = calls->milliseconds.size();
    calls->events.insert(number);
    *event = fakeAddress(number);
    return calls->fails ? 2 : 0;
  };
  driver->eventDestroy = [](cuda::Event event) {
    calls->events.erase(reinterpret_cast<intptr_t>(event));
    return 0;
  };
  driver->eventRecord = [](cuda::Event event, cuda::Stream) {
    calls->milliseconds[reinterpret_cast<intptr_t>(event) - 1] = calls->now;
    return 0;
  };
  driver->eventSynchronize = [](cuda::Event) { return 0; };
  driver->eventElapsedTime = [](float *elapsed, cuda::Event begin,
                                cuda::Event end) {
    *elapsed = calls->milliseconds[reinterpret_cast<intptr_t>(end) - 1] -
               calls->milliseconds[reinterpret_cast<intptr_t>(begin) - 1];
    return 0;
  };
  return driver;
}

class CudaStopwatchTest : public testing::Test {
protected:
  void SetUp() override {
    calls = &made;
    auto opened = CudaDevice::open(makeDriver());
    ASSERT_OK(opened.takeError());
    device = *opened;
  }

  Calls made;
  std::shared_ptr<const CudaDevice> device;
};

TEST_F(CudaStopwatchTest, measuresLaps) {
  CudaStopwatch stopwatch(*device);
  ASSERT_OK(stopwatch.reserve(2));
  for (unsigned lap : {0, 1}) {
    ASSERT_OK(stopwatch.start(lap));
    made.now += 3 + lap;
    ASSERT_OK(stopwatch.stop(lap));
    made.now += 100;
  }
  for (unsigned lap : {0, 1}) {
    Expected<double> seconds = stopwatch.seconds(lap);
    ASSERT_OK(seconds.takeError());
    EXPECT_FLOAT_EQ(*seconds, (3 + lap) * 1e-3);
  }
}

TEST_F(CudaStopwatchTest, givesItsEventsBack) {
  {
    CudaStopwatch stopwatch(*device);
    ASSERT_OK(stopwatch.reserve(3));
    EXPECT_EQ(made.events.size(), 6u);
    ASSERT_OK(stopwatch.reserve(2));
    EXPECT_EQ(made.events.size(), 6u);
  }
  EXPECT_TRUE(made.events.empty());
}

TEST_F(CudaStopwatchTest, saysWhatTheDriverDoesNotDo) {
  made.fails = true;
  CudaStopwatch stopwatch(*device);
  expectError(stopwatch.reserve(1), "cannot create an event");
}

} // namespace
