//===- Program.h - Compiled functions, ready to call ------------*- C++ -*-===//
//
// What a caller without a framework needs: metadata and code go in, and
// functions are called on tensors in memory that the caller provides.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_PROGRAM_H
#define BASTILE_RUNTIME_PROGRAM_H

#include "bastile/runtime/CudaExecutor.h"
#include "bastile/runtime/HostExecutor.h"
#include "bastile/runtime/LaunchPlan.h"
#include "bastile/runtime/Metadata.h"

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

/// The GPUs of this process, each opened once.
class CudaDevices {
public:
  /// The driver; an error where there is none.
  static Expected<std::shared_ptr<const CudaDriver>> driver();
  /// GPU `ordinal` in its primary context.
  static Expected<std::shared_ptr<const CudaDevice>> get(int ordinal);
  /// How many GPUs the driver shows; 0 without a driver.
  static int count();
};

/// Functions with their code. The code is loaded into a GPU when a function is
/// first called there. Safe to use from several threads.
class Program {
public:
  /// Makes the image for a GPU: PTX, or the cubin of that very device.
  using ImageSource =
      std::function<Expected<std::string>(const CudaDevice &device)>;

  /// Functions for GPUs. `image` is asked once for each device.
  static std::shared_ptr<Program> forGpu(Metadata metadata, ImageSource image);
  /// Functions for the host.
  static std::shared_ptr<Program> forHost(Metadata metadata,
                                          HostExecutor::SymbolLookup lookup);

  const Metadata &metadata() const { return description; }
  bool isHost() const { return !image; }

  /// The number of multiprocessors that shapes and grids at `place` depend on.
  Expected<int64_t> multiprocessors(const Place &place);

  /// Runs `function`, which is one of the metadata's. On a GPU the work is in
  /// the stream when this returns, and not necessarily done.
  Error run(const Function &function, const Buffers &buffers,
            const Place &place);

  /// The code as it is loaded into GPU `device`.
  Expected<std::shared_ptr<CudaModule>> module(int device);

private:
  Program(Metadata metadata, ImageSource image,
          HostExecutor::SymbolLookup lookup)
      : description(std::move(metadata)), image(std::move(image)),
        lookup(std::move(lookup)) {}
  std::unique_ptr<LaunchPlan> takePlan();
  void returnPlan(std::unique_ptr<LaunchPlan> plan);

  Metadata description;
  ImageSource image;
  HostExecutor::SymbolLookup lookup;

  std::mutex mutex;
  std::map<int, std::shared_ptr<CudaModule>> modules;
  /// Plans that no call is using; a plan that is used again allocates nothing.
  std::vector<std::unique_ptr<LaunchPlan>> plans;
};

/// Assembles `ptx` for `device` with the driver's own assembler.
Expected<std::string> assembleWithDriver(const CudaDevice &device,
                                         const std::string &ptx);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_PROGRAM_H
