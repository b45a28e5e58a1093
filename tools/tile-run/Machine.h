//===- Machine.h - Where compiled functions run ---------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TOOLS_TILERUN_MACHINE_H
#define BASTILE_TOOLS_TILERUN_MACHINE_H

#include "bastile/runtime/CudaDevice.h"
#include "bastile/runtime/Executor.h"
#include "bastile/runtime/LaunchPlan.h"
#include "bastile/runtime/Metadata.h"
#include "llvm/ADT/ArrayRef.h"
#include <memory>
#include <string>
#include <vector>

namespace bastile {
class Emulator;
class Jit;
} // namespace bastile

namespace bastile::run {

/// A piece of a machine's memory, aligned as its frameworks align tensors.
class Memory {
public:
  virtual ~Memory();
  virtual void *data() const = 0;
};

/// The host, a GPU or an emulated one, with code loaded into it.
class Machine {
public:
  virtual ~Machine();

  virtual runtime::Capacity capacity() const = 0;

  virtual runtime::Expected<std::unique_ptr<Memory>>
  allocate(size_t bytes) const = 0;
  /// Copies all bytes to and from the machine. The memory of the host's machine
  /// is this process's.
  virtual runtime::Error write(const Memory &memory,
                               const std::vector<char> &bytes) const;
  virtual runtime::Error read(const Memory &memory,
                              std::vector<char> &bytes) const;

  /// Runs the launches of a plan and waits for them.
  virtual runtime::Error run(runtime::LaunchPlan &plan) = 0;

  /// How many bytes the calls of a measurement must touch, so that none finds
  /// its tensors in a cache; 0 where caches are part of the measurement.
  virtual size_t bytesPastCaches() const { return 0; }

  /// The median, over `repeat` rounds through `plans`, of the seconds that one
  /// plan takes.
  virtual runtime::Expected<double>
  time(llvm::ArrayRef<runtime::LaunchPlan *> plans, unsigned repeat) = 0;
};

/// Runs the functions of `jit`, each by up to `threads` threads.
std::unique_ptr<Machine> makeHostMachine(std::unique_ptr<Jit> jit,
                                         unsigned threads);

/// Loads `ptx` into `device`.
runtime::Expected<std::unique_ptr<Machine>>
makeCudaMachine(std::shared_ptr<const runtime::CudaDevice> device,
                const std::string &ptx);

/// Runs kernels of a GPU on `emulator`, with approximations at their worst.
std::unique_ptr<Machine>
makeEmulatedMachine(std::unique_ptr<Emulator> emulator);

/// The middle one of `samples`, of which there must be one or more.
double median(std::vector<double> samples);

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_MACHINE_H
