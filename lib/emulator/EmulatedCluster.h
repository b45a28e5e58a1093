//===- EmulatedCluster.h - Blocks of an emulated grid -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Runs the threads of a cluster, which is most often a single block. Each
// thread is a fiber, which runs until a barrier or an exchange between lanes
// makes it wait for others. All accesses of threads are checked.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_EMULATOR_EMULATEDCLUSTER_H
#define BASTILE_LIB_EMULATOR_EMULATEDCLUSTER_H

#include "bastile/Emulator.h"
#include "lib/emulator/EmulatedProducts.h"
#include "lib/emulator/EmulatedTensors.h"
#include "lib/emulator/Fiber.h"
#include "lib/emulator/GridShadow.h"
#include "lib/emulator/SharedShadow.h"
#include "lib/emulator/rewrite/EmulateGpu.h"
#include "lib/emulator/rewrite/EmulatorCalls.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include <array>
#include <deque>
#include <map>
#include <random>

namespace bastile {

/// What all blocks of a launch have in common.
struct EmulatedLaunch {
  const EmulatedModule &module;
  llvm::ArrayRef<EmulatedBuffer> buffers;
  void (*entry)(void **arguments);
  void **arguments;
  GridSize grid, block;
  /// Blocks of a cluster, along the grid's first dimension.
  uint32_t cluster;
  uint64_t dynamicSharedBytes;
  Emulator::Order order;
  bool worstApproximations;
  /// Of a kernel whose blocks wait for each other; null for others.
  GridShadow *shadow;
};

/// Operands and results, in the memory of a thread, of what several threads do
/// together.
struct WaitOperands {
  uint32_t *registers = nullptr;
  uint32_t numRegisters = 0;
  const uint32_t *fragment = nullptr;
  char *a = nullptr, *b = nullptr;
};

class EmulatedCluster {
public:
  EmulatedCluster(const EmulatedLaunch &launch, FiberStacks &stacks,
                  std::mt19937_64 &random);

  /// Begins with the cluster whose first block has these coordinates.
  void start(GridSize position);

  /// How far the cluster has come: to its end, further, or not at all, because
  /// it waits for counts that others have to release.
  enum class Progress { Ended, Some, None };
  /// Runs the cluster as far as it comes.
  llvm::Expected<Progress> advance();
  /// Which counts its threads wait for.
  std::string describeCounts() const;

  /// The cluster whose thread calls into the emulator.
  static EmulatedCluster *current();

  // The calls of the running thread; see EmulatorCalls.h.
  int32_t readRegister(EmulatedRegister name) const;
  char *sharedMemory() { return sharedOf(blockOf(running)); }
  /// The address in block `rank` of the cluster that corresponds to `address`
  /// in the running thread's block.
  char *mapShared(char *address, uint32_t rank, uint32_t site);
  void access(uintptr_t address, uint64_t bytes, uint32_t alignment,
              EmulatedAccess access, uint32_t site);
  float approximate(int32_t function, bool flushes, float x, float y) const;
  void initBarrier(char *address, uint32_t count, uint32_t site);
  /// Expects bytes at an mbarrier, and arrives there `arrivals` times.
  void expectMessages(char *address, uint32_t arrivals, uint32_t bytes,
                      uint32_t site);
  void sendMessage(char *address, uint32_t bits, char *barrier, uint32_t site);
  /// Sends 16 bytes, which arrive as those of a copy do.
  void sendUnit(char *address, const std::array<uint32_t, 4> &words,
                char *barrier, uint32_t site);
  void waitForMessages(char *address, uint32_t parity, uint32_t site);
  /// Of the bytes copied, all behind the first `sourceBytes` are zeros.
  void startCopy(char *to, char *from, uint32_t bytes, uint32_t sourceBytes,
                 uint32_t site);
  void closeCopies();
  void waitForCopies(uint32_t mostPending);
  void fenceProxies();
  void fenceBarriers();
  /// The registers hold numbers, and no placeholders of products.
  void checkRegisters(const uint32_t *registers, uint32_t count, uint32_t site);
  void loadTensor(char *to, const void *map, const int32_t *coordinates,
                  uint32_t rank, char *barrier, int32_t multicastMask,
                  uint32_t site);
  void loadBytes(char *to, const char *from, char *barrier, uint32_t bytes,
                 int32_t multicastMask, uint32_t site);
  void storeTensor(const void *map, char *from, const int32_t *coordinates,
                   uint32_t rank, bool adds, uint32_t site);
  void closeStores();
  /// Waits until stores have read shared memory or, without `isRead`, until
  /// they have written.
  void waitForStores(uint32_t mostPending, bool isRead);
  void pollCount(char *address, uint32_t count, uint32_t site);
  void publishCount(char *address, uint32_t count, uint32_t site);

