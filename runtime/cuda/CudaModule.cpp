//===- CudaModule.cpp - Code on a GPU -------------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/CudaExecutor.h"
#include "runtime/Text.h"

#include <array>

using namespace bastile::runtime;

/// The largest cluster that every GPU with clusters supports.
static constexpr int64_t maxPortableCluster = 8;

Expected<std::shared_ptr<CudaModule>>
CudaModule::load(std::shared_ptr<const CudaDevice> device,
                 const std::string &image) {
  const CudaDriver &driver = device->driver();
  std::shared_ptr<CudaModule> result(new CudaModule(std::move(device)));
  CudaContextScope scope(result->device());
  if (Error error = scope.takeError())
    return error;

  std::array<char, 8192> log = {};
  int options[] = {cuda::ErrorLogBuffer, cuda::ErrorLogBufferSize};
  // The driver takes sizes as values in place of pointers.
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size() - 1)};
  cuda::Result status = driver.moduleLoadDataEx(&result->handle, image.c_str(),
                                                2, options, values);
  Error error =
      driver.check(status, "load code into ", result->device().name());
  if (error && log[0] != '\0')
    return makeError(error.message(), "\n", log.data());
  if (error)
    return error;
  return result;
}

CudaModule::~CudaModule() {
  if (!handle)
    return;
  CudaContextScope scope(*owner);
  if (!scope.takeError())
    owner->driver().moduleUnload(handle);
}

/// Lifts the limits that a kernel starts with, as far as `config` needs it.
Error CudaModule::permit(const std::string &name, Entry &entry,
                         const LaunchConfig &config) const {
  const CudaDriver &driver = owner->driver();
  if (config.sharedMemory > entry.sharedMemory) {
    // Attributes are ints for the driver; no GPU has more memory than that.
    if (config.sharedMemory > owner->maxSharedMemory())
      return makeError("kernel '", name, "' needs ", config.sharedMemory,
                       " bytes of shared memory, but ", owner->name(),
                       " has at most ", owner->maxSharedMemory());
    if (Error error = driver.check(
            driver.funcSetAttribute(entry.kernel, cuda::MaxDynamicSharedMemory,
                                    static_cast<int>(config.sharedMemory)),
            "give kernel '", name, "' ", config.sharedMemory,
            " bytes of shared memory"))
      return error;
    entry.sharedMemory = config.sharedMemory;
  }
  if (config.cluster > maxPortableCluster && !entry.nonPortableCluster) {
    if (Error error = driver.check(
            driver.funcSetAttribute(entry.kernel, cuda::NonPortableClusterSize,
                                    /*value=*/1),
            "give kernel '", name, "' clusters of ", config.cluster))
      return error;
    entry.nonPortableCluster = true;
  }
  return Error::success();
}

Expected<cuda::Kernel> CudaModule::kernel(const std::string &name,
                                          const LaunchConfig &config) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = entries.find(name);
  if (found == entries.end()) {
    Entry entry;
    const CudaDriver &driver = owner->driver();
    if (Error error = driver.check(
            driver.moduleGetFunction(&entry.kernel, handle, name.c_str()),
            "find kernel '", name, "'"))
      return error;
    found = entries.emplace(name, entry).first;
  }
  Entry &entry = found->second;
  if (Error error = permit(name, entry, config))
    return error;
  return entry.kernel;
}

Expected<CudaKernelInfo> CudaModule::info(const std::string &entry) {
  CudaContextScope scope(*owner);
  if (Error error = scope.takeError())
    return error;
  Expected<cuda::Kernel> function = kernel(entry);
  if (!function)
    return function.takeError();

  CudaKernelInfo result;
  const std::pair<cuda::KernelAttribute, int *> fields[] = {
      {cuda::Registers, &result.registers},
      {cuda::LocalMemory, &result.localMemory},
      {cuda::StaticSharedMemory, &result.staticSharedMemory},
  };
  const CudaDriver &driver = owner->driver();
  for (auto [attribute, value] : fields)
    if (Error error =
            driver.check(driver.funcGetAttribute(value, attribute, *function),
                         "read the properties of kernel '", entry, "'"))
      return error;
  return result;
}

Expected<int> CudaModule::blocksPerMultiprocessor(const std::string &entry,
                                                  const LaunchConfig &config) {
  CudaContextScope scope(*owner);
  if (Error error = scope.takeError())
    return error;
  Expected<cuda::Kernel> function = kernel(entry, config);
  if (!function)
    return function.takeError();
  int blocks = 0;
  const CudaDriver &driver = owner->driver();
  if (Error error =
          driver.check(driver.occupancyMaxActiveBlocksPerMultiprocessor(
                           &blocks, *function, static_cast<int>(config.block),
                           static_cast<size_t>(config.sharedMemory)),
                       "compute the occupancy of kernel '", entry, "'"))
    return error;
  return blocks;
}
