//===- CudaMachine.cpp - Running on a GPU ---------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "bastile/runtime/CudaExecutor.h"
#include "bastile/runtime/CudaStopwatch.h"

using namespace bastile;
using namespace bastile::run;
using runtime::CudaBuffer;
using runtime::CudaDevice;
using runtime::CudaExecutor;
using runtime::CudaModule;
using runtime::Error;
using runtime::Expected;
using runtime::LaunchPlan;

namespace {

class CudaMemory final : public Memory {
public:
  explicit CudaMemory(CudaBuffer buffer) : buffer(std::move(buffer)) {}

  void *data() const override { return buffer.data(); }

private:
  CudaBuffer buffer;
};

class CudaMachine final : public Machine {
public:
  CudaMachine(std::shared_ptr<const CudaDevice> device,
              std::shared_ptr<CudaModule> module)
      : device(std::move(device)), module(std::move(module)),
        executor(*this->module) {}

  runtime::Capacity capacity() const override { return device->capacity(); }

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
    runtime::CudaStopwatch stopwatch(*device);
    if (Error error = stopwatch.reserve(1))
      return error;
    std::vector<double> samples;
    // The first round through the calls warms up.
    for (unsigned i = 0; i != repeat + 1; ++i) {
      if (Error error = stopwatch.start(0))
        return error;
      for (LaunchPlan *plan : plans)
        if (Error error = runtime::execute(*plan, executor))
          return error;
      if (Error error = stopwatch.stop(0))
        return error;
      Expected<double> seconds = stopwatch.seconds(0);
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
