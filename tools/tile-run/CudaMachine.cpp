//===- CudaMachine.cpp - Running on a GPU
//-------------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "bastile/runtime/CudaExecutor.h"

using namespace bastile;
using namespace bastile::run;
using runtime::CudaBuffer;
using runtime::CudaContextScope;
using runtime::CudaDevice;
using runtime::CudaDriver;
using runtime::CudaExecutor;
using runtime::CudaModule;
using runtime::Error;
using runtime::Expected;
using runtime::LaunchPlan;
namespace cuda = runtime::cuda;

namespace {

class CudaMemory final : public Memory {
public:
  explicit CudaMemory(CudaBuffer buffer) : buffer(std::move(buffer)) {}

  void *data() const override { return buffer.data(); }

private:
  CudaBuffer buffer;
};

/// Two moments in the default stream of a device.
class Stopwatch {
public:
  explicit Stopwatch(const CudaDevice &device)
      : driver(device.driver()), scope(device) {}
  ~Stopwatch() {
    for (cuda::Event event : {begin, end})
      if (event)
        driver.eventDestroy(event);
  }
  Stopwatch(const Stopwatch &) = delete;
  Stopwatch &operator=(const Stopwatch &) = delete;

  Error create() {
    if (Error error = scope.takeError())
      return error;
    for (cuda::Event *event : {&begin, &end})
      if (Error error = driver.check(driver.eventCreate(event, /*flags=*/0),
                                     "create an event"))
        return error;
    return Error::success();
  }

  Error start() { return record(begin); }

  /// The seconds since `start`, as the device passed both moments.
  Expected<double> stop() {
    if (Error error = record(end))
      return error;
    if (Error error =
            driver.check(driver.eventSynchronize(end), "wait for the GPU"))
      return error;
    float milliseconds = 0;
    if (Error error =
            driver.check(driver.eventElapsedTime(&milliseconds, begin, end),
                         "read the time of the GPU"))
      return error;
    return milliseconds / 1e3;
  }

private:
  Error record(cuda::Event event) {
    return driver.check(driver.eventRecord(event, /*stream=*/nullptr),
                        "record an event");
  }

  const CudaDriver &driver;
  CudaContextScope scope;
  cuda::Event begin = nullptr, end = nullptr;
};

class CudaMachine final : public Machine {
public:
  CudaMachine(std::shared_ptr<const CudaDevice> device,
              std::shared_ptr<CudaModule> module)
      : device(std::move(device)), module(std::move(module)),
        executor(*this->module) {}

  int64_t multiprocessors() const override { return device->multiprocessors(); }

  Expected<std::unique_ptr<Memory>> allocate(size_t bytes) const override {
    Expected<CudaBuffer> buffer = CudaBuffer::allocate(device, bytes);
    if (!buffer)
      return buffer.takeError();
    return std::unique_ptr<Memory>(
        std::make_unique<CudaMemory>(std::move(*buffer)));
  }
  Error write(const Memory &memory,
              const std::vector<char> &bytes) const override {
    return device->copyToDevice(memory.data(), bytes.data(), bytes.size());
  }
  Error read(const Memory &memory, std::vector<char> &bytes) const override {
    return device->copyToHost(bytes.data(), memory.data(), bytes.size());
  }

  Error run(LaunchPlan &plan) override {
    if (Error error = runtime::execute(plan, executor))
      return error;
    return device->synchronize();
  }

  /// Twice the largest second-level cache of any GPU so far.
  size_t bytesPastCaches() const override { return size_t(256) << 20; }

  Expected<double> time(llvm::ArrayRef<LaunchPlan *> plans,
                        unsigned repeat) override {
    Stopwatch stopwatch(*device);
    if (Error error = stopwatch.create())
      return error;
    std::vector<double> samples;
    // The first pass warms up.
    for (unsigned i = 0; i != repeat + 1; ++i) {
      if (Error error = stopwatch.start())
        return error;
      for (LaunchPlan *plan : plans)
        if (Error error = runtime::execute(*plan, executor))
          return error;
      Expected<double> seconds = stopwatch.stop();
      if (!seconds)
        return seconds;
      if (i != 0)
        samples.push_back(*seconds / plans.size());
    }
    return median(std::move(samples));
  }

private:
  std::shared_ptr<const CudaDevice> device;
  std::shared_ptr<CudaModule> module;
  CudaExecutor executor;
};

} // namespace

Expected<std::unique_ptr<Machine>>
run::makeCudaMachine(std::shared_ptr<const CudaDevice> device,
                     const std::string &ptx) {
  Expected<std::shared_ptr<CudaModule>> module = CudaModule::load(device, ptx);
  if (!module)
    return module.takeError();
  return std::unique_ptr<Machine>(
      std::make_unique<CudaMachine>(std::move(device), std::move(*module)));
}