  /// An operation that threads wait in.
  struct Wait {
    enum Kind {
      Barrier,
      Shuffle,
      Vote,
      WarpBarrier,
      ClusterArrive,
      ClusterWait,
      Messages,
      BarrierArrive,
      Elect,
      Matrix,
      Warpgroup,
      Count
    };
    Kind kind;
    /// The kind of a shuffle or vote; the reduction of a barrier, or -1; for an
    /// arrival at the cluster's barrier, whether it releases earlier writes;
    /// the step of a warpgroup.
    int32_t variant;
    /// The lanes that take part; the number of a barrier; the parity of the
    /// phase for messages; the index of a product, how many groups of products
    /// may be pending, or the number of registers; a count, of the counter at
    /// `a`.
    uint32_t mask;
    uint32_t value;
    /// The operands of a shuffle; for a barrier `clamp` is the number of
    /// threads, or 0; for a product of matrices `offset` is the number of bytes
    /// of a row of a factor, and `value` the factors' type.
    uint32_t offset, clamp;
    uint32_t site;
    WaitOperands operands = {};
  };
  /// Stops the running thread until the other threads have come; returns its
  /// result.
  uint64_t wait(const Wait &wait);

private:
  struct Thread {
    enum State { Ready, Waiting, Exited };
    State state;
    void *stackPointer;
    Wait wait;
    uint64_t result;
  };
  /// The state of a warp at the cluster's barrier.
  struct ClusterArrival {
    /// The phase in which the warp arrived last; 0 for none.
    unsigned phase = 0;
    /// Whether the warp has not yet waited for that phase.
    bool isPending = false;
    /// Whether the warp has ever waited, so that all blocks have started.
    bool hasMet = false;
  };
  /// An mbarrier: a phase ends when all have arrived and no bytes are missing.
  struct MessageBarrier {
    uint32_t count = 0, pending = 0, phase = 0;
    int64_t bytes = 0;
    /// The clock of the warps that arrive or send in this phase, and of those
    /// that did in the last.
    Clock arriving, completed;
    /// The component of the copies that it counts; those of the current phase
    /// are over at step `copyStep`.
    unsigned component = 0;
    uint32_t copyStep = 1;
    /// Who initialized it at which step, and whether that thread has fenced
    /// this for engines and other blocks.
    unsigned initializer = 0;
    uint32_t initStep = 0;
    bool isFenced = false;
  };
  /// Warps that have arrived at a barrier and do not wait there.
  struct BarrierArrivals {
    llvm::SmallVector<unsigned, 4> warps;
    uint32_t numThreads = 0;
    uint32_t site = 0;
    Clock known;
  };
  /// A copy into shared memory that a thread has started and not yet waited
  /// for.
  struct Copy {
    char *to;
    const char *from;
    uint32_t bytes, sourceBytes, site;
  };
  struct ThreadCopies {
    std::vector<Copy> open;
    std::deque<std::vector<Copy>> groups;
  };
  /// A byte of a block's shared memory.
  struct SharedPlace {
    unsigned block;
    uint64_t offset;
  };
  /// The last access of a component to a block's shared memory that the block
  /// has to outlive.
  struct OutlivedAccess {
    uint32_t step = 0;
    unsigned thread = 0;
    uint32_t site = 0;
  };
  static constexpr uint64_t redZoneBytes = 4096;
  /// The pattern of the largest swizzle begins at multiples of this.
  static constexpr uint64_t sharedAlignment = 1024;

  static void threadMain();
  void resume(unsigned thread);
  /// Goes back to the scheduler, for good if the thread has exited or failed.
  void yield();
  /// Records an error, at which the block stops.
  void fail(const llvm::Twine &message);

