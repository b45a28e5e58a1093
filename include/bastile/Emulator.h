//===- Emulator.h - Running GPU kernels without a GPU -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Executes the module that would become PTX on the host, thread by thread, for
// tests: it computes what the GPU would and reports what the GPU leaves
// undefined. It reports these errors of a kernel, each with the operation and
// the thread:
//
// - accesses outside of the registered buffers and of the shared variables,
//   misaligned accesses, stores to read-only buffers;
// - barriers that some threads of the block never reach;
// - shuffles and votes by a lane that their mask does not name, with lanes that
//   never arrive, or from a lane outside of the mask;
// - two threads that touch the same byte of shared memory, one of them writing,
//   with no barrier in between;
// - registers and shared memory that a product of a warpgroup or a copy of a
//   tensor reads or writes, and that are used before anybody has waited for it;
// - bytes that threads write and products or copies read, with no fence between
//   the proxies;
// - accesses to the shared memory of another block of the cluster that may not
//   have started or may have exited;
// - in kernels whose blocks wait for counts of each other: accesses of two
//   blocks to the same memory, one of them writing, with no count that the one
//   has released and the other one awaited in between; waits that never end,
//   and counters that do not go up.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_EMULATOR_H
#define BASTILE_EMULATOR_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace bastile {

struct GridSize {
  uint32_t x = 1, y = 1, z = 1;

  uint64_t count() const { return uint64_t(x) * y * z; }
};

class Emulator {
public:
  /// The order of blocks, and of a block's threads between two barriers. A
  /// correct kernel gives the same result in all of them. Blocks that wait for
  /// each other start in the order of their numbers nevertheless, as on a GPU.
  enum class Order { Forward, Reverse, Random };

  /// Compiles the kernels of `module`, of the LLVM and NVVM dialects. The
  /// module is left unchanged.
  static llvm::Expected<std::unique_ptr<Emulator>>
  create(mlir::ModuleOp module);
  ~Emulator();

  /// Declares memory that kernels may read, or also write. Once a buffer is
  /// declared, an access outside of all buffers is an error.
  void registerBuffer(const void *data, uint64_t bytes, llvm::StringRef name,
                      bool isWritable);
  void clearBuffers();

  void setOrder(Order order, uint64_t seed = 0);

  /// Makes `ex2.approx` and the like as inexact as their documentation allows,
  /// up or down depending on the operand. Off by default.
  void setWorstApproximations(bool worst);

  /// On how many multiprocessors the blocks run of a kernel whose blocks wait
  /// for each other; 1 by default.
  void setMultiprocessors(unsigned count);

  /// Runs a grid. `arguments[i]` points to the kernel's argument number i;
  /// `sharedBytes` is the size of the dynamic shared memory, `cluster` the
  /// number of blocks of a cluster, all along the first dimension. Fails at the
  /// first error of the kernel.
  llvm::Error launch(llvm::StringRef kernel, GridSize grid, GridSize block,
                     uint64_t sharedBytes, void **arguments,
                     uint32_t cluster = 1);

private:
  struct State;
  explicit Emulator(std::unique_ptr<State> state);

  std::unique_ptr<State> state;
};

} // namespace bastile

#endif // BASTILE_EMULATOR_H
