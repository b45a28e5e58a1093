//===- EmulatedBlock.h - One block of an emulated grid ----------*- C++ -*-===//
//
// Runs the threads of a block, one fiber each, until a barrier or an exchange
// between lanes makes them wait for others, and checks what they do.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_EMULATEDBLOCK_H
#define BASTILE_LIB_EMULATEDBLOCK_H

#include "EmulateGpu.h"
#include "Emulator.h"
#include "EmulatorCalls.h"
#include "Fiber.h"
#include "SharedShadow.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <random>

namespace bastile {

/// Memory that kernels may touch.
struct EmulatedBuffer {
  uintptr_t begin;
  uint64_t bytes;
  std::string name;
  bool isWritable;
};

/// What all blocks of a launch have in common.
struct EmulatedLaunch {
  const EmulatedModule &module;
  llvm::ArrayRef<EmulatedBuffer> buffers;
  void (*entry)(void **arguments);
  void **arguments;
  GridSize grid, block;
  uint64_t dynamicSharedBytes;
  Emulator::Order order;
  bool worstApproximations;
};

class EmulatedBlock {
public:
  EmulatedBlock(const EmulatedLaunch &launch, FiberStacks &stacks,
                std::mt19937_64 &random);

  /// Runs the block of these coordinates from start to end.
  llvm::Error run(GridSize position);

  /// The block whose thread calls into the emulator.
  static EmulatedBlock *current();

  // What the running thread asks for; see EmulatorCalls.h.
  int32_t readRegister(EmulatedRegister name) const;
  char *sharedMemory() { return shared.data() + redZoneBytes; }
  void access(uintptr_t address, uint64_t bytes, uint32_t alignment,
              EmulatedAccess access, uint32_t site);
  float approximate(int32_t function, bool flushes, float x, float y) const;

  /// An operation that threads wait in.
  struct Wait {
    enum Kind { Barrier, Shuffle, Vote, WarpBarrier };
    Kind kind;
    /// The kind of a shuffle or vote, the reduction of a barrier or -1.
    int32_t variant;
    /// The lanes that take part; for a barrier its number.
    uint32_t mask;
    uint32_t value;
    /// Of a shuffle; for a barrier `clamp` is the number of threads, or 0.
    uint32_t offset, clamp;
    uint32_t site;
  };
  /// Stops the running thread until the others have come; returns its result.
  uint64_t wait(const Wait &wait);

private:
  struct Thread {
    enum State { Ready, Waiting, Exited };
    State state;
    void *stackPointer;
    Wait wait;
    uint64_t result;
  };
  static constexpr uint64_t redZoneBytes = 4096;

  static void threadMain();
  void reset(GridSize position);
  void resume(unsigned thread);
  /// Goes back to the scheduler, for good if the thread has exited or failed.
  void yield();
  /// Records an error, at which the block stops.
  void fail(const llvm::Twine &message);

  void checkAccess(uintptr_t address, uint64_t bytes, uint32_t alignment,
                   EmulatedAccess access, uint32_t site);
  void checkShared(uint64_t offset, uint64_t bytes, EmulatedAccess access,
                   uint32_t site);
  void reportOutOfBounds(uintptr_t address, uint64_t bytes,
                         EmulatedAccess access, uint32_t site);
  const EmulatedVariable *findShared(uint64_t offset, uint64_t bytes) const;
  /// The memory of a shared variable in this block.
  EmulatedBuffer bufferOf(const EmulatedVariable &variable) const;

  // Called as a thread starts to wait: whoever comes last releases all.
  void arriveAtWarp(unsigned thread);
  void arriveAtBarrier(unsigned thread);
  void completeShuffle(unsigned warp, const Wait &wait);
  void completeVote(unsigned warp, const Wait &wait);
  void completeBarrier(llvm::ArrayRef<unsigned> warps);
  void reportDeadlock();

  /// Ids of the threads of a warp: fewer than 32 at the end of the block.
  llvm::iota_range<unsigned> warpThreads(unsigned warp) const;
  llvm::SmallVector<unsigned, 32> lanes(unsigned warp, uint32_t mask) const;
  bool isWarpAtBarrier(unsigned warp, uint32_t barrier) const;

  llvm::StringRef siteName(uint32_t site) const;
  std::string threadName(unsigned thread) const;

  const EmulatedLaunch &launch;
  FiberStacks &stacks;
  std::mt19937_64 &random;
  SharedShadow shadow;
  std::vector<char> shared;
  uint64_t sharedBytes;

  GridSize position;
  std::vector<Thread> threads;
  std::vector<unsigned> order;
  unsigned numAlive = 0;
  unsigned running = 0;
  void *schedulerStack = nullptr;
  std::string failure;
};

} // namespace bastile

#endif // BASTILE_LIB_EMULATEDBLOCK_H
