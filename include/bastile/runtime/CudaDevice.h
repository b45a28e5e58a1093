//===- CudaDevice.h - A GPU and its memory ----------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_CUDADEVICE_H
#define BASTILE_RUNTIME_CUDADEVICE_H

#include "bastile/runtime/Capacity.h"
#include "bastile/runtime/CudaDriver.h"
#include "bastile/runtime/Error.h"

#include <array>
#include <memory>
#include <mutex>
#include <string>

namespace bastile::runtime {

/// A GPU with a context to work in. Every call leaves the context current that
/// it found.
class CudaDevice final : public GpuTraits {
public:
  /// Device `ordinal` in its primary context, which it shares with the CUDA
  /// runtime and so with frameworks.
  static Expected<std::shared_ptr<const CudaDevice>>
  open(std::shared_ptr<const CudaDriver> driver, int ordinal = 0);

  /// The context that is current in this thread, whoever made it. That context
  /// must outlive the result.
  static Expected<std::shared_ptr<const CudaDevice>>
  current(std::shared_ptr<const CudaDriver> driver);

  ~CudaDevice() override;
  CudaDevice(const CudaDevice &) = delete;
  CudaDevice &operator=(const CudaDevice &) = delete;

  const CudaDriver &driver() const { return *driverTable; }
  cuda::Context context() const { return handle; }

  const std::string &name() const { return deviceName; }
  int64_t multiprocessors() const { return multiprocessorCount; }
  /// The most threads that one multiprocessor holds.
  int64_t threadsPerMultiprocessor() const { return threadLimit; }
  Capacity capacity() const { return {multiprocessorCount, this}; }
  /// Asks the driver at the first call. Where the driver does not know, and for
  /// clusters of other sizes than powers of two up to 16, the count is guessed
  /// from the number of multiprocessors.
  int64_t countClusters(int64_t blocks) const override;
  bool has(Feature feature) const override;
  std::string explainLack(Feature feature) const override;
  /// The compute capability times ten: 90 for 9.0.
  int computeCapability() const { return capability; }
  /// The most shared memory that a block may ask for, in bytes.
  int64_t maxSharedMemory() const { return sharedMemoryLimit; }

  /// Copies between host and device, and waits until they are done.
  Error copyToDevice(void *target, const void *source, size_t bytes,
                     cuda::Stream stream = nullptr) const;
  Error copyToHost(void *target, const void *source, size_t bytes,
                   cuda::Stream stream = nullptr) const;

  /// Waits for all work in `stream`.
  Error synchronize(cuda::Stream stream = nullptr) const;

private:
  CudaDevice(std::shared_ptr<const CudaDriver> driver, cuda::Device device)
      : driverTable(std::move(driver)), device(device) {}
  Error readProperties();
  void countClusters() const;

  std::shared_ptr<const CudaDriver> driverTable;
  cuda::Device device;
  cuda::Context handle = nullptr;
  bool ownsContext = false;
  std::string deviceName;
  int64_t multiprocessorCount = 0;
  int64_t threadLimit = 0;
  int capability = 0;
  /// The driver's CUDA: 12080 for 12.8.
  int cudaVersion = 0;
  int64_t sharedMemoryLimit = 0;
  mutable std::once_flag clustersCounted;
  /// The counts for clusters of 1, 2, 4, 8 and 16 blocks; 0 where unknown.
  mutable std::array<int64_t, 5> clusterCounts = {};
};

/// Makes the context of a device current while it lives.
class CudaContextScope {
public:
  explicit CudaContextScope(const CudaDevice &device);
  ~CudaContextScope();
  CudaContextScope(const CudaContextScope &) = delete;
  CudaContextScope &operator=(const CudaContextScope &) = delete;

  /// The error, if the context could not be made current.
  Error takeError() { return std::move(error); }

private:
  const CudaDriver &driver;
  cuda::Context previous = nullptr;
  bool changed = false;
  Error error;
};

/// Lets this thread load code while it captures a graph: loading is no work in
/// a stream, so it does not belong to the graph.
class RelaxedCaptureScope {
public:
  explicit RelaxedCaptureScope(const CudaDriver &driver) : driver(driver) {
    driver.threadExchangeStreamCaptureMode(&mode);
  }
  ~RelaxedCaptureScope() { driver.threadExchangeStreamCaptureMode(&mode); }
  RelaxedCaptureScope(const RelaxedCaptureScope &) = delete;
  RelaxedCaptureScope &operator=(const RelaxedCaptureScope &) = delete;

private:
  const CudaDriver &driver;
  /// The capture mode of this thread before.
  int mode = cuda::RelaxedCapture;
};

/// A piece of device memory.
class CudaBuffer {
public:
  static Expected<CudaBuffer> allocate(std::shared_ptr<const CudaDevice> device,
                                       size_t bytes);
  CudaBuffer() = default;
  CudaBuffer(CudaBuffer &&other) noexcept { *this = std::move(other); }
  CudaBuffer &operator=(CudaBuffer &&other) noexcept;
  ~CudaBuffer();

  void *data() const { return reinterpret_cast<void *>(address); }

private:
  std::shared_ptr<const CudaDevice> device;
  cuda::Address address = 0;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_CUDADEVICE_H
