//===- EmulatedCluster.cpp - Blocks of an emulated grid -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "lib/emulator/EmulatedCluster.h"
#include "lib/emulator/rewrite/EmulatedMath.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cstring>
#include <numeric>

using namespace bastile;
using llvm::Twine;

static constexpr unsigned warpSize = 32;

// Fibers never move between operating system threads.
static thread_local EmulatedCluster *currentCluster = nullptr;

EmulatedCluster *EmulatedCluster::current() { return currentCluster; }

EmulatedCluster::EmulatedCluster(const EmulatedLaunch &launch,
                                 FiberStacks &stacks, std::mt19937_64 &random)
    : launch(launch), stacks(stacks), random(random),
      blockThreads(launch.block.count()) {
  sharedBytes = launch.module.staticSharedBytes + launch.dynamicSharedBytes;
  shadowBytes = llvm::alignTo(sharedBytes, SharedShadow::pieceBytes);
  // Red zones between the blocks' memories catch small overruns.
  shared.resize(launch.cluster * blockStride() + sharedAlignment);
  sharedBase = reinterpret_cast<char *>(llvm::alignTo(
      reinterpret_cast<uintptr_t>(shared.data()), sharedAlignment));
  threads.resize(launch.cluster * blockThreads);
  order.resize(threads.size());
  std::iota(order.begin(), order.end(), 0);
  if (launch.order == Emulator::Order::Reverse)
    std::reverse(order.begin(), order.end());
}

void EmulatedCluster::start(GridSize newPosition) {
  position = newPosition;
  const GridSize grid = launch.grid;
  number = (position.x + grid.x * (position.y + grid.y * position.z)) /
           launch.cluster;
  foreign.clear();
  origins.clear();
  // These bytes are NaN in every float format, so a read before any write
  // shows.
  std::memset(shared.data(), 0xff, shared.size());
  unsigned numWarps = llvm::divideCeil(threads.size(), warpSize);
  clocks.reset(numWarps);
  shadow.reset(launch.cluster * shadowBytes, threads.size());
  arrivals.assign(numWarps, ClusterArrival());
  outlived.assign(launch.cluster, {});
  clusterPhase = 1;
  clusterArriving.clear();
  clusterCompleted.clear();
  constexpr unsigned numBarriers = 16;
  arrivalsAtBarriers.assign(launch.cluster * numBarriers, BarrierArrivals());
  warpgroups.assign(launch.cluster *
                        llvm::divideCeil(blockThreads, Warpgroup::numThreads),
                    Warpgroup());
  tensorStores.clear();
  messageBarriers.clear();
  copies.assign(threads.size(), ThreadCopies());
  for (auto [index, thread] : llvm::enumerate(threads)) {
    thread = Thread();
    thread.stackPointer = stacks.prepare(index, &threadMain);
  }
  numAlive = threads.size();
  numAliveInBlock.assign(launch.cluster, blockThreads);
  failure.clear();
}

void EmulatedCluster::threadMain() {
  EmulatedCluster &cluster = *currentCluster;
  cluster.launch.entry(cluster.launch.arguments);
  cluster.checkExit(cluster.running);
  cluster.threads[cluster.running].state = Thread::Exited;
  --cluster.numAlive;
  --cluster.numAliveInBlock[cluster.blockOf(cluster.running)];
  cluster.yield();
}

void EmulatedCluster::yield() {
  bastileSwitchFiber(&threads[running].stackPointer, schedulerStack);
}

void EmulatedCluster::resume(unsigned thread) {
  running = thread;
  bastileSwitchFiber(&schedulerStack, threads[thread].stackPointer);
  if (!failure.empty() || threads[thread].state != Thread::Waiting)
    return;
  switch (threads[thread].wait.kind) {
  case Wait::Barrier:
    return arriveAtBarrier(thread);
  case Wait::ClusterArrive:
  case Wait::ClusterWait:
    return arriveAtClusterBarrier(thread);
  case Wait::Shuffle:
  case Wait::Vote:
  case Wait::WarpBarrier:
  case Wait::Elect:
  case Wait::Matrix:
    return arriveAtWarp(thread);
  case Wait::BarrierArrive:
    return arriveWithoutWaiting(thread);
  case Wait::Warpgroup:
    return arriveAtWarpgroup(thread);
  case Wait::Messages:
  case Wait::Count:
    return;
  }
}

