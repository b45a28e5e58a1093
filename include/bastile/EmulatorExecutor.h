//===- EmulatorExecutor.h - Launch plans on the emulator --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_EMULATOREXECUTOR_H
#define BASTILE_EMULATOREXECUTOR_H

#include "bastile/Emulator.h"
#include "bastile/runtime/Executor.h"

namespace bastile {

/// Runs the launches of a plan on an emulated GPU.
class EmulatorExecutor final : public runtime::Executor,
                               private runtime::GpuTraits {
public:
  /// `multiprocessors` is small so that each block of a persistent grid goes
  /// through several groups of rows.
  explicit EmulatorExecutor(Emulator &emulator, int64_t multiprocessors = 2)
      : emulator(emulator), count(multiprocessors) {}

  runtime::Error launch(const std::string &entry,
                        const runtime::LaunchConfig &config,
                        void **arguments) override;
  runtime::Error zero(void *data, int64_t bytes) override;
  runtime::Error encode(const runtime::TensorMapSpec &spec,
                        runtime::EncodedTensorMap &map) override;
  /// An emulated GPU has every feature.
  runtime::Capacity capacity() const override { return {count, this}; }

private:
  int64_t countClusters(int64_t blocks) const override;
  bool has(runtime::Feature) const override { return true; }
  std::string explainLack(runtime::Feature) const override { return ""; }

  Emulator &emulator;
  int64_t count;
};

} // namespace bastile

#endif // BASTILE_EMULATOREXECUTOR_H
