//===- EmulatedWaits.cpp - Barriers, shuffles and votes -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/EmulatedCluster.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <map>

using namespace bastile;
using llvm::Twine;
using mlir::NVVM::BarrierReduction;
using mlir::NVVM::ShflKind;
using mlir::NVVM::VoteSyncKind;

static constexpr unsigned warpSize = 32;

llvm::iota_range<unsigned> EmulatedCluster::warpThreads(unsigned warp) const {
  unsigned end = std::min<unsigned>((warp + 1) * warpSize, threads.size());
  return llvm::seq(warp * warpSize, end);
}

llvm::SmallVector<unsigned, 32> EmulatedCluster::lanes(unsigned warp,
                                                       uint32_t mask) const {
  llvm::SmallVector<unsigned, 32> result;
  for (unsigned lane = 0; lane < warpSize; ++lane)
    if (mask >> lane & 1)
      result.push_back(warp * warpSize + lane);
  return result;
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

void EmulatedCluster::arriveAtWarp(unsigned thread) {
  const Wait &wait = threads[thread].wait;
  unsigned warp = thread / warpSize;
  auto failAt = [&](const Twine &reason) {
    fail(threadName(thread) + " executes " + siteName(wait.site) +
         " with mask 0x" + llvm::utohexstr(wait.mask, /*LowerCase=*/true) +
         ", " + reason);
  };
  if (!(wait.mask >> thread % warpSize & 1))
    return failAt("which does not name its lane " + Twine(thread % warpSize));
  for (unsigned other : lanes(warp, wait.mask)) {
    if (other >= threads.size())
      return failAt("which names lanes beyond the end of the block");
    if (threads[other].state == Thread::Exited)
      return failAt("which names " + threadName(other) + "; that has exited");
    const Wait &its = threads[other].wait;
    if (threads[other].state != Thread::Waiting || its.kind != wait.kind ||
        its.variant != wait.variant || its.mask != wait.mask)
      return;
  }

  switch (wait.kind) {
  case Wait::Shuffle:
    completeShuffle(warp, wait);
    break;
  case Wait::Vote:
    completeVote(warp, wait);
    break;
  case Wait::WarpBarrier:
    clocks.advance(warp);
    break;
  case Wait::Elect:
    completeElection(warp, wait);
    break;
  case Wait::Matrix:
    completeMatrixStep(warp);
    break;
  case Wait::Barrier:
  case Wait::ClusterArrive:
  case Wait::ClusterWait:
  case Wait::Messages:
  case Wait::BarrierArrive:
  case Wait::Warpgroup:
  case Wait::Count:
    break;
  }
  for (unsigned lane : lanes(warp, wait.mask))
    threads[lane].state = Thread::Ready;
}

/// The lane that `lane` reads, as the PTX ISA defines it, and whether that lane
/// is in range; if it is not, a lane reads itself.
static std::pair<unsigned, bool> sourceLane(ShflKind kind, unsigned lane,
                                            uint32_t offset, uint32_t clamp) {
  unsigned segment = clamp >> 8 & 31, last = clamp & 31, by = offset & 31;
  unsigned minLane = lane & segment;
  unsigned maxLane = minLane | (last & ~segment);
  // The source is signed, as `up` goes below zero.
  int source = 0;
  bool isInRange = false;
  switch (kind) {
  case ShflKind::up:
    source = static_cast<int>(lane) - static_cast<int>(by);
    isInRange = source >= static_cast<int>(maxLane);
    break;
  case ShflKind::down:
    source = lane + by;
    isInRange = source <= static_cast<int>(maxLane);
    break;
  case ShflKind::bfly:
    source = lane ^ by;
    isInRange = source <= static_cast<int>(maxLane);
    break;
  case ShflKind::idx:
    source = minLane | (by & ~segment);
    isInRange = source <= static_cast<int>(maxLane);
    break;
  }
  return {isInRange ? static_cast<unsigned>(source) : lane, isInRange};
}

void EmulatedCluster::completeShuffle(unsigned warp, const Wait &wait) {
  for (unsigned thread : lanes(warp, wait.mask)) {
    const Wait &own = threads[thread].wait;
    auto [source, isInRange] =
        sourceLane(static_cast<ShflKind>(own.variant), thread % warpSize,
                   own.offset, own.clamp);
    if (!(wait.mask >> source & 1))
      return fail(threadName(thread) + " reads lane " + Twine(source) + " in " +
                  siteName(own.site) + ", whose mask 0x" +
                  llvm::utohexstr(wait.mask, /*LowerCase=*/true) +
                  " does not name that lane");
    uint64_t value = threads[warp * warpSize + source].wait.value;
    threads[thread].result = value | uint64_t(isInRange) << 32;
  }
}

void EmulatedCluster::completeVote(unsigned warp, const Wait &wait) {
  uint32_t ballot = 0;
  for (unsigned thread : lanes(warp, wait.mask))
    ballot |= uint32_t(threads[thread].wait.value != 0) << thread % warpSize;
  uint32_t result = ballot;
  switch (static_cast<VoteSyncKind>(wait.variant)) {
  case VoteSyncKind::any:
    result = ballot != 0;
    break;
  case VoteSyncKind::all:
    result = ballot == wait.mask;
    break;
  case VoteSyncKind::uni:
    result = ballot == 0 || ballot == wait.mask;
    break;
  case VoteSyncKind::ballot:
    break;
  }
  for (unsigned thread : lanes(warp, wait.mask))
    threads[thread].result = result;
}

/// Which lane is elected is for the GPU to say, so that a kernel which relies
/// on the first one fails in the reverse order.
void EmulatedCluster::completeElection(unsigned warp, const Wait &wait) {
  llvm::SmallVector<unsigned, 32> all = lanes(warp, wait.mask);
  unsigned leader =
      launch.order == Emulator::Order::Reverse ? all.back() : all.front();
  for (unsigned thread : all)
    threads[thread].result = thread == leader;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

bool EmulatedCluster::isWarpAtBarrier(unsigned warp, Wait::Kind kind,
                                      uint32_t barrier) const {
  return llvm::all_of(warpThreads(warp), [&](unsigned thread) {
    return threads[thread].state == Thread::Waiting &&
           threads[thread].wait.kind == kind &&
           threads[thread].wait.mask == barrier;
  });
}

/// Whether the whole warp of a thread has come to its barrier, at the same
/// place: barriers count whole warps.
bool EmulatedCluster::checkBarrier(unsigned thread) {
  const Wait &wait = threads[thread].wait;
  unsigned expected = wait.clamp == 0 ? blockThreads : wait.clamp;
  if (wait.mask > 15) {
    fail("barrier " + Twine(wait.mask) + " in " + siteName(wait.site) +
         " does not exist: there are 16");
    return false;
  }
  if (wait.clamp % warpSize != 0 || expected > blockThreads) {
    fail("barrier " + Twine(wait.mask) + " in " + siteName(wait.site) +
         " cannot wait for " + Twine(wait.clamp) + " threads of a block of " +
         Twine(blockThreads));
    return false;
  }
  unsigned warp = thread / warpSize;
  if (!isWarpAtBarrier(warp, wait.kind, wait.mask))
    return false;
  for (unsigned other : warpThreads(warp))
    if (threads[other].wait.site != wait.site) {
      fail("barrier divergence: " + threadName(thread) + " waits in " +
           siteName(wait.site) + ", " + threadName(other) +
           " of the same warp in " + siteName(threads[other].wait.site));
      return false;
    }
  return true;
}

void EmulatedCluster::arriveAtBarrier(unsigned thread) {
  if (checkBarrier(thread))
    completeBarrierIfAllCame(thread);
}

/// Arrives at a barrier for the whole warp, which goes on.
void EmulatedCluster::arriveWithoutWaiting(unsigned thread) {
  if (!checkBarrier(thread))
    return;
  const Wait &wait = threads[thread].wait;
  unsigned warp = thread / warpSize;
  BarrierArrivals &others = barrierArrivals(blockOf(thread), wait.mask);
  if (llvm::is_contained(others.warps, warp))
    return fail(threadName(thread) + " arrives in " + siteName(wait.site) +
                " at barrier " + Twine(wait.mask) +
                ", where its warp has arrived already");
  others.warps.push_back(warp);
  others.numThreads = wait.clamp;
  others.site = wait.site;
  clocks.release(warp, others.known);
  for (unsigned one : warpThreads(warp))
    threads[one].state = Thread::Ready;
  completeBarrierIfAllCame(thread);
}

/// Lets the warps go on that wait at the barrier of `thread`, if that was the
/// last to come.
void EmulatedCluster::completeBarrierIfAllCame(unsigned thread) {
  const Wait &wait = threads[thread].wait;
  unsigned expected = wait.clamp == 0 ? blockThreads : wait.clamp;
  BarrierArrivals &others = barrierArrivals(blockOf(thread), wait.mask);
  bool isSame = others.warps.empty() || others.numThreads == wait.clamp;
  uint32_t otherSite = others.site;

  llvm::SmallVector<unsigned, 32> warps;
  unsigned numArrived = others.warps.size() * warpSize;
  unsigned numWarps = llvm::divideCeil(blockThreads, warpSize);
  unsigned firstWarp = blockOf(thread) * numWarps;
  for (unsigned warp : llvm::seq(firstWarp, firstWarp + numWarps)) {
    if (!isWarpAtBarrier(warp, Wait::Barrier, wait.mask))
      continue;
    const Wait &its = threads[warp * warpSize].wait;
    if (its.clamp != wait.clamp ||
        (wait.kind == Wait::Barrier && its.variant != wait.variant)) {
      isSame = false;
      otherSite = its.site;
    }
    warps.push_back(warp);
    numArrived += warpThreads(warp).size();
  }
  if (!isSame)
    return fail("barrier " + Twine(wait.mask) + " in " + siteName(wait.site) +
                " differs in its kind or number of threads from " +
                siteName(otherSite));
  if (numArrived > expected)
    return fail("barrier " + Twine(wait.mask) + " in " + siteName(wait.site) +
                " waits for " + Twine(expected) + " threads, but " +
                Twine(numArrived) + " have come");
  // Warps that only arrive complete a barrier at which some wait.
  if (numArrived < expected || warps.empty())
    return;
  for (unsigned warp : warps)
    clocks.acquire(warp, others.known);
  others = BarrierArrivals();
  completeBarrier(warps);
}

void EmulatedCluster::completeBarrier(llvm::ArrayRef<unsigned> warps) {
  uint32_t numThreads = 0, numTrue = 0;
  for (unsigned warp : warps)
    for (unsigned thread : warpThreads(warp)) {
      ++numThreads;
      numTrue += threads[thread].wait.value != 0;
    }
  int32_t variant = threads[warps.front() * warpSize].wait.variant;
  uint32_t result = 0;
  if (variant == static_cast<int32_t>(BarrierReduction::POPC))
    result = numTrue;
  else if (variant == static_cast<int32_t>(BarrierReduction::AND))
    result = numTrue == numThreads;
  else if (variant == static_cast<int32_t>(BarrierReduction::OR))
    result = numTrue != 0;

  for (unsigned warp : warps)
    for (unsigned thread : warpThreads(warp)) {
      threads[thread].result = result;
      threads[thread].state = Thread::Ready;
    }
  clocks.synchronize(warps);
}

//===----------------------------------------------------------------------===//
// Clusters
//===----------------------------------------------------------------------===//

bool EmulatedCluster::isWarpAt(unsigned warp, Wait::Kind kind) const {
  return llvm::all_of(warpThreads(warp), [&](unsigned thread) {
    return threads[thread].state == Thread::Waiting &&
           threads[thread].wait.kind == kind;
  });
}

/// The aligned forms of arriving and waiting take whole warps.
void EmulatedCluster::arriveAtClusterBarrier(unsigned thread) {
  const Wait &wait = threads[thread].wait;
  unsigned warp = thread / warpSize;
  if (!isWarpAt(warp, wait.kind))
    return;
  for (unsigned other : warpThreads(warp))
    if (threads[other].wait.site != wait.site)
      return fail("barrier divergence: " + threadName(thread) + " is in " +
                  siteName(wait.site) + ", " + threadName(other) +
                  " of the same warp in " + siteName(threads[other].wait.site));
  if (wait.kind == Wait::ClusterArrive)
    arriveAtCluster(warp, wait);
  else
    waitForCluster(warp, wait.site);
}

void EmulatedCluster::arriveAtCluster(unsigned warp, const Wait &wait) {
  ClusterArrival &arrival = arrivals[warp];
  if (arrival.isPending)
    return fail(threadName(warp * warpSize) + " arrives in " +
                siteName(wait.site) +
                " without having waited after it arrived before");
  arrival.phase = clusterPhase;
  arrival.isPending = true;
  if (wait.variant)
    clocks.release(warp, clusterArriving);
  for (unsigned thread : warpThreads(warp))
    threads[thread].state = Thread::Ready;
  completeClusterPhase();
}

void EmulatedCluster::waitForCluster(unsigned warp, uint32_t site) {
  if (!arrivals[warp].isPending)
    return fail(threadName(warp * warpSize) + " waits in " + siteName(site) +
                " without having arrived");
  if (arrivals[warp].phase != clusterPhase)
    leaveCluster(warp);
}

/// Starts the next phase once all warps have arrived, and lets the waiting
/// threads go on. A warp cannot arrive in the next phase before it has left
/// this one.
void EmulatedCluster::completeClusterPhase() {
  bool isComplete = llvm::all_of(arrivals, [&](const ClusterArrival &arrival) {
    return arrival.isPending && arrival.phase == clusterPhase;
  });
  if (!isComplete)
    return;
  ++clusterPhase;
  clusterCompleted.swap(clusterArriving);
  clusterArriving.clear();
  for (unsigned warp = 0; warp < arrivals.size(); ++warp)
    if (isWarpAt(warp, Wait::ClusterWait))
      leaveCluster(warp);
}

void EmulatedCluster::leaveCluster(unsigned warp) {
  arrivals[warp].isPending = false;
  arrivals[warp].hasMet = true;
  clocks.acquire(warp, clusterCompleted);
  for (unsigned thread : warpThreads(warp))
    threads[thread].state = Thread::Ready;
}

std::string EmulatedCluster::describeWait(const Wait &wait) const {
  std::string text = "wait in " + siteName(wait.site).str();
  switch (wait.kind) {
  case Wait::Barrier:
  case Wait::BarrierArrive:
    return text + " at barrier " + std::to_string(wait.mask);
  case Wait::ClusterArrive:
  case Wait::ClusterWait:
    return text;
  case Wait::Warpgroup:
    return text + " for their warpgroup";
  case Wait::Messages:
    return text + " for messages of parity " + std::to_string(wait.mask);
  case Wait::Count:
    return text + " for count " + std::to_string(wait.mask);
  case Wait::Shuffle:
  case Wait::Vote:
  case Wait::WarpBarrier:
  case Wait::Elect:
  case Wait::Matrix:
    return text + " with mask 0x" +
           llvm::utohexstr(wait.mask, /*LowerCase=*/true);
  }
  return text;
}

/// Whether a mask says which lanes take part.
static bool isOfLanes(EmulatedCluster::Wait::Kind kind) {
  using Wait = EmulatedCluster::Wait;
  return kind == Wait::Shuffle || kind == Wait::Vote ||
         kind == Wait::WarpBarrier || kind == Wait::Elect ||
         kind == Wait::Matrix;
}

void EmulatedCluster::reportDeadlock() {
  struct Group {
    unsigned first = 0, count = 0;
  };
  bool isAtBarrier = false;
  std::map<std::string, Group> groups;
  for (auto [index, thread] : llvm::enumerate(threads)) {
    std::string what = "exited";
    if (thread.state == Thread::Waiting) {
      what = describeWait(thread.wait);
      isAtBarrier |= !isOfLanes(thread.wait.kind);
    }
    auto [entry, isNew] = groups.insert({what, Group()});
    if (isNew)
      entry->second.first = index;
    ++entry->second.count;
  }
  std::string text = isAtBarrier ? "barrier divergence: "
                                 : "lanes named in a mask never arrive: ";
  llvm::ListSeparator separator("; ");
  for (const auto &[what, group] : groups)
    text += llvm::StringRef(separator).str() + std::to_string(group.count) +
            " threads, " + threadName(group.first) + " the first, " + what;
  fail(text);
}
