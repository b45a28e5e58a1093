//===- CudaDriver.h - The CUDA driver, opened at run time -------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Nothing here needs the CUDA toolkit: the driver's library is opened when the
// first kernel is loaded, and this file declares the part of its interface that
// the runtime uses. A machine without a GPU gets an error instead of a program
// that does not start.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_CUDADRIVER_H
#define BASTILE_RUNTIME_CUDADRIVER_H

#include "bastile/runtime/Error.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>

namespace bastile::runtime {

/// The binary interface of the driver, under names of our own so that a file
/// may include the vendor's header as well. All handles are opaque pointers.
namespace cuda {

using Result = int;
using Device = int;
using Address = uint64_t;
using Context = void *;
using Module = void *;
using Kernel = void *;
using Stream = void *;
using Event = void *;
using Linker = void *;

constexpr Result successResult = 0;

enum DeviceAttribute : int {
  MultiprocessorCount = 16,
  MaxThreadsPerMultiprocessor = 39,
  ComputeCapabilityMajor = 75,
  ComputeCapabilityMinor = 76,
  MaxSharedMemoryPerBlock = 97,
};

enum KernelAttribute : int {
  StaticSharedMemory = 1,
  LocalMemory = 3,
  Registers = 4,
  MaxDynamicSharedMemory = 8,
  NonPortableClusterSize = 14,
};

enum JitOption : int {
  ErrorLogBuffer = 5,
  ErrorLogBufferSize = 6,
};

/// The kind of an image given to the linker.
enum JitInputType : int {
  PtxInput = 1,
};

/// Which calls a capturing thread may make.
enum StreamCaptureMode : int {
  RelaxedCapture = 2,
};

enum TensorMapInterleave : int {
  NotInterleaved = 0,
};

enum TensorMapPromotion : int {
  PromoteTo256Bytes = 3,
};

enum TensorMapFill : int {
  FillWithZeros = 0,
};

enum LaunchAttributeId : int {
  ClusterDimension = 4,
  ProgrammaticStreamSerialization = 6,
};

struct LaunchAttribute {
  LaunchAttributeId id;
  union alignas(8) {
    unsigned clusterDimension[3];
    int programmaticStreamSerialization;
    char reserved[64];
  } value;
};
static_assert(sizeof(LaunchAttribute) == 72, "the layout is the driver's");

struct LaunchSettings {
  unsigned gridX, gridY, gridZ;
  unsigned blockX, blockY, blockZ;
  unsigned sharedMemory;
  Stream stream;
  LaunchAttribute *attributes;
  unsigned attributeCount;
};
static_assert(sizeof(LaunchSettings) == 56, "the layout is the driver's");

} // namespace cuda

/// The entry points of the driver. Each member has the name of the function
/// that it points to, less "cu"; of a function with several versions it is the
/// second one, which every driver since 2022 has.
struct CudaDriver {
  /// Opens `library` and finds all entry points.
  static Expected<std::shared_ptr<const CudaDriver>>
  open(const std::string &library = "libcuda.so.1");

  /// Success, or "cannot <action>: <the driver's words>". The parts of the
  /// action are put together only for a failure.
  template <typename... Parts>
  Error check(cuda::Result result, const Parts &...action) const {
    if (result == cuda::successResult)
      return Error::success();
    std::ostringstream stream;
    (stream << ... << action);
    return fail(result, stream.str());
  }

  Error fail(cuda::Result result, const std::string &action) const;

  cuda::Result (*init)(unsigned flags);
  cuda::Result (*getErrorName)(cuda::Result, const char **name);
  cuda::Result (*getErrorString)(cuda::Result, const char **text);

  cuda::Result (*driverGetVersion)(int *version);
  cuda::Result (*deviceGetCount)(int *count);
  cuda::Result (*deviceGet)(cuda::Device *, int ordinal);
  cuda::Result (*deviceGetName)(char *name, int length, cuda::Device);
  cuda::Result (*deviceGetAttribute)(int *value, int attribute, cuda::Device);

