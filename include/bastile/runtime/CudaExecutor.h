//===- CudaExecutor.h - Kernels on a GPU ------------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_CUDAEXECUTOR_H
#define BASTILE_RUNTIME_CUDAEXECUTOR_H

#include "bastile/runtime/CudaDevice.h"
#include "bastile/runtime/Executor.h"

#include <mutex>
#include <unordered_map>

namespace bastile::runtime {

/// The resources that the driver gave a kernel.
struct CudaKernelInfo {
  int registers = 0;
  /// Bytes for each thread; above 0 when registers were spilled.
  int localMemory = 0;
  /// Bytes for each block.
  int staticSharedMemory = 0;
};

/// PTX or a cubin, loaded into a device. Safe to use from several threads.
class CudaModule {
public:
  /// Loads `image`. If it is PTX that the driver rejects, the error carries the
  /// log of its assembler.
  static Expected<std::shared_ptr<CudaModule>>
  load(std::shared_ptr<const CudaDevice> device, const std::string &image);
  ~CudaModule();
  CudaModule(const CudaModule &) = delete;
  CudaModule &operator=(const CudaModule &) = delete;

  const CudaDevice &device() const { return *owner; }

  /// The kernel called `entry`, allowed to use the shared memory and clusters
  /// of `config`. It is looked up once.
  Expected<cuda::Kernel> kernel(const std::string &entry,
                                const LaunchConfig &config = {});

  Expected<CudaKernelInfo> info(const std::string &entry);

  /// How many blocks of a launch with `config` a multiprocessor holds.
  Expected<int> blocksPerMultiprocessor(const std::string &entry,
                                        const LaunchConfig &config);

private:
  struct Entry {
    cuda::Kernel kernel = nullptr;
    int64_t sharedMemory = 0;
    bool nonPortableCluster = false;
  };

  explicit CudaModule(std::shared_ptr<const CudaDevice> device)
      : owner(std::move(device)) {}
  Error permit(const std::string &name, Entry &entry,
               const LaunchConfig &config) const;

  std::shared_ptr<const CudaDevice> owner;
  cuda::Module handle = nullptr;
  std::mutex mutex;
  std::unordered_map<std::string, Entry> entries;
};

/// Fills `bytes` bytes of device memory at `data` with zeros, in a stream.
Error fillWithZeros(const CudaDevice &device, cuda::Stream stream, void *data,
                    int64_t bytes);

/// These are `Executor::encode` and `Executor::replaceAddress` on `device`.
/// They work on the host alone, and wait for nothing.
Error encodeTensorMap(const CudaDevice &device, const TensorMapSpec &spec,
                      EncodedTensorMap &map);
Error replaceTensorAddress(const CudaDevice &device, const TensorMapSpec &spec,
                           EncodedTensorMap &map);

/// Launches the kernels of a module in a stream, which the caller may own. It
/// is cheap to make one for each call.
class CudaExecutor final : public Executor {
public:
  explicit CudaExecutor(CudaModule &module, cuda::Stream stream = nullptr)
      : module(module), stream(stream) {}

  Error launch(const std::string &entry, const LaunchConfig &config,
               void **arguments) override;
  Error zero(void *data, int64_t bytes) override;
  Error encode(const TensorMapSpec &spec, EncodedTensorMap &map) override {
    return encodeTensorMap(module.device(), spec, map);
  }
  Error replaceAddress(const TensorMapSpec &spec,
                       EncodedTensorMap &map) override {
    return replaceTensorAddress(module.device(), spec, map);
  }
  Capacity capacity() const override { return module.device().capacity(); }
  const void *device() const override { return &module.device(); }

private:
  CudaModule &module;
  cuda::Stream stream;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_CUDAEXECUTOR_H
