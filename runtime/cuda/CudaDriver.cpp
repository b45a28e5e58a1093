//===- CudaDriver.cpp - The CUDA driver, opened at run time ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/CudaDriver.h"
#include "runtime/Text.h"

#include <dlfcn.h>

using namespace bastile::runtime;

namespace {
/// Finds entry points and remembers the first that is missing.
class Resolver {
public:
  explicit Resolver(void *library) : library(library) {}

  template <typename FunctionPointer>
  void operator()(FunctionPointer &target, const char *name) {
    void *address = dlsym(library, name);
    if (!address && !missing)
      missing = name;
    target = reinterpret_cast<FunctionPointer>(address);
  }

  /// Leaves null what the library lacks.
  template <typename FunctionPointer>
  void optional(FunctionPointer &target, const char *name) {
    target = reinterpret_cast<FunctionPointer>(dlsym(library, name));
  }

  const char *firstMissing() const { return missing; }

private:
  void *library;
  const char *missing = nullptr;
};
} // namespace

Expected<std::shared_ptr<const CudaDriver>>
CudaDriver::open(const std::string &library) {
  // The library is never closed: the driver has threads and exit handlers of
  // its own.
  void *handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return makeError("cannot open the CUDA driver: ", dlerror());

  auto driver = std::make_shared<CudaDriver>();
  Resolver resolve(handle);
  resolve(driver->init, "cuInit");
  resolve(driver->getErrorName, "cuGetErrorName");
  resolve(driver->getErrorString, "cuGetErrorString");
  resolve(driver->driverGetVersion, "cuDriverGetVersion");
  resolve(driver->deviceGetCount, "cuDeviceGetCount");
  resolve(driver->deviceGet, "cuDeviceGet");
  resolve(driver->deviceGetName, "cuDeviceGetName");
  resolve(driver->deviceGetAttribute, "cuDeviceGetAttribute");
  resolve(driver->devicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  resolve(driver->devicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2");
  resolve(driver->ctxGetCurrent, "cuCtxGetCurrent");
  resolve(driver->ctxSetCurrent, "cuCtxSetCurrent");
  resolve(driver->ctxGetDevice, "cuCtxGetDevice");
  resolve(driver->moduleLoadDataEx, "cuModuleLoadDataEx");
  resolve(driver->linkCreate, "cuLinkCreate_v2");
  resolve(driver->linkAddData, "cuLinkAddData_v2");
  resolve(driver->linkComplete, "cuLinkComplete");
  resolve(driver->linkDestroy, "cuLinkDestroy");
  resolve(driver->moduleUnload, "cuModuleUnload");
  resolve(driver->moduleGetFunction, "cuModuleGetFunction");
  resolve(driver->funcGetAttribute, "cuFuncGetAttribute");
  resolve(driver->funcSetAttribute, "cuFuncSetAttribute");
  resolve(driver->occupancyMaxActiveBlocksPerMultiprocessor,
          "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  resolve(driver->occupancyMaxActiveClusters, "cuOccupancyMaxActiveClusters");
  resolve(driver->launchKernel, "cuLaunchKernel");
  resolve(driver->launchKernelEx, "cuLaunchKernelEx");
  resolve(driver->memAlloc, "cuMemAlloc_v2");
  resolve(driver->memFree, "cuMemFree_v2");
  resolve(driver->memcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
  resolve(driver->memcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  resolve(driver->memsetD8Async, "cuMemsetD8Async");
  resolve.optional(driver->tensorMapEncodeTiled, "cuTensorMapEncodeTiled");
  resolve.optional(driver->tensorMapReplaceAddress,
                   "cuTensorMapReplaceAddress");
  resolve(driver->threadExchangeStreamCaptureMode,
          "cuThreadExchangeStreamCaptureMode");
  resolve(driver->streamCreate, "cuStreamCreate");
  resolve(driver->streamDestroy, "cuStreamDestroy_v2");
  resolve(driver->streamSynchronize, "cuStreamSynchronize");
  resolve(driver->eventCreate, "cuEventCreate");
  resolve(driver->eventDestroy, "cuEventDestroy_v2");
  resolve(driver->eventRecord, "cuEventRecord");
  resolve(driver->eventSynchronize, "cuEventSynchronize");
  resolve(driver->eventElapsedTime, "cuEventElapsedTime");
  if (const char *missing = resolve.firstMissing())
    return makeError("'", library, "' lacks '", missing,
                     "': a CUDA driver of version 525 or later is needed");
  return std::shared_ptr<const CudaDriver>(std::move(driver));
}

Error CudaDriver::fail(cuda::Result result, const std::string &action) const {
  const char *name = nullptr;
  const char *text = nullptr;
  if (getErrorName(result, &name) != cuda::successResult || !name ||
      getErrorString(result, &text) != cuda::successResult || !text)
    return makeError("cannot ", action, ": CUDA error ", result);
  return makeError("cannot ", action, ": ", text, " (", name, ")");
}
