//===- HostExecutor.h - Kernels compiled for the host -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_HOSTEXECUTOR_H
#define BASTILE_RUNTIME_HOSTEXECUTOR_H

#include "bastile/runtime/Executor.h"

#include <functional>
#include <unordered_map>

namespace bastile::runtime {

/// A kernel for the host runs the blocks [begin, end) of a grid of `count`
/// blocks one after the other. `arguments` is as for `Executor::launch`.
using HostEntry = void (*)(void **arguments, int64_t begin, int64_t end,
                           int64_t count);

/// Calls functions in this process. Not to be shared between threads.
class HostExecutor final : public Executor {
public:
  /// Finds the address of an entry; null if there is none.
  using SymbolLookup = std::function<void *(const std::string &entry)>;

  /// Each symbol is looked up once. The grid is cut into `threads` contiguous
  /// parts. Where the process cannot start as many threads, each thread runs
  /// several parts, and the caller's thread all of them if it can start none.
  explicit HostExecutor(SymbolLookup lookup, unsigned threads = 1);

  Error launch(const std::string &entry, const LaunchConfig &config,
               void **arguments) override;
  Error zero(void *data, int64_t bytes) override;

  /// Fails, as kernels of the host copy with loops.
  Error encode(const TensorMapSpec &spec, EncodedTensorMap &map) override;

  /// One block for each thread, so that a persistent grid uses all of them.
  Capacity capacity() const override { return threads; }

private:
  Expected<HostEntry> find(const std::string &entry);

  SymbolLookup lookup;
  unsigned threads;
  std::unordered_map<std::string, HostEntry> entries;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_HOSTEXECUTOR_H