  void checkAccess(uintptr_t address, uint64_t bytes, uint32_t alignment,
                   EmulatedAccess access, uint32_t site);
  void checkShared(SharedPlace place, uint64_t bytes, EmulatedAccess access,
                   uint32_t site);
  /// Notes an access to a block's shared memory that the block has to outlive:
  /// by the running thread, of another block, or a copy that it begins.
  void noteForEnd(unsigned block, unsigned component, uint32_t step,
                  uint32_t site);
  /// Whether each block has waited for these ahead of its end.
  void checkEnds();
  /// Where an address lies in shared memory, if it does.
  std::optional<SharedPlace> placeOf(uintptr_t address) const;
  std::string nameByte(SharedPlace place) const;
  void reportRace(const SharedShadow::Race &race, const llvm::Twine &who,
                  bool isWrite, uint32_t site);
  /// What has a component of the clocks that is no warp's.
  std::string engineName(unsigned component) const;
  uint64_t shadowOffset(SharedPlace place) const {
    return place.block * shadowBytes + place.offset;
  }
  /// Whether the running thread may touch the shared memory of `block` at all.
  bool checkRemote(unsigned block, EmulatedAccess access, uint32_t site);
  void reportOutOfBounds(uintptr_t address, uint64_t bytes,
                         llvm::StringRef verb, uint32_t site);
  const EmulatedVariable *findShared(uint64_t offset, uint64_t bytes) const;
  /// The memory of a shared variable in a block.
  EmulatedBuffer bufferOf(const EmulatedVariable &variable,
                          unsigned block) const;
  /// How many bytes of shared memory a variable has in this launch.
  uint64_t sizeOf(const EmulatedVariable &variable) const;
  char *sharedOf(unsigned block) const {
    return sharedBase + block * blockStride() + redZoneBytes;
  }
  /// The distance from the memory of a block, with its red zones, to that of
  /// the next.
  uint64_t blockStride() const {
    return llvm::alignTo(sharedBytes, sharedAlignment) + 2 * redZoneBytes;
  }

  // Blocks that wait for each other; see EmulatedCounts.cpp.
  /// Notes an access to the grid's memory that the running thread makes or
  /// begins.
  void noteInGrid(uintptr_t address, uint64_t bytes, bool isWrite,
                  unsigned component, uint32_t step, uint32_t site);
  /// Lets threads go on whose counts have been released; whether there are any.
  bool wakeCounts();
  bool isWaitingForCounts() const;
  /// The component here that stands for one of another cluster, and back.
  unsigned componentOf(GridComponent by);
  GridComponent originOf(unsigned component) const;
  /// The name of the cluster or, if it has one block only, of that.
  std::string where() const;

  // Called when a thread starts to wait: the last thread to come releases all.
  void arriveAtWarp(unsigned thread);
  void arriveAtBarrier(unsigned thread);
  void completeShuffle(unsigned warp, const Wait &wait);
  void completeVote(unsigned warp, const Wait &wait);
  void completeElection(unsigned warp, const Wait &wait);
  bool checkBarrier(unsigned thread);
  void completeBarrierIfAllCame(unsigned thread);
  void completeBarrier(llvm::ArrayRef<unsigned> warps);
  void arriveAtClusterBarrier(unsigned thread);
  void arriveAtCluster(unsigned warp, const Wait &wait);
  void waitForCluster(unsigned warp, uint32_t site);
  void completeClusterPhase();
  void leaveCluster(unsigned warp);
  void reportDeadlock();
  /// The mbarrier at an address, which the running thread or, for it, an engine
  /// or another block uses; null after an error.
  MessageBarrier *findBarrier(char *address, bool isByEngine, uint32_t site);
  void completeMessages(MessageBarrier &barrier);
  void arriveWithoutWaiting(unsigned thread);
  BarrierArrivals &barrierArrivals(unsigned block, uint32_t barrier) {
    constexpr unsigned numBarriers = 16;
    return arrivalsAtBarriers[block * numBarriers + barrier];
  }

