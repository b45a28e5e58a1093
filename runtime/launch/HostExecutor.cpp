//===- HostExecutor.cpp - Kernels compiled for the host -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/HostExecutor.h"
#include "bastile/runtime/WorkerThreads.h"
#include "runtime/Text.h"

#include <algorithm>
#include <atomic>
#include <cstring>

using namespace bastile::runtime;

HostExecutor::HostExecutor(SymbolLookup lookup, unsigned threads)
    : lookup(std::move(lookup)), threads(std::max(threads, 1u)) {}

Expected<HostEntry> HostExecutor::find(const std::string &entry) {
  auto found = entries.find(entry);
  if (found != entries.end())
    return found->second;
  void *address = lookup(entry);
  if (!address)
    return makeError("no function is called '", entry, "'");
  auto function = reinterpret_cast<HostEntry>(address);
  entries.emplace(entry, function);
  return function;
}

Error HostExecutor::launch(const std::string &entry, const LaunchConfig &config,
                           void **arguments) {
  Expected<HostEntry> function = find(entry);
  if (!function)
    return function.takeError();

  const int64_t count = config.grid;
  const int64_t parts = std::min<int64_t>(threads, count);
  // The first `count % parts` parts have one block more than the others.
  auto begin = [&](int64_t part) {
    return part * (count / parts) + std::min(part, count % parts);
  };
  // Threads take parts one by one, as there may be fewer threads than parts.
  std::atomic<int64_t> next{0};
  auto work = [&] {
    for (int64_t part = next++; part < parts; part = next++)
      (*function)(arguments, begin(part), begin(part + 1), count);
  };
  WorkerThreads others(static_cast<size_t>(std::max<int64_t>(parts - 1, 0)),
                       work);
  work();
  others.join();
  return Error::success();
}

Error HostExecutor::zero(void *data, int64_t bytes) {
  std::memset(data, 0, static_cast<size_t>(bytes));
  return Error::success();
}

Error HostExecutor::encode(const TensorMapSpec &, EncodedTensorMap &) {
  return makeError("kernels of the host take no tensor maps");
}
