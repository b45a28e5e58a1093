//===- Executor.h - Where planned launches run ------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_EXECUTOR_H
#define BASTILE_RUNTIME_EXECUTOR_H

#include "bastile/runtime/Capacity.h"
#include "bastile/runtime/Error.h"
#include "bastile/runtime/TensorMap.h"

#include <cstdint>
#include <string>

namespace bastile::runtime {

class LaunchPlan;

/// The shape of a launch. All grids are one-dimensional.
struct LaunchConfig {
  /// Blocks in all, a multiple of `cluster`.
  int64_t grid = 0;
  /// Threads in a block.
  int64_t block = 1;
  /// Blocks in a cluster.
  int64_t cluster = 1;
  /// Dynamic shared memory in bytes.
  int64_t sharedMemory = 0;
  /// Whether the kernel may start before the previous launch has ended. The
  /// kernel then waits for that launch's results itself.
  bool overlapPrevious = false;
};

/// Runs kernels in the order of the calls: a GPU, the host, an emulator.
class Executor {
public:
  virtual ~Executor();

  /// Starts `entry`. `arguments[i]` points to the bytes of parameter i, 8 or
  /// those of an `EncodedTensorMap`; they are read before the call returns.
  virtual Error launch(const std::string &entry, const LaunchConfig &config,
                       void **arguments) = 0;

  /// Fills `bytes` bytes at `data` with zeros.
  virtual Error zero(void *data, int64_t bytes) = 0;

  /// How many blocks this executor can run side by side, and what they may use.
  virtual Capacity capacity() const = 0;

  /// Makes the tensor map that `spec` describes, as kernels read it here.
  virtual Error encode(const TensorMapSpec &spec, EncodedTensorMap &map) = 0;

  /// Moves `map`, which `encode` has made here of a spec that is like `spec`,
  /// to the address of `spec`.
  virtual Error replaceAddress(const TensorMapSpec &spec,
                               EncodedTensorMap &map) {
    return encode(spec, map);
  }

  /// Identifies the device whose kernels read the maps that are made here. Maps
  /// are not taken from one device to another.
  virtual const void *device() const { return nullptr; }
};

/// Runs everything in `plan`, in order. The plan keeps the tensor maps that
/// were made for it: a later call makes those anew that describe another
/// tensor, and moves those whose tensor lies elsewhere.
Error execute(LaunchPlan &plan, Executor &executor);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_EXECUTOR_H