uint64_t EmulatedCluster::wait(const Wait &wait) {
  Thread &thread = threads[running];
  thread.wait = wait;
  thread.state = Thread::Waiting;
  yield();
  return thread.result;
}

void EmulatedCluster::fail(const Twine &message) {
  if (failure.empty())
    failure = message.str();
}

llvm::Expected<EmulatedCluster::Progress> EmulatedCluster::advance() {
  EmulatedCluster *outer = std::exchange(currentCluster, this);
  Progress progress = Progress::None;
  bool isStuck = false;
  while (numAlive != 0 && failure.empty() && !isStuck) {
    if (launch.order == Emulator::Order::Random)
      std::shuffle(order.begin(), order.end(), random);
    bool hasProgress = false;
    for (unsigned thread : order) {
      if (threads[thread].state != Thread::Ready)
        continue;
      hasProgress = true;
      resume(thread);
      if (!failure.empty())
        break;
    }
    if (hasProgress || wakeCounts())
      progress = Progress::Some;
    else if (isWaitingForCounts())
      isStuck = true;
    else
      reportDeadlock();
  }
  if (failure.empty() && !isStuck) {
    progress = Progress::Ended;
    checkEnds();
  }
  currentCluster = outer;
  if (failure.empty())
    return progress;
  return llvm::createStringError(where() + ": " + failure);
}

std::string EmulatedCluster::where() const {
  std::string where = launch.cluster == 1 ? "block " : "cluster ";
  where += std::to_string(position.x / launch.cluster);
  if (launch.grid.y != 1 || launch.grid.z != 1)
    where +=
        "," + std::to_string(position.y) + "," + std::to_string(position.z);
  return where;
}

//===----------------------------------------------------------------------===//
// Registers and functions
//===----------------------------------------------------------------------===//

int32_t EmulatedCluster::readRegister(EmulatedRegister name) const {
  GridSize size = launch.block;
  unsigned thread = running % blockThreads;
  switch (name) {
  case EmulatedRegister::ThreadX:
    return thread % size.x;
  case EmulatedRegister::ThreadY:
    return thread / size.x % size.y;
  case EmulatedRegister::ThreadZ:
    return thread / size.x / size.y;
  case EmulatedRegister::BlockSizeX:
    return size.x;
  case EmulatedRegister::BlockSizeY:
    return size.y;
  case EmulatedRegister::BlockSizeZ:
    return size.z;
  case EmulatedRegister::BlockX:
    return position.x + blockOf(running);
  case EmulatedRegister::BlockY:
    return position.y;
  case EmulatedRegister::BlockZ:
    return position.z;
  case EmulatedRegister::GridSizeX:
    return launch.grid.x;
  case EmulatedRegister::GridSizeY:
    return launch.grid.y;
  case EmulatedRegister::GridSizeZ:
    return launch.grid.z;
  case EmulatedRegister::Lane:
    return thread % warpSize;
  case EmulatedRegister::Warp:
    return thread / warpSize;
  case EmulatedRegister::WarpSize:
    return warpSize;
  case EmulatedRegister::ClusterX:
    return position.x / launch.cluster;
  case EmulatedRegister::GridClustersX:
    return launch.grid.x / launch.cluster;
  case EmulatedRegister::ClusterRank:
    return blockOf(running);
  case EmulatedRegister::ClusterSize:
    return launch.cluster;
  }
  return 0;
}

float EmulatedCluster::approximate(int32_t function, bool flushes, float x,
                                   float y) const {
  return bastile::approximate(static_cast<Approximation>(function), flushes,
                              launch.worstApproximations, x, y);
}

llvm::StringRef EmulatedCluster::siteName(uint32_t site) const {
  return launch.module.sites[site];
}

std::string EmulatedCluster::threadName(unsigned thread) const {
  GridSize size = launch.block;
  unsigned inBlock = thread % blockThreads;
  std::string name = "thread " + std::to_string(inBlock % size.x);
  if (size.y != 1 || size.z != 1)
    name += "," + std::to_string(inBlock / size.x % size.y) + "," +
            std::to_string(inBlock / size.x / size.y);
  if (launch.cluster != 1)
    name += " of block " + std::to_string(blockOf(thread));
  return name;
}
