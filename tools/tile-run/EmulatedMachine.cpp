//===- EmulatedMachine.cpp - Running GPU code without a GPU ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "HostMemory.h"
#include "Machine.h"

#include "bastile/EmulatorExecutor.h"
#include <map>

using namespace bastile;
using namespace bastile::run;
using runtime::Error;
using runtime::Expected;
using runtime::LaunchPlan;

namespace {

/// The memory that calls have at the moment, in bytes by address.
using LiveMemory = std::map<void *, size_t>;

class EmulatedMemory final : public HostMemory {
public:
  EmulatedMemory(size_t bytes, LiveMemory &live)
      : HostMemory(bytes), live(live) {
    live[data()] = bytes;
  }
  ~EmulatedMemory() override { live.erase(data()); }

private:
  LiveMemory &live;
};

class EmulatedMachine final : public Machine {
public:
  explicit EmulatedMachine(std::unique_ptr<Emulator> emulator)
      : emulator(std::move(emulator)), executor(*this->emulator) {
    this->emulator->setWorstApproximations(true);
  }

  runtime::Capacity capacity() const override { return executor.capacity(); }

  Expected<std::unique_ptr<Memory>> allocate(size_t bytes) const override {
    return std::unique_ptr<Memory>(
        std::make_unique<EmulatedMemory>(bytes, live));
  }

  Error run(LaunchPlan &plan) override {
    emulator->clearBuffers();
    // The call itself checks that it has not written to its inputs.
    for (auto [data, bytes] : live)
      emulator->registerBuffer(data, bytes, "tensor", /*isWritable=*/true);
    return runtime::execute(plan, executor);
  }

  Expected<double> time(llvm::ArrayRef<LaunchPlan *>, unsigned) override {
    return Error("an emulated GPU has no times: give --repeat=0");
  }

private:
  mutable LiveMemory live;
  std::unique_ptr<Emulator> emulator;
  EmulatorExecutor executor;
};

} // namespace

std::unique_ptr<Machine>
run::makeEmulatedMachine(std::unique_ptr<Emulator> emulator) {
  return std::make_unique<EmulatedMachine>(std::move(emulator));
}
