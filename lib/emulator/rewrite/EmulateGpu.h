//===- EmulateGpu.h - Rewriting a GPU module for the emulator ---*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Turns the module that would become PTX into one for the host: address spaces
// go, shared variables become offsets into the block's memory, and ops that ask
// for the thread, wait for other threads or touch memory become calls into the
// emulator.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_EMULATOR_REWRITE_EMULATEGPU_H
#define BASTILE_LIB_EMULATOR_REWRITE_EMULATEGPU_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace bastile {

/// A variable of the module: shared memory, or memory of the whole grid.
struct EmulatedVariable {
  std::string name;
  /// The offset of a shared variable within the block's memory.
  uint64_t offset = 0;
  uint64_t bytes = 0;
  bool isShared = false;
  /// Whether the launch gives its size.
  bool isDynamic = false;
  bool isConstant = false;
};

struct EmulatedKernel {
  std::string name;
  /// The function to call, of type void(void **arguments).
  std::string entry;
  /// The block that `nvvm.reqntid` demands; empty if any will do.
  llvm::SmallVector<int32_t, 3> requiredBlock;
  /// The blocks of a cluster along the grid's first dimension, as
  /// `nvvm.cluster_dim` demands them.
  uint32_t requiredCluster = 1;
  /// Whether its blocks wait for each other, by counters in memory.
  bool waitsForCounts = false;
  /// Arguments that the launch passes by value and the kernel gets the address
  /// of.
  struct ByValue {
    unsigned index;
    uint64_t bytes;
  };
  std::vector<ByValue> byValue;
};

/// The types of a product's factors.
enum class FactorType { BF16, F16, F8E4M3, F8E5M2 };

/// The types of both factors as the one number that calls pass on.
constexpr uint32_t joinFactorTypes(FactorType a, FactorType b) {
  return static_cast<uint32_t>(a) | static_cast<uint32_t>(b) << 8;
}
constexpr std::pair<FactorType, FactorType> splitFactorTypes(uint32_t both) {
  return {static_cast<FactorType>(both & 0xff),
          static_cast<FactorType>(both >> 8)};
}

/// How a factor lies in shared memory; see #tile.shared_matrix.
struct EmulatedMatrix {
  uint64_t offset = 0, leading = 0, stride = 0, swizzle = 0;
  bool isTransposed = false;
};

/// The constant part of a warpgroup's product, `tile.wgmma`.
struct EmulatedProduct {
  unsigned columns = 0;
  FactorType aType = FactorType::BF16, bType = FactorType::BF16;
  bool hasAccumulators = false;
  /// Whether the first factor lies in registers.
  bool hasFragment = false;
  EmulatedMatrix a, b;
};

struct EmulatedModule {
  std::vector<EmulatedKernel> kernels;
  std::vector<EmulatedVariable> variables;
  /// Products of warpgroups; calls into the emulator hold indices into them.
  std::vector<EmulatedProduct> products;
  /// Where the dynamic part of the shared memory starts.
  uint64_t staticSharedBytes = 0;
  /// Source positions for messages; the calls into the emulator hold indices
  /// into them.
  std::vector<std::string> sites;
};

/// Rewrites `module` in place. Fails at an op that the emulator cannot run.
llvm::Expected<EmulatedModule> rewriteForEmulation(mlir::ModuleOp module);

} // namespace bastile

#endif // BASTILE_LIB_EMULATOR_REWRITE_EMULATEGPU_H
