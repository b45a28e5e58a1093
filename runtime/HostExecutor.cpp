//===- HostExecutor.cpp - Kernels compiled for the host -------------------===//

#include "bastile/runtime/HostExecutor.h"
#include "Text.h"

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

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
  // The first `count % parts` threads run one block more than the others.
  auto begin = [&](int64_t part) {
    return part * (count / parts) + std::min(part, count % parts);
  };
  std::vector<std::thread> workers;
  for (int64_t part = 1; part < parts; ++part)
    workers.emplace_back(*function, arguments, begin(part), begin(part + 1),
                         count);
  if (parts > 0)
    (*function)(arguments, 0, begin(1), count);
  for (std::thread &worker : workers)
    worker.join();
  return Error::success();
}

Error HostExecutor::zero(void *data, int64_t bytes) {
  std::memset(data, 0, static_cast<size_t>(bytes));
  return Error::success();
}
