//===- CudaDevice.cpp - A GPU and its memory ------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/CudaDevice.h"
#include "runtime/Text.h"

using namespace bastile::runtime;

//===----------------------------------------------------------------------===//
// CudaDevice
//===----------------------------------------------------------------------===//

Expected<std::shared_ptr<const CudaDevice>>
CudaDevice::open(std::shared_ptr<const CudaDriver> driver, int ordinal) {
  const CudaDriver &table = *driver;
  if (Error error = table.check(table.init(0), "start the CUDA driver"))
    return error;
  int count = 0;
  if (Error error = table.check(table.deviceGetCount(&count), "count the GPUs"))
    return error;
  if (ordinal < 0 || ordinal >= count)
    return makeError("no GPU ", ordinal, ": there are ", count);
  cuda::Device device = 0;
  if (Error error =
          table.check(table.deviceGet(&device, ordinal), "open GPU ", ordinal))
    return error;

  std::shared_ptr<CudaDevice> result(new CudaDevice(std::move(driver), device));
  if (Error error =
          table.check(table.devicePrimaryCtxRetain(&result->handle, device),
                      "make a context on GPU ", ordinal))
    return error;
  result->ownsContext = true;
  if (Error error = result->readProperties())
    return error;
  return std::shared_ptr<const CudaDevice>(std::move(result));
}

Expected<std::shared_ptr<const CudaDevice>>
CudaDevice::current(std::shared_ptr<const CudaDriver> driver) {
  const CudaDriver &table = *driver;
  if (Error error = table.check(table.init(0), "start the CUDA driver"))
    return error;
  cuda::Context context = nullptr;
  if (Error error = table.check(table.ctxGetCurrent(&context),
                                "find the current CUDA context"))
    return error;
  if (!context)
    return makeError("no CUDA context is current in this thread");
  cuda::Device device = 0;
  if (Error error = table.check(table.ctxGetDevice(&device),
                                "find the GPU of the current context"))
    return error;

  std::shared_ptr<CudaDevice> result(new CudaDevice(std::move(driver), device));
  result->handle = context;
  if (Error error = result->readProperties())
    return error;
  return std::shared_ptr<const CudaDevice>(std::move(result));
}

CudaDevice::~CudaDevice() {
  if (ownsContext)
    driverTable->devicePrimaryCtxRelease(device);
}

Error CudaDevice::readProperties() {
  char text[256] = {};
  if (Error error = driverTable->check(
          driverTable->deviceGetName(text, sizeof(text) - 1, device),
          "read the name of the GPU"))
    return error;
  deviceName = text;
  if (Error error =
          driverTable->check(driverTable->driverGetVersion(&cudaVersion),
                             "read the version of the CUDA driver"))
    return error;

  Error error;
  auto read = [&](cuda::DeviceAttribute attribute) {
    int value = 0;
    if (!error)
      error = driverTable->check(
          driverTable->deviceGetAttribute(&value, attribute, device),
          "read the properties of the GPU");
    return value;
  };
  multiprocessorCount = read(cuda::MultiprocessorCount);
  threadLimit = read(cuda::MaxThreadsPerMultiprocessor);
  capability = 10 * read(cuda::ComputeCapabilityMajor);
  capability += read(cuda::ComputeCapabilityMinor);
  sharedMemoryLimit = read(cuda::MaxSharedMemoryPerBlock);
  return error;
}

Error CudaDevice::copyToDevice(void *target, const void *source, size_t bytes,
                               cuda::Stream stream) const {
  CudaContextScope scope(*this);
  if (Error error = scope.takeError())
    return error;
  auto address = reinterpret_cast<cuda::Address>(target);
  if (Error error = driverTable->check(
          driverTable->memcpyHtoDAsync(address, source, bytes, stream), "copy ",
          bytes, " bytes to the GPU"))
    return error;
  return synchronize(stream);
}

Error CudaDevice::copyToHost(void *target, const void *source, size_t bytes,
                             cuda::Stream stream) const {
  CudaContextScope scope(*this);
  if (Error error = scope.takeError())
    return error;
  auto address = reinterpret_cast<cuda::Address>(source);
  if (Error error = driverTable->check(
          driverTable->memcpyDtoHAsync(target, address, bytes, stream), "copy ",
          bytes, " bytes from the GPU"))
    return error;
  return synchronize(stream);
}

Error CudaDevice::synchronize(cuda::Stream stream) const {
  CudaContextScope scope(*this);
  if (Error error = scope.takeError())
    return error;
  return driverTable->check(driverTable->streamSynchronize(stream),
                            "finish the work on the GPU");
}

//===----------------------------------------------------------------------===//
// CudaContextScope
//===----------------------------------------------------------------------===//

CudaContextScope::CudaContextScope(const CudaDevice &device)
    : driver(device.driver()) {
  error = driver.check(driver.ctxGetCurrent(&previous),
                       "find the current CUDA context");
  if (error || previous == device.context())
    return;
  error = driver.check(driver.ctxSetCurrent(device.context()),
                       "make a CUDA context current");
  changed = !error;
}

CudaContextScope::~CudaContextScope() {
  if (changed)
    driver.ctxSetCurrent(previous);
}

//===----------------------------------------------------------------------===//
// CudaBuffer
//===----------------------------------------------------------------------===//

Expected<CudaBuffer>
CudaBuffer::allocate(std::shared_ptr<const CudaDevice> device, size_t bytes) {
  CudaBuffer result;
  // The driver refuses empty allocations; an empty tensor needs none.
  if (bytes == 0)
    return result;
  CudaContextScope scope(*device);
  if (Error error = scope.takeError())
    return error;
  const CudaDriver &driver = device->driver();
  if (Error error = driver.check(driver.memAlloc(&result.address, bytes),
                                 "allocate ", bytes, " bytes on the GPU"))
    return error;
  result.device = std::move(device);
  return result;
}

CudaBuffer &CudaBuffer::operator=(CudaBuffer &&other) noexcept {
  std::swap(device, other.device);
  std::swap(address, other.address);
  return *this;
}

CudaBuffer::~CudaBuffer() {
  if (!device)
    return;
  CudaContextScope scope(*device);
  if (!scope.takeError())
    device->driver().memFree(address);
}
