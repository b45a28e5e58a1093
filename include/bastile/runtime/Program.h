//===- Program.h - Compiled functions, ready to call ------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Compiled functions for callers without a framework: metadata and code go in,
// and functions are called on tensors in memory that the caller provides.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_PROGRAM_H
#define BASTILE_RUNTIME_PROGRAM_H

#include "bastile/runtime/CudaExecutor.h"
#include "bastile/runtime/HostExecutor.h"
#include "bastile/runtime/LaunchPlan.h"
#include "bastile/runtime/Metadata.h"
#include "bastile/runtime/Shapes.h"

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace bastile::runtime {

/// Where a call runs.
struct Place {
  /// The GPU's number; nothing for the host.
  std::optional<int> device;
  /// A stream of that GPU.
  cuda::Stream stream = nullptr;
  /// How many threads of the host share the work.
  unsigned threads = 1;
};

/// The resources of a GPU's multiprocessor that a kernel takes, as the driver
/// reports them.
struct KernelResources {
  std::string kernel;
  /// Threads of a block, and blocks of a cluster.
  int64_t threads = 1, cluster = 1;
  int registers = 0;
  /// Bytes of each thread that lie in memory instead of registers.
  int spilledBytes = 0;
  /// Bytes of shared memory of each block, static and dynamic.
  int64_t sharedMemory = 0;
  /// Blocks that a multiprocessor holds at once, and the share of its threads.
  int blocks = 0;
  double occupancy = 0;
};

/// The resources that `launch` takes with `variant`, whose code `module` holds.
Expected<KernelResources>
getResources(const Launch &launch, const Variant &variant, CudaModule &module);

/// The GPUs of this process, each opened once.
class CudaDevices {
public:
  /// The driver; an error on a machine without one.
  static Expected<std::shared_ptr<const CudaDriver>> driver();
  /// GPU `ordinal` in its primary context.
  static Expected<std::shared_ptr<const CudaDevice>> get(int ordinal);
  /// How many GPUs the driver shows; 0 without a driver.
  static int count();
};

/// Functions with their code. A kernel is loaded into a GPU when it is first
/// launched there. Safe to use from several threads.
class Program {
public:
  /// Makes the image of a kernel that is loaded into a GPU: PTX, or a cubin for
  /// that device.
  using ImageSource = std::function<Expected<std::string>(
      const CudaDevice &device, const std::string &entry)>;

  /// Runs `work`, which takes long and may wait for other threads.
  using RunSlow = std::function<void(const std::function<void()> &work)>;

  /// Functions for GPUs. `image` is called for each device and kernel when the
  /// kernel is first launched there; by several threads that do so at once,
  /// too. The image is made and loaded in `runSlow`, if there is one, where a
  /// caller can give up a lock that it holds, such as an interpreter's.
  static std::shared_ptr<Program> forGpu(Metadata metadata, ImageSource image,
                                         RunSlow runSlow = {});
  /// Functions for the host.
  static std::shared_ptr<Program> forHost(Metadata metadata,
                                          HostExecutor::SymbolLookup lookup);

  const Metadata &metadata() const { return description; }
  bool isHost() const { return !image; }

  /// How much runs side by side at `place`: shapes and grids depend on it.
  Expected<Capacity> capacity(const Place &place);

  /// Runs `function`, one of the metadata's functions. On a GPU the work is in
  /// the stream when this returns, but not necessarily done. Fails where the
  /// tensors do not suit the function, or a launch fails.
  Error run(const Function &function, const Buffers &buffers,
            const Place &place);

  /// Gives memory of a shape: for output `output` of the function, or for a
  /// temporary, which must live as long as the call.
  using Allocate = std::function<Expected<TensorView>(
      const BufferSpec &spec, const Dimensions &sizes,
      std::optional<unsigned> output)>;

  /// Runs `function` with outputs and temporaries from `allocate`.
  Error call(const Function &function, Span<const TensorView> inputs,
             const Place &place, const Allocate &allocate);

  /// Loads the kernels that `function` launches on aligned tensors into GPU
  /// `device`, so that no call waits for loading.
  Error prepare(int device, const std::string &function);

  /// The resources of the kernels that `function` launches on aligned tensors,
  /// which are loaded into GPU `device` for that.
  Expected<std::vector<KernelResources>> resources(int device,
                                                   const std::string &function);

  /// Says which variants GPU `device` cannot run, and why.
  Expected<std::vector<std::string>> leftOut(int device) const;

  /// The code of a kernel, loaded into a GPU.
  Expected<std::shared_ptr<CudaModule>>
  module(std::shared_ptr<const CudaDevice> device, const std::string &entry);

private:
  Program(Metadata metadata, ImageSource image, RunSlow runSlow,
          HostExecutor::SymbolLookup lookup)
      : description(std::move(metadata)), image(std::move(image)),
        runSlow(std::move(runSlow)), lookup(std::move(lookup)) {}

  /// Makes the image of a kernel, and loads it into a GPU.
  Expected<std::shared_ptr<CudaModule>>
  loadModule(std::shared_ptr<const CudaDevice> device,
             const std::string &entry);

  using LoadedLaunch =
      std::function<Error(const Launch &, const Variant &, CudaModule &)>;
  /// Loads the kernels that `function` launches on aligned tensors into GPU
  /// `device`, and hands each to the callback.
  Error load(int device, const std::string &function, const LoadedLaunch &use);

  /// Memory that a call of `function` fills in; a scratch that is used again
  /// allocates nothing.
  struct Scratch {
    const Function *function = nullptr;
    LaunchPlan plan;
    ResolvedShapes shapes;
    std::vector<TensorView> outputs, temporaries;
  };
  class ScratchScope;
  Error runWith(Scratch &scratch, const Function &function,
                const Buffers &buffers, const Place &place);

  Metadata description;
  ImageSource image;
  RunSlow runSlow;
  HostExecutor::SymbolLookup lookup;

  std::mutex mutex;
  std::map<std::pair<const CudaDevice *, std::string>,
           std::shared_ptr<CudaModule>>
      modules;
  /// The scratches that no call is using.
  std::vector<std::unique_ptr<Scratch>> scratches;
};

/// Assembles `ptx` for `device` with the driver's own assembler.
Expected<std::string> assembleWithDriver(const CudaDevice &device,
                                         const std::string &ptx);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_PROGRAM_H
