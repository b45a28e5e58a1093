//===- Emulator.cpp - Running GPU kernels without a GPU -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/Emulator.h"
#include "bastile/CodeGen.h"
#include "bastile/Jit.h"
#include "lib/emulator/EmulatedCluster.h"
#include "lib/emulator/EmulatorSymbols.h"
#include "lib/emulator/rewrite/EmulateGpu.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <algorithm>

using namespace bastile;
using llvm::Twine;

struct Emulator::State {
  EmulatedModule module;
  std::unique_ptr<Jit> code;
  std::vector<EmulatedBuffer> buffers;
  Order order = Order::Forward;
  std::mt19937_64 random;
  bool worstApproximations = false;
  unsigned multiprocessors = 1;
  /// The stacks are kept from one launch to the next, as reserving them is not
  /// cheap.
  std::unique_ptr<FiberStacks> stacks;
};

Emulator::Emulator(std::unique_ptr<State> state) : state(std::move(state)) {}

Emulator::~Emulator() = default;

llvm::Expected<std::unique_ptr<Emulator>>
Emulator::create(mlir::ModuleOp module) {
  mlir::OwningOpRef<mlir::ModuleOp> copy = module.clone();
  llvm::Expected<EmulatedModule> emulated = rewriteForEmulation(*copy);
  if (!emulated)
    return emulated.takeError();

  llvm::LLVMContext context;
  auto code = translateToLLVM(*copy, context, Target::host());
  if (!code)
    return code.takeError();
  // A test spends more time compiling than running, so code is not optimized.
  auto jit = Jit::create(**code, getEmulatorSymbols(), /*level=*/0);
  if (!jit)
    return jit.takeError();

  auto state = std::make_unique<State>();
  state->module = std::move(*emulated);
  state->code = std::move(*jit);
  return std::unique_ptr<Emulator>(new Emulator(std::move(state)));
}

void Emulator::registerBuffer(const void *data, uint64_t bytes,
                              llvm::StringRef name, bool isWritable) {
  state->buffers.push_back(
      {reinterpret_cast<uintptr_t>(data), bytes, name.str(), isWritable});
}

void Emulator::clearBuffers() { state->buffers.clear(); }

void Emulator::setOrder(Order order, uint64_t seed) {
  state->order = order;
  state->random.seed(seed);
}

void Emulator::setWorstApproximations(bool worst) {
  state->worstApproximations = worst;
}

void Emulator::setMultiprocessors(unsigned count) {
  state->multiprocessors = count;
}

static llvm::Error checkBlock(const EmulatedKernel &kernel, GridSize block) {
  constexpr unsigned maxThreads = 1024;
  if (block.count() == 0 || block.count() > maxThreads)
    return llvm::createStringError(
        "a block has between 1 and 1024 threads, not " +
        llvm::Twine(block.count()));
  if (kernel.requiredBlock.empty())
    return llvm::Error::success();
  const uint32_t given[] = {block.x, block.y, block.z};
  for (unsigned i = 0; i < 3; ++i) {
    uint32_t required =
        i < kernel.requiredBlock.size() ? kernel.requiredBlock[i] : 1;
    if (given[i] != required)
      return llvm::createStringError(
          "kernel '" + kernel.name + "' requires " + llvm::Twine(required) +
          " threads in dimension " + llvm::Twine(i) + " of its block, not " +
          llvm::Twine(given[i]));
  }
  return llvm::Error::success();
}

