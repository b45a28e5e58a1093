//===- Machine.cpp - Running on the host ----------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Machine.h"
#include "HostMemory.h"

#include "bastile/Jit.h"
#include "bastile/runtime/HostExecutor.h"
#include <algorithm>
#include <chrono>
#include <cstring>

using namespace bastile;
using namespace bastile::run;
using runtime::Error;
using runtime::Expected;
using runtime::LaunchPlan;

Memory::~Memory() = default;
Machine::~Machine() = default;

Error Machine::write(const Memory &memory,
                     const std::vector<char> &bytes) const {
  std::memcpy(memory.data(), bytes.data(), bytes.size());
  return Error::success();
}

Error Machine::read(const Memory &memory, std::vector<char> &bytes) const {
  std::memcpy(bytes.data(), memory.data(), bytes.size());
  return Error::success();
}

namespace {

class HostMachine final : public Machine {
public:
  HostMachine(std::unique_ptr<Jit> jit, unsigned threads)
      : jit(std::move(jit)),
        executor([this](const std::string &entry) { return find(entry); },
                 threads) {}

  runtime::Capacity capacity() const override { return executor.capacity(); }

  Expected<std::unique_ptr<Memory>> allocate(size_t bytes) const override {
    return std::unique_ptr<Memory>(std::make_unique<HostMemory>(bytes));
  }

  Error run(LaunchPlan &plan) override {
    return runtime::execute(plan, executor);
  }

  Expected<double> time(llvm::ArrayRef<LaunchPlan *> plans,
                        unsigned repeat) override {
    using Clock = std::chrono::steady_clock;
    std::vector<double> samples;
    for (unsigned i = 0; i != repeat; ++i) {
      Clock::time_point start = Clock::now();
      for (LaunchPlan *plan : plans)
        if (Error error = run(*plan))
          return error;
      std::chrono::duration<double> seconds = Clock::now() - start;
      samples.push_back(seconds.count() / plans.size());
    }
    return median(std::move(samples));
  }

private:
  void *find(const std::string &entry) const {
    llvm::Expected<void *> address = jit->lookup(entry);
    if (address)
      return *address;
    // The executor reports a missing entry itself.
    llvm::consumeError(address.takeError());
    return nullptr;
  }

  std::unique_ptr<Jit> jit;
  runtime::HostExecutor executor;
};

} // namespace

std::unique_ptr<Machine> run::makeHostMachine(std::unique_ptr<Jit> jit,
                                              unsigned threads) {
  return std::make_unique<HostMachine>(std::move(jit), threads);
}

double run::median(std::vector<double> samples) {
  auto middle = samples.begin() + samples.size() / 2;
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}