  // Matrices of a warp; see EmulatedMatrices.cpp.
  void completeMatrixStep(unsigned warp);
  void multiplyMatrices(unsigned warp);
  void moveMatrices(unsigned warp);

  // Products; see EmulatedProducts.cpp.
  void arriveAtWarpgroup(unsigned thread);
  void beginProduct(unsigned number, const Wait &wait);
  /// Gives a product the numbers or the earlier product that it adds to.
  bool takeAccumulators(unsigned number, PendingProduct &product);
  bool readFactor(unsigned number, const EmulatedMatrix &matrix, char *address,
                  const PendingProduct &product, unsigned rows);
  void waitForProducts(unsigned number, uint32_t mostPending);
  void computeProduct(Warpgroup &warpgroup, PendingProduct &product);
  void setRegisters(unsigned number, const Wait &wait);
  void reportPlaceholder(unsigned thread, Placeholder placeholder,
                         uint32_t site);
  unsigned warpgroupOf(unsigned thread) const;
  unsigned firstThread(unsigned warpgroup) const;
  std::string warpgroupName(unsigned warpgroup) const;

  // Copies of tensors; see EmulatedTensors.cpp.
  /// The box that a copy names, unless there is an error.
  std::optional<TensorBox> checkTensor(const void *map, const char *place,
                                       const int32_t *coordinates,
                                       uint32_t rank, uint32_t site);
  bool checkTensorBuffer(const TensorBox &box, bool isWrite, uint32_t site);
  void noteBox(const TensorBox &box, bool isWrite, unsigned component,
               uint32_t step, uint32_t site);
  void arriveBytes(char *to, char *barrier, uint64_t bytes, uint32_t site,
                   llvm::function_ref<void(char *to)> copy);
  void multicast(char *to, char *barrier, uint64_t bytes, int32_t mask,
                 uint32_t site, llvm::function_ref<void(char *to)> copy);
  void checkExit(unsigned thread);

  /// The block of a thread; threads and warps are numbered over the cluster.
  unsigned blockOf(unsigned thread) const { return thread / blockThreads; }

  /// Ids of the threads of a warp: fewer than 32 at the end of the block.
  llvm::iota_range<unsigned> warpThreads(unsigned warp) const;
  llvm::SmallVector<unsigned, 32> lanes(unsigned warp, uint32_t mask) const;
  bool isWarpAtBarrier(unsigned warp, Wait::Kind kind, uint32_t barrier) const;
  bool isWarpAt(unsigned warp, Wait::Kind kind) const;
  std::string describeWait(const Wait &wait) const;

  llvm::StringRef siteName(uint32_t site) const;
  std::string threadName(unsigned thread) const;

  const EmulatedLaunch &launch;
  FiberStacks &stacks;
  std::mt19937_64 &random;
  VectorClocks clocks;
  SharedShadow shadow{clocks};
  std::vector<char> shared;
  /// The first red zone, aligned as shared memory is.
  char *sharedBase;
  /// The size of each block's shared memory, and of its part of the shadow.
  uint64_t sharedBytes, shadowBytes;
  unsigned blockThreads;

  GridSize position;
  /// The number of the cluster in its grid.
  uint32_t number = 0;
  /// The components that stand for those of other clusters.
  std::map<GridComponent, unsigned> foreign;
  std::map<unsigned, GridComponent> origins;
  std::vector<Thread> threads;
  std::vector<unsigned> order;
  unsigned numAlive = 0;
  std::vector<unsigned> numAliveInBlock;
  std::vector<ClusterArrival> arrivals;
  // By block and component.
  std::vector<std::vector<OutlivedAccess>> outlived;
  unsigned clusterPhase = 1;
  // What the warps knew that arrive in this phase, and in the one before.
  Clock clusterArriving, clusterCompleted;
  std::vector<BarrierArrivals> arrivalsAtBarriers;
  std::vector<Warpgroup> warpgroups;
  std::map<unsigned, TensorStores> tensorStores;
  std::map<char *, MessageBarrier> messageBarriers;
  std::vector<ThreadCopies> copies;
  unsigned running = 0;
  void *schedulerStack = nullptr;
  std::string failure;
};

} // namespace bastile

#endif // BASTILE_LIB_EMULATOR_EMULATEDCLUSTER_H
