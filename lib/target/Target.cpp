//===- Target.cpp - The machines Bastile generates code for ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/Target.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include <algorithm>
#include <thread>
#include <vector>

using namespace bastile;
using llvm::StringRef;

static Target makeGPU(StringRef name, unsigned computeCapability,
                      StringRef ptxVersion, unsigned sharedKiB,
                      unsigned multiprocessors, double gigabytesPerSecond) {
  Target target;
  target.name = target.chip = name.str();
  target.computeCapability = computeCapability;
  target.triple = "nvptx64-nvidia-cuda";
  target.features = ("+" + ptxVersion).str();
  target.maxThreadsPerBlock = 1024;
  // A multiprocessor of a graphics card holds fewer threads than that of a data
  // center's GPU.
  bool isGraphics = computeCapability % 10 != 0 || computeCapability >= 120;
  target.maxThreadsPerMultiprocessor = isGraphics ? 1536 : 2048;
  target.maxSharedBytesPerBlock = sharedKiB * 1024;
  target.maxBlocksPerCluster = computeCapability >= 90 ? 8 : 1;
  target.multiprocessors = multiprocessors;
  target.memoryBytesPerSecond = gigabytesPerSecond * 1e9;
  target.residentThreads = 1024;
  // Measured on an H100, with 132 multiprocessors and a cache of 50 MB; other
  // cards have its numbers until they are measured.
  target.residentBlocks = 264;
  target.cachedRowBytes = 27 << 20;
  target.vectorBytes = 16;
  return target;
}

static Target makeHost() {
  Target target;
  target.name = "host";
  target.triple = llvm::sys::getProcessTriple();
  target.chip = llvm::sys::getHostCPUName().str();

  llvm::StringMap<bool, llvm::MallocAllocator> detected =
      llvm::sys::getHostCPUFeatures();
  llvm::SubtargetFeatures features;
  for (const auto &feature : detected)
    features.AddFeature(feature.getKey(), feature.getValue());
  // Instructions that round to bfloat16 take values below 2^-126 for zero. They
  // are removed last, since other features imply them.
  for (const char *flushing : {"avx512bf16", "avxneconvert"})
    if (detected.count(flushing))
      features.AddFeature(flushing, false);
  target.features = features.getString();

  if (detected.lookup("avx512f"))
    target.vectorBytes = 64;
  else if (detected.lookup("avx2"))
    target.vectorBytes = 32;
  else
    target.vectorBytes = 16;

  target.maxThreadsPerBlock = target.maxThreadsPerMultiprocessor = 1;
  target.multiprocessors = std::max(1u, std::thread::hardware_concurrency());
  // The bandwidth of one memory channel of a server; no portable interface
  // tells more.
  target.memoryBytesPerSecond = 25e9;
  return target;
}

// The PTX version is the lowest with which the chip's instructions are all
// available, since a driver loads the PTX of its own version and older: 7.8
// and 8.0 load from driver 525 on, 8.1 (sm_89's f8 conversions) from 530 on,
// 8.6 and 8.7 from 570 on.
//
// Multiprocessors and bandwidth are those of the vendor's data sheets, for:
// A100 80GB SXM, A40, L40S, H100 SXM, B200, RTX 5090.
static const std::vector<Target> &targets() {
  static const std::vector<Target> all = {
      makeGPU("sm_80", 80, "ptx78", 163, 108, 2039),
      makeGPU("sm_86", 86, "ptx78", 99, 84, 696),
      makeGPU("sm_89", 89, "ptx81", 99, 142, 864),
      makeGPU("sm_90", 90, "ptx80", 227, 132, 3350),
      makeGPU("sm_90a", 90, "ptx80", 227, 132, 3350),
      makeGPU("sm_100a", 100, "ptx86", 227, 148, 8000),
      makeGPU("sm_120", 120, "ptx87", 99, 170, 1792),
      makeHost(),
  };
  return all;
}

const Target *Target::forGpu(unsigned computeCapability) {
  const Target *best = nullptr;
  for (const Target &target : targets()) {
    if (target.isHost() || target.computeCapability > computeCapability)
      continue;
    // Later GPUs do not take the PTX of an architecture whose name ends in a
    // letter.
    bool isSpecific = target.name.back() == 'a';
    if (isSpecific && target.computeCapability != computeCapability)
      continue;
    // It has instructions that the general target of its capability lacks.
    if (!best || target.computeCapability > best->computeCapability ||
        isSpecific)
      best = &target;
  }
  return best;
}

llvm::ArrayRef<Target> Target::all() { return targets(); }

const Target &Target::host() { return targets().back(); }

llvm::Expected<const Target &> Target::lookup(StringRef name) {
  for (const Target &target : targets())
    if (target.name == name)
      return target;
  llvm::SmallVector<StringRef> names;
  for (const Target &target : targets())
    names.push_back(target.name);
  return llvm::createStringError(
      "unknown target '" + name +
      "', expected one of: " + llvm::join(names, ", "));
}