  cuda::Result (*devicePrimaryCtxRetain)(cuda::Context *, cuda::Device);
  cuda::Result (*devicePrimaryCtxRelease)(cuda::Device);
  cuda::Result (*ctxGetCurrent)(cuda::Context *);
  cuda::Result (*ctxSetCurrent)(cuda::Context);
  cuda::Result (*ctxGetDevice)(cuda::Device *);

  cuda::Result (*moduleLoadDataEx)(cuda::Module *, const void *image,
                                   unsigned optionCount, int *options,
                                   void **values);
  cuda::Result (*linkCreate)(unsigned optionCount, int *options, void **values,
                             cuda::Linker *);
  cuda::Result (*linkAddData)(cuda::Linker, int type, void *data, size_t bytes,
                              const char *name, unsigned optionCount,
                              int *options, void **values);
  cuda::Result (*linkComplete)(cuda::Linker, void **cubin, size_t *bytes);
  cuda::Result (*linkDestroy)(cuda::Linker);
  cuda::Result (*moduleUnload)(cuda::Module);
  cuda::Result (*moduleGetFunction)(cuda::Kernel *, cuda::Module,
                                    const char *name);
  cuda::Result (*funcGetAttribute)(int *value, int attribute, cuda::Kernel);
  cuda::Result (*funcSetAttribute)(cuda::Kernel, int attribute, int value);
  cuda::Result (*occupancyMaxActiveBlocksPerMultiprocessor)(
      int *blocks, cuda::Kernel, int blockSize, size_t sharedMemory);
  cuda::Result (*occupancyMaxActiveClusters)(int *clusters, cuda::Kernel,
                                             const cuda::LaunchSettings *);

  cuda::Result (*launchKernel)(cuda::Kernel, unsigned gridX, unsigned gridY,
                               unsigned gridZ, unsigned blockX, unsigned blockY,
                               unsigned blockZ, unsigned sharedMemory,
                               cuda::Stream, void **arguments, void **extra);
  cuda::Result (*launchKernelEx)(const cuda::LaunchSettings *, cuda::Kernel,
                                 void **arguments, void **extra);

  cuda::Result (*memAlloc)(cuda::Address *, size_t bytes);
  cuda::Result (*memFree)(cuda::Address);
  cuda::Result (*memcpyHtoDAsync)(cuda::Address, const void *, size_t bytes,
                                  cuda::Stream);
  cuda::Result (*memcpyDtoHAsync)(void *, cuda::Address, size_t bytes,
                                  cuda::Stream);
  cuda::Result (*memsetD8Async)(cuda::Address, unsigned char value,
                                size_t bytes, cuda::Stream);

  /// Null in drivers before CUDA 12.0, as the one below.
  cuda::Result (*tensorMapEncodeTiled)(void *map, int type, uint32_t rank,
                                       void *address, const uint64_t *sizes,
                                       const uint64_t *strides,
                                       const uint32_t *box,
                                       const uint32_t *elementStrides,
                                       int interleave, int swizzle,
                                       int promotion, int fill);
  cuda::Result (*tensorMapReplaceAddress)(void *map, void *address);

  cuda::Result (*threadExchangeStreamCaptureMode)(int *mode);
  cuda::Result (*streamCreate)(cuda::Stream *, unsigned flags);
  cuda::Result (*streamDestroy)(cuda::Stream);
  cuda::Result (*streamSynchronize)(cuda::Stream);
  cuda::Result (*eventCreate)(cuda::Event *, unsigned flags);
  cuda::Result (*eventDestroy)(cuda::Event);
  cuda::Result (*eventRecord)(cuda::Event, cuda::Stream);
  cuda::Result (*eventSynchronize)(cuda::Event);
  cuda::Result (*eventElapsedTime)(float *milliseconds, cuda::Event start,
                                   cuda::Event end);
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_CUDADRIVER_H
