//===- EmulatedBlock.cpp - One block of an emulated grid ------------------===//

#include "EmulatedBlock.h"
#include "EmulatedMath.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cstring>
#include <numeric>

using namespace bastile;
using llvm::Twine;

static constexpr unsigned warpSize = 32;

// Fibers never move between operating system threads.
static thread_local EmulatedBlock *currentBlock = nullptr;

EmulatedBlock *EmulatedBlock::current() { return currentBlock; }

EmulatedBlock::EmulatedBlock(const EmulatedLaunch &launch, FiberStacks &stacks,
                             std::mt19937_64 &random)
    : launch(launch), stacks(stacks), random(random) {
  sharedBytes = launch.module.staticSharedBytes + launch.dynamicSharedBytes;
  // The red zones keep other memory out of reach of a small overrun.
  shared.resize(sharedBytes + 2 * redZoneBytes);
  threads.resize(launch.block.count());
  order.resize(threads.size());
  std::iota(order.begin(), order.end(), 0);
  if (launch.order == Emulator::Order::Reverse)
    std::reverse(order.begin(), order.end());
}

void EmulatedBlock::reset(GridSize newPosition) {
  position = newPosition;
  // NaN in every float format: what is read before it is written shows.
  std::memset(shared.data(), 0xff, shared.size());
  shadow.reset(sharedBytes, llvm::divideCeil(threads.size(), warpSize));
  for (auto [index, thread] : llvm::enumerate(threads)) {
    thread = Thread();
    thread.stackPointer = stacks.prepare(index, &threadMain);
  }
  numAlive = threads.size();
  failure.clear();
}

void EmulatedBlock::threadMain() {
  EmulatedBlock &block = *currentBlock;
  block.launch.entry(block.launch.arguments);
  block.threads[block.running].state = Thread::Exited;
  --block.numAlive;
  block.yield();
}

void EmulatedBlock::yield() {
  bastileSwitchFiber(&threads[running].stackPointer, schedulerStack);
}

void EmulatedBlock::resume(unsigned thread) {
  running = thread;
  bastileSwitchFiber(&schedulerStack, threads[thread].stackPointer);
  if (!failure.empty() || threads[thread].state != Thread::Waiting)
    return;
  if (threads[thread].wait.kind == Wait::Barrier)
    arriveAtBarrier(thread);
  else
    arriveAtWarp(thread);
}

uint64_t EmulatedBlock::wait(const Wait &wait) {
  Thread &thread = threads[running];
  thread.wait = wait;
  thread.state = Thread::Waiting;
  yield();
  return thread.result;
}

void EmulatedBlock::fail(const Twine &message) {
  if (failure.empty())
    failure = message.str();
}

llvm::Error EmulatedBlock::run(GridSize newPosition) {
  reset(newPosition);
  EmulatedBlock *outer = std::exchange(currentBlock, this);
  while (numAlive != 0 && failure.empty()) {
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
    if (!hasProgress)
      reportDeadlock();
  }
  currentBlock = outer;
  if (failure.empty())
    return llvm::Error::success();
  std::string where = "block " + std::to_string(position.x);
  if (launch.grid.y != 1 || launch.grid.z != 1)
    where +=
        "," + std::to_string(position.y) + "," + std::to_string(position.z);
  return llvm::createStringError(where + ": " + failure);
}

//===----------------------------------------------------------------------===//
// Registers and functions
//===----------------------------------------------------------------------===//

int32_t EmulatedBlock::readRegister(EmulatedRegister name) const {
  GridSize size = launch.block;
  switch (name) {
  case EmulatedRegister::ThreadX:
    return running % size.x;
  case EmulatedRegister::ThreadY:
    return running / size.x % size.y;
  case EmulatedRegister::ThreadZ:
    return running / size.x / size.y;
  case EmulatedRegister::BlockSizeX:
    return size.x;
  case EmulatedRegister::BlockSizeY:
    return size.y;
  case EmulatedRegister::BlockSizeZ:
    return size.z;
  case EmulatedRegister::BlockX:
    return position.x;
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
    return running % warpSize;
  case EmulatedRegister::Warp:
    return running / warpSize;
  case EmulatedRegister::WarpSize:
    return warpSize;
  }
  return 0;
}

float EmulatedBlock::approximate(int32_t function, bool flushes, float x,
                                 float y) const {
  return bastile::approximate(static_cast<Approximation>(function), flushes,
                              launch.worstApproximations, x, y);
}

llvm::StringRef EmulatedBlock::siteName(uint32_t site) const {
  return launch.module.sites[site];
}

std::string EmulatedBlock::threadName(unsigned thread) const {
  GridSize size = launch.block;
  std::string name = "thread " + std::to_string(thread % size.x);
  if (size.y != 1 || size.z != 1)
    name += "," + std::to_string(thread / size.x % size.y) + "," +
            std::to_string(thread / size.x / size.y);
  return name;
}