static llvm::Error checkCluster(const EmulatedKernel &kernel, GridSize grid,
                                GridSize block, uint32_t cluster) {
  constexpr unsigned maxBlocks = 16, warp = 32;
  if (cluster != kernel.requiredCluster)
    return llvm::createStringError("kernel '" + kernel.name +
                                   "' requires clusters of " +
                                   llvm::Twine(kernel.requiredCluster) +
                                   " blocks, not of " + llvm::Twine(cluster));
  if (cluster == 0 || cluster > maxBlocks)
    return llvm::createStringError(
        "a cluster has between 1 and 16 blocks, not " + llvm::Twine(cluster));
  if (grid.x % cluster != 0)
    return llvm::createStringError("a grid of " + llvm::Twine(grid.x) +
                                   " blocks does not divide into clusters of " +
                                   llvm::Twine(cluster));
  if (cluster > 1 && block.count() % warp != 0)
    return llvm::createStringError(
        "the emulator runs clusters of whole warps only, not of blocks of " +
        llvm::Twine(block.count()) + " threads");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// All blocks of a launch
//===----------------------------------------------------------------------===//

/// The coordinates of the first block of cluster `number`.
static GridSize positionOf(const EmulatedLaunch &launch, uint64_t number) {
  const GridSize grid = launch.grid;
  const uint64_t index = number * launch.cluster;
  return {static_cast<uint32_t>(index % grid.x),
          static_cast<uint32_t>(index / grid.x % grid.y),
          static_cast<uint32_t>(index / grid.x / grid.y)};
}

/// Brings what runs in the order of its numbers into that of the launch.
template <typename Range>
static void arrange(Range &range, Emulator::Order order,
                    std::mt19937_64 &random) {
  if (order == Emulator::Order::Reverse)
    std::reverse(range.begin(), range.end());
  else if (order == Emulator::Order::Random)
    std::shuffle(range.begin(), range.end(), random);
}

/// Runs the clusters of `launch` one after the other, on `stacks`, in the
/// launch's order.
static llvm::Error runInTurn(const EmulatedLaunch &launch, FiberStacks &stacks,
                             std::mt19937_64 &random) {
  EmulatedCluster cluster(launch, stacks, random);
  llvm::SmallVector<uint64_t> numbers =
      llvm::to_vector(llvm::seq(launch.grid.count() / launch.cluster));
  arrange(numbers, launch.order, random);
  for (uint64_t number : numbers) {
    cluster.start(positionOf(launch, number));
    if (auto progress = cluster.advance(); !progress)
      return progress.takeError();
  }
  return llvm::Error::success();
}

/// How many clusters run at once on so many multiprocessors like Hopper's.
static uint64_t countAtOnce(const EmulatedLaunch &launch,
                            unsigned multiprocessors) {
  constexpr uint64_t mostThreads = 2048, mostBlocks = 32;
  constexpr uint64_t sharedBytes = 228 * 1024, reservedBytes = 1024;
  const uint64_t bytes = launch.module.staticSharedBytes +
                         launch.dynamicSharedBytes + reservedBytes;
  const uint64_t blocks = std::min(
      {mostBlocks, mostThreads / launch.block.count(), sharedBytes / bytes});
  return std::max<uint64_t>(1, blocks * multiprocessors / launch.cluster);
}

namespace {

/// A place in which one cluster after the other runs.
struct Place {
  Place(const EmulatedLaunch &launch, std::mt19937_64 &random)
      : stacks(launch.cluster * launch.block.count()),
        cluster(launch, stacks, random) {}

  FiberStacks stacks;
  EmulatedCluster cluster;
};

} // namespace

static llvm::Error reportDeadlock(llvm::ArrayRef<Place *> busy,
                                  uint64_t numStarted, uint64_t numClusters) {
  std::string text = "deadlock: ";
  for (Place *place : busy)
    text += place->cluster.describeCounts() + "; ";
  const uint64_t numEnded = numStarted - busy.size();
  return llvm::createStringError(
      text + Twine(numEnded) + " have ended and " +
      Twine(numClusters - numStarted) +
      " can start only behind these. A program may wait only for programs with "
      "smaller numbers, each of which has to release its count");
}

/// Runs the clusters of `launch`, which wait for each other: they start in the
/// order of their numbers, as many at a time as there is room for on
/// `multiprocessors`. The launch's order is that in which those go on.
static llvm::Error runAtOnce(const EmulatedLaunch &launch,
                             unsigned multiprocessors,
                             std::mt19937_64 &random) {
  const uint64_t numClusters = launch.grid.count() / launch.cluster;
  const uint64_t most =
      std::min(numClusters, countAtOnce(launch, multiprocessors));
  std::vector<std::unique_ptr<Place>> places;
  llvm::SmallVector<Place *> free, busy;
  for (uint64_t i = 0; i < most; ++i) {
    places.push_back(std::make_unique<Place>(launch, random));
    free.push_back(places.back().get());
  }
  uint64_t numStarted = 0;
  while (true) {
    while (!free.empty() && numStarted < numClusters) {
      busy.push_back(free.pop_back_val());
      busy.back()->cluster.start(positionOf(launch, numStarted++));
    }
    if (busy.empty())
      return llvm::Error::success();
    bool hasProgress = false;
    llvm::SmallVector<Place *> turns(busy);
    arrange(turns, launch.order, random);
    for (Place *place : turns) {
      auto progress = place->cluster.advance();
      if (!progress)
        return progress.takeError();
      hasProgress |= *progress != EmulatedCluster::Progress::None;
      if (*progress == EmulatedCluster::Progress::Ended) {
        llvm::erase(busy, place);
        free.push_back(place);
        break;
      }
    }
    if (!hasProgress)
      return reportDeadlock(busy, numStarted, numClusters);
  }
}

llvm::Error Emulator::launch(llvm::StringRef name, GridSize grid,
                             GridSize block, uint64_t sharedBytes,
                             void **arguments, uint32_t cluster) {
  const auto kernel =
      llvm::find_if(state->module.kernels, [&](const EmulatedKernel &one) {
        return one.name == name;
      });
  if (kernel == state->module.kernels.end())
    return llvm::createStringError("the module has no kernel '" + name + "'");
  if (llvm::Error error = checkBlock(*kernel, block))
    return error;
  if (llvm::Error error = checkCluster(*kernel, grid, block, cluster))
    return error;
  llvm::Expected<void *> entry = state->code->lookup(kernel->entry);
  if (!entry)
    return entry.takeError();

  // The module's own variables are there for the kernel to use.
  std::vector<EmulatedBuffer> buffers = state->buffers;
  if (!buffers.empty())
    for (const EmulatedVariable &variable : state->module.variables) {
      if (variable.isShared)
        continue;
      llvm::Expected<void *> address = state->code->lookup(variable.name);
      if (!address)
        return address.takeError();
      buffers.push_back({reinterpret_cast<uintptr_t>(*address), variable.bytes,
                         variable.name, !variable.isConstant});
    }

  if (!buffers.empty())
    for (const EmulatedKernel::ByValue &one : kernel->byValue)
      buffers.push_back({reinterpret_cast<uintptr_t>(arguments[one.index]),
                         one.bytes, "argument " + std::to_string(one.index),
                         /*isWritable=*/false});

  std::unique_ptr<GridShadow> shadow;
  if (kernel->waitsForCounts)
    shadow = std::make_unique<GridShadow>(buffers);
  EmulatedLaunch launch = {state->module,
                           buffers,
                           reinterpret_cast<void (*)(void **)>(*entry),
                           arguments,
                           grid,
                           block,
                           cluster,
                           sharedBytes,
                           state->order,
                           state->worstApproximations,
                           shadow.get()};
  auto run = [&] {
    if (shadow)
      return runAtOnce(launch, state->multiprocessors, state->random);
    uint64_t fibers = cluster * block.count();
    if (!state->stacks || state->stacks->size() < fibers)
      state->stacks = std::make_unique<FiberStacks>(fibers);
    return runInTurn(launch, *state->stacks, state->random);
  };
  if (llvm::Error error = run())
    return llvm::createStringError("kernel '" + name + "', " +
                                   llvm::toString(std::move(error)));
  return llvm::Error::success();
}
