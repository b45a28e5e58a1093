//===- CudaExecutor.cpp - Kernels on a GPU --------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/CudaExecutor.h"
#include "runtime/Text.h"

#include <limits>

using namespace bastile::runtime;

/// Launches a kernel with attributes, which the short form of a launch cannot
/// carry.
static cuda::Result launchWithAttributes(const CudaDriver &driver,
                                         cuda::Kernel kernel,
                                         const LaunchConfig &config,
                                         cuda::Stream stream,
                                         void **arguments) {
  cuda::LaunchAttribute attributes[2] = {};
  unsigned count = 0;
  if (config.cluster > 1) {
    cuda::LaunchAttribute &attribute = attributes[count++];
    attribute.id = cuda::ClusterDimension;
    attribute.value.clusterDimension[0] = static_cast<unsigned>(config.cluster);
    attribute.value.clusterDimension[1] = 1;
    attribute.value.clusterDimension[2] = 1;
  }
  if (config.overlapPrevious) {
    cuda::LaunchAttribute &attribute = attributes[count++];
    attribute.id = cuda::ProgrammaticStreamSerialization;
    attribute.value.programmaticStreamSerialization = 1;
  }
  cuda::LaunchSettings settings = {};
  settings.gridX = static_cast<unsigned>(config.grid);
  settings.gridY = settings.gridZ = 1;
  settings.blockX = static_cast<unsigned>(config.block);
  settings.blockY = settings.blockZ = 1;
  settings.sharedMemory = static_cast<unsigned>(config.sharedMemory);
  settings.stream = stream;
  settings.attributes = attributes;
  settings.attributeCount = count;
  return driver.launchKernelEx(&settings, kernel, arguments,
                               /*extra=*/nullptr);
}

Error CudaExecutor::launch(const std::string &entry, const LaunchConfig &config,
                           void **arguments) {
  if (config.grid > std::numeric_limits<int>::max())
    return makeError("kernel '", entry, "': a grid of ", config.grid,
                     " blocks is more than a GPU takes");
  CudaContextScope scope(module.device());
  if (Error error = scope.takeError())
    return error;
  Expected<cuda::Kernel> kernel = module.kernel(entry, config);
  if (!kernel)
    return kernel.takeError();

  const CudaDriver &driver = module.device().driver();
  cuda::Result status;
  if (config.cluster > 1 || config.overlapPrevious)
    status = launchWithAttributes(driver, *kernel, config, stream, arguments);
  else
    status = driver.launchKernel(*kernel, static_cast<unsigned>(config.grid), 1,
                                 1, static_cast<unsigned>(config.block), 1, 1,
                                 static_cast<unsigned>(config.sharedMemory),
                                 stream, arguments,
                                 /*extra=*/nullptr);
  if (status == cuda::successResult)
    return Error::success();
  return driver.check(status, "launch kernel '", entry, "' with ", config.grid,
                      " blocks of ", config.block, " threads in clusters of ",
                      config.cluster, " with ", config.sharedMemory,
                      " bytes of shared memory");
}

Error bastile::runtime::fillWithZeros(const CudaDevice &device,
                                      cuda::Stream stream, void *data,
                                      int64_t bytes) {
  CudaContextScope scope(device);
  if (Error error = scope.takeError())
    return error;
  return device.driver().check(
      device.driver().memsetD8Async(reinterpret_cast<cuda::Address>(data), 0,
                                    static_cast<size_t>(bytes), stream),
      "fill ", bytes, " bytes on the GPU with zeros");
}

Error CudaExecutor::zero(void *data, int64_t bytes) {
  return fillWithZeros(module.device(), stream, data, bytes);
}
