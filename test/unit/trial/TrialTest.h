//===- TrialTest.h - Programs of one kernel ---------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEST_UNIT_TRIAL_TRIALTEST_H
#define BASTILE_TEST_UNIT_TRIAL_TRIALTEST_H

#include "bastile/runtime/HostExecutor.h"
#include "tools/tile-run/Trial.h"
#include "llvm/Support/ErrorHandling.h"
#include <cstring>

namespace bastile::run {

/// A machine whose only kernel is a function of this process.
class TestMachine final : public Machine {
public:
  explicit TestMachine(runtime::HostEntry entry)
      : executor([entry](const std::string &) {
          return reinterpret_cast<void *>(entry);
        }) {}

  runtime::Capacity capacity() const override { return 1; }

  runtime::Expected<std::unique_ptr<Memory>>
  allocate(size_t bytes) const override {
    return std::unique_ptr<Memory>(std::make_unique<TestMemory>(bytes));
  }
  runtime::Error write(const Memory &memory,
                       const std::vector<char> &bytes) const override {
    std::memcpy(memory.data(), bytes.data(), bytes.size());
    return runtime::Error::success();
  }
  runtime::Error read(const Memory &memory,
                      std::vector<char> &bytes) const override {
    std::memcpy(bytes.data(), memory.data(), bytes.size());
    return runtime::Error::success();
  }
  runtime::Error run(runtime::LaunchPlan &plan) override {
    return runtime::execute(plan, executor);
  }
  runtime::Expected<double> time(llvm::ArrayRef<runtime::LaunchPlan *>,
                                 unsigned) override {
    return runtime::Error("this machine has no clock");
  }

private:
  class TestMemory final : public Memory {
  public:
    explicit TestMemory(size_t bytes) : bytes(bytes) {}
    void *data() const override { return bytes.data(); }

  private:
    mutable std::vector<char> bytes;
  };

  runtime::HostExecutor executor;
};

/// An oracle for functions of one input and one output.
class TestOracle final : public Oracle {
public:
  using Evaluate = Expectation (*)(const Tensor &);
  explicit TestOracle(Evaluate evaluateOne) : evaluateOne(evaluateOne) {}

  unsigned countResults(const runtime::Function &) const override { return 1; }
  bool returnsGradients() const override { return false; }
  bool isGradientOf(const std::string &) const override { return false; }
  runtime::Expected<Expectations>
  evaluate(const runtime::Function &,
           const std::vector<Tensor> &inputs) const override {
    return Expectations{evaluateOne(inputs.front())};
  }
  runtime::Expected<Expectations>
  differentiate(const runtime::Function &, const std::vector<Tensor> &,
                const std::vector<std::optional<Tensor>> &) const override {
    return runtime::Error("this oracle has no derivatives");
  }

private:
  Evaluate evaluateOne;
};

/// The function that `json` describes, with `entry` as its kernel.
inline Program makeProgram(const std::string &json, runtime::HostEntry entry) {
  auto metadata = runtime::parseMetadata(
      R"({"schema": "bastile.kernels", "version": 1, "compiler": "a test",
          "target": "host", "functions": [)" +
      json + "]}");
  runtime::Error error = metadata.takeError();
  if (error)
    llvm::report_fatal_error(error.message().c_str());
  return {std::move(*metadata), std::make_unique<TestMachine>(entry)};
}

} // namespace bastile::run

#endif // BASTILE_TEST_UNIT_TRIAL_TRIALTEST_H
