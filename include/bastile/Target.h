//===- Target.h - The machines Bastile generates code for -------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A target names the processor, how LLVM spells it, and the limits and rates
// that a schedule is chosen by.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TARGET_H
#define BASTILE_TARGET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace bastile {

struct Target {
  /// The name that a user writes: "sm_90", "sm_100a", "host".
  std::string name;
  /// The GPU architecture times ten (80, 90, 100, 120); 0 for the host.
  unsigned computeCapability = 0;

  std::string triple;
  std::string chip;
  std::string features;

  unsigned maxThreadsPerBlock = 0;
  /// The most threads that a multiprocessor holds, of all its blocks.
  unsigned maxThreadsPerMultiprocessor = 0;
  /// The most a kernel may ask for, opting in above the default 48 KiB.
  unsigned maxSharedBytesPerBlock = 0;
  /// The most that portable clusters hold; 1 where there are no clusters.
  unsigned maxBlocksPerCluster = 1;

  /// The most blocks of a cluster that a user may ask for. Above
  /// `maxBlocksPerCluster`, the launch may fail.
  static constexpr unsigned kMostBlocksPerCluster = 16;

  /// Size and bandwidth of the reference card (for the host: its threads).
  unsigned multiprocessors = 0;
  double memoryBytesPerSecond = 0;

  /// Threads of a multiprocessor that run at once where each has 64 registers.
  unsigned residentThreads = 0;
  /// How the reference card finds rows in its cache again: the blocks of 512
  /// threads that run at once, and the bytes of the rows that all of these go
  /// through which stay there. 0 on the host.
  unsigned residentBlocks = 0;
  unsigned cachedRowBytes = 0;

  /// The widest vector register of the host, the widest access of a GPU.
  unsigned vectorBytes = 0;

  bool isHost() const { return computeCapability == 0; }
  /// Bulk asynchronous copies that complete on an mbarrier.
  bool hasBulkCopy() const { return computeCapability >= 90; }
  /// Products of warpgroups, out of shared memory.
  bool hasWarpgroupProducts() const { return name == "sm_90a"; }
  /// Products of 8-bit floats on tensor cores, of each warp.
  bool hasSmallProducts() const { return computeCapability >= 89; }
  /// Launches that start before the one that they depend on has ended.
  bool hasDependentLaunch() const { return computeCapability >= 90; }

  /// Finds a target by name. The error lists the names that exist.
  static llvm::Expected<const Target &> lookup(llvm::StringRef name);

  /// The best target for a GPU of `computeCapability` (90 for 9.0); null if
  /// none suits it.
  static const Target *forGpu(unsigned computeCapability);

  /// The processor this program runs on.
  static const Target &host();

  /// Every known target, the GPUs by architecture and then the host.
  static llvm::ArrayRef<Target> all();
};

} // namespace bastile

#endif // BASTILE_TARGET_H
