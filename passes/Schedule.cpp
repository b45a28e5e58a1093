//===- Schedule.cpp - Choose how kernels are laid over the machine --------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/KernelShape.h"
#include "passes/SchedulePins.h"
#include "passes/TargetLookup.h"
#include "passes/ThreadGrid.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace bastile {
#define GEN_PASS_DEF_SCHEDULE
#include "passes/Passes.h.inc"
} // namespace bastile
using namespace mlir;
using namespace bastile;

namespace {

constexpr int64_t kWarp = 32;
/// Past this, the vectors that a thread holds no longer fit its registers (on
/// the host: its program is too long to compile in reasonable time).
constexpr int64_t kMaxElementsPerThread = 256;
constexpr int64_t kMaxPiecesOnHost = 2048;
/// Ops on vectors that a program of the host is to have, unless that is pinned.
constexpr int64_t kMaxOpsOnHost = 256;
/// Above Target::maxBlocksPerCluster, a user asks for it and the launch may
/// fail.
constexpr int64_t kMaxBlocksPerCluster = 16;
/// What combines warps is declared in the code, of which every target takes as
/// much; more has to be asked for at launch.
constexpr int64_t kMaxStaticSharedBytes = 48 * 1024;

/// Elements of a row that a block of 512 threads keeps in registers with ease.
constexpr int64_t kMostElementsHeld = 16384;
/// What an H100 runs of blocks of 512 threads, and what its cache of 50 MB
/// keeps of the rows that these walk.
constexpr int64_t kBlocksAtOnce = 264;
constexpr int64_t kCacheBytes = 27 << 20;

/// The fields of a schedule while they are chosen.
struct Fields {
  int64_t rows, threads, vector, columns, persistent, cluster;

  explicit Fields(tile::ScheduleAttr pinned)
      : rows(pinned.getRows()), threads(pinned.getThreads()),
        vector(pinned.getVector()), columns(pinned.getColumns()),
        persistent(pinned.getPersistent()), cluster(pinned.getCluster()) {}

  tile::ScheduleAttr getAttr(MLIRContext *context) const {
    return tile::ScheduleAttr::get(context, rows, threads, vector, columns,
                                   persistent, cluster);
  }

  /// Blocks that share a row.
  int64_t getBlocks() const { return std::max<int64_t>(1, cluster); }
};

/// Finds the number of threads, from `minThreads` to `maxThreads` or the pinned
/// one, that leaves the fewest of `pieces` vectors padding while none holds
/// more than `maxPieces`; 0 if there is none. Of equal ones it takes the
/// largest, whose threads hold less.
int64_t findThreads(const Fields &fields, int64_t pieces, int64_t minThreads,
                    int64_t maxThreads, int64_t maxPieces) {
  int64_t best = 0, bestPadded = 0;
  for (int64_t threads = minThreads; threads <= maxThreads; threads += kWarp) {
    if (fields.threads && fields.threads != threads)
      continue;
    int64_t padded = llvm::alignTo(pieces, threads);
    if (padded > maxPieces * threads)
      continue;
    if (!best || padded <= bestPadded) {
      best = threads;
      bestPadded = padded;
    }
  }
  return best;
}

/// Chooses `threads` and `columns` for a row of which each block holds `pieces`
/// vectors, up to `maxPieces` of them to a thread.
void chooseRowThreads(Fields &fields, int64_t pieces, int64_t maxThreads,
                      int64_t maxPieces) {
  int64_t padded = 0;
  if (int64_t threads =
          findThreads(fields, pieces, kWarp, maxThreads, maxPieces)) {
    fields.threads = threads;
    padded = llvm::alignTo(pieces, threads);
  } else {
    if (!fields.threads)
      fields.threads = maxThreads;
    padded = fields.threads * maxPieces;
  }
  if (!fields.columns)
    fields.columns = fields.getBlocks() * padded * fields.vector;
}

/// Chooses `threads` and `columns` for tiles along a row of `pieces` vectors
/// that may each have a block of their own: one vector a thread, so that many
/// small blocks keep loads in flight.
void chooseTileThreads(Fields &fields, int64_t pieces, int64_t minThreads,
                       int64_t maxThreads) {
  if (!fields.threads)
    fields.threads = findThreads(fields, pieces, minThreads, maxThreads,
                                 /*maxPieces=*/pieces);
  if (!fields.columns)
    fields.columns = fields.threads * fields.vector;
}

/// Has the smallest cluster that can share a row of `pieces` vectors which one
/// block cannot hold in 64 bytes a thread: with more, the registers of a
/// multiprocessor hold no second row to load while the first is reduced. Blocks
/// of half the threads, two to a multiprocessor, come before full ones. A row
/// that no cluster holds stays with one block.
void chooseCluster(Fields &fields, int64_t pieces, const KernelShape &shape,
                   const Target &target) {
  auto limitHeld = [](int64_t held) {
    return std::clamp<int64_t>(held, 1, 16);
  };
  int64_t held = limitHeld(64 / (fields.vector * shape.minElementBytes));
  int64_t mostHeld = limitHeld(32 / fields.vector);
  int64_t mostThreads = target.maxThreadsPerBlock;
  if (pieces <= held * mostThreads)
    return;
  int64_t fewThreads = fields.threads ? fields.threads : mostThreads / 2;
  if (fields.threads)
    mostThreads = fields.threads;
  for (int64_t capacity :
       {held * fewThreads, held * mostThreads, mostHeld * mostThreads})
    for (int64_t blocks = 2; blocks <= target.maxBlocksPerCluster; blocks *= 2)
      if (pieces <= blocks * capacity) {
        fields.cluster = blocks;
        return;
      }
}

/// For long rows of which more is computed than registers hold: a loop walks
/// over them in tiles of 16 elements a thread, two blocks to a multiprocessor.
/// A cluster shares each row, so that all rows that are being walked stay in
/// the cache from one pass to the next.
void chooseLoop(Fields &fields, const KernelShape &shape,
                const Target &target) {
  constexpr int64_t threads = 16 * kWarp;
  int64_t rowBytes = shape.rowLength * shape.minElementBytes;
  if (!fields.cluster) {
    fields.cluster = 1;
    while (fields.cluster < std::min<int64_t>(4, target.maxBlocksPerCluster) &&
           kBlocksAtOnce / fields.cluster * rowBytes > kCacheBytes)
      fields.cluster *= 2;
  }
  fields.threads = threads;
  fields.columns = fields.cluster * threads * fields.vector *
                   std::clamp<int64_t>(16 / fields.vector, 1, 8);
  if (!fields.rows)
    fields.rows = 1;
}

/// For rows too short to keep a block busy: several of them to a block, each
/// row held by a power of two of threads.
void chooseShortRows(Fields &fields, int64_t pieces) {
  int64_t perRow = llvm::PowerOf2Ceil(pieces);
  if (!fields.columns)
    fields.columns = fields.getBlocks() * perRow * fields.vector;
  if (!fields.threads)
    fields.threads = 128;
  int64_t threadRows = std::max<int64_t>(1, fields.threads / perRow);
  // Two rows to a thread keep more loads in flight.
  if (!fields.rows)
    fields.rows = 2 * threadRows;
}

/// For kernels in which one program combines all rows: the rows, one for each
/// program before, are few, and many threads share them out for a few columns.
void chooseCombinedRows(Fields &fields, const KernelShape &shape) {
  if (!fields.vector)
    fields.vector = 1;
  if (!fields.columns)
    fields.columns =
        std::min<int64_t>(kWarp, llvm::PowerOf2Ceil(shape.rowLength)) *
        fields.vector;
  if (!fields.threads)
    fields.threads = 16 * kWarp;
  int64_t threadRows =
      std::max<int64_t>(1, fields.threads * fields.vector / fields.columns);
  // Several rows to a thread keep as many loads in flight.
  if (!fields.rows)
    fields.rows = 4 * threadRows;
}

/// For kernels that keep a sum of the rows beside the current one: as many
/// threads as the registers that both take allow, and blocks to fill the
/// multiprocessor with them.
void chooseSummedRows(Fields &fields, int64_t pieces, const Target &target) {
  if (pieces <= kWarp) {
    if (!fields.threads)
      fields.threads = 256;
    chooseShortRows(fields, pieces);
  } else {
    if (!fields.rows)
      fields.rows = 1;
    int64_t mostHeld = std::max<int64_t>(1, 16 / fields.vector);
    int64_t most =
        pieces <= 16 * kWarp ? 16 * kWarp : target.maxThreadsPerBlock;
    chooseRowThreads(fields, pieces, most, mostHeld);
  }
  if (!fields.persistent)
    fields.persistent = llvm::divideCeil(1024, fields.threads);
}

/// For kernels of row vectors alone: a single row, whose tiles are shared out
/// among blocks.
void chooseSingleRow(Fields &fields, int64_t pieces) {
  if (!fields.rows)
    fields.rows = 1;
  if (!fields.threads)
    fields.threads = std::min<int64_t>(8 * kWarp, llvm::alignTo(pieces, kWarp));
  if (!fields.columns)
    fields.columns = fields.threads * fields.vector;
}

/// As many threads as divide the rows among them, in whole warps; 0 for none.
int64_t chooseBandThreads(const Fields &fields) {
  int64_t pieces = std::max<int64_t>(1, fields.columns / fields.vector);
  for (int64_t threads = 256; threads >= kWarp; threads /= 2)
    if (threads % pieces == 0 && fields.rows % (threads / pieces) == 0)
      return threads;
  return 0;
}

/// For kernels that reduce bands of rows: a block holds one, as wide as a group
/// of columns or a few warps, so that it reads everything once.
void chooseBand(Fields &fields, const KernelShape &shape) {
  if (!fields.rows)
    fields.rows = shape.band;
  const bool isFree = !fields.columns;
  if (isFree) {
    fields.columns = std::min<int64_t>(
        128,
        llvm::PowerOf2Ceil(llvm::divideCeil(shape.rowLength, fields.vector)) *
            fields.vector);
    for (int64_t group : shape.groups)
      fields.columns = std::max(fields.columns, group);
    for (int64_t group : shape.groups)
      fields.columns = llvm::alignTo(fields.columns, group);
  }
  if (fields.threads)
    return;
  fields.threads = chooseBandThreads(fields);
  if (fields.threads)
    return;
  // Rows that no number of warps divides are divided by themselves.
  if (isFree)
    fields.columns = std::lcm(fields.columns, kWarp * fields.vector);
  fields.threads = llvm::alignTo(fields.columns / fields.vector, kWarp);
}

void completeForGPU(Fields &fields, const KernelShape &shape,
                    const Target &target) {
  if (shape.hasCombinedRows) {
    if (!fields.persistent)
      fields.persistent = 1;
    return chooseCombinedRows(fields, shape);
  }
  if (!fields.vector)
    fields.vector = shape.getVector(target.vectorBytes);
  if (shape.band)
    return chooseBand(fields, shape);
  int64_t pieces = llvm::divideCeil(shape.rowLength, fields.vector);
  if (fields.columns)
    pieces = llvm::divideCeil(std::min(fields.columns, shape.rowLength),
                              fields.vector);
  if (shape.leading == 0)
    return chooseSingleRow(fields, pieces);
  if (shape.numReductions > 2 && !fields.columns && !fields.threads &&
      shape.rowLength > kMostElementsHeld)
    return chooseLoop(fields, shape, target);
  if (!fields.cluster && shape.numReductions > 0)
    chooseCluster(fields, pieces, shape, target);
  // From here on, what one block holds.
  pieces = llvm::divideCeil(pieces, fields.getBlocks());
  if (shape.hasLongPartialRows)
    return chooseSummedRows(fields, pieces, target);
  if (pieces <= kWarp) {
    chooseShortRows(fields, pieces);
    return;
  }
  if (!fields.rows)
    fields.rows = 1;
  if (shape.numReductions == 0) {
    chooseTileThreads(
        fields, pieces, /*minThreads=*/
        std::min<int64_t>(4 * kWarp, llvm::alignTo(pieces, kWarp)),
        /*maxThreads=*/16 * kWarp);
    return;
  }
  // A row stays in registers as long as it fits: up to 64 elements a thread,
  // which leaves room for the intermediate values, and up to 16 vectors, each
  // of which takes an address. Threads that hold little come first.
  int64_t maxPieces = std::min<int64_t>(16, 64 / fields.vector);
  int64_t fewThreads = 16 * kWarp;
  if (pieces <= 16 * kWarp)
    fewThreads = pieces <= 8 * kWarp ? 4 * kWarp : 8 * kWarp;
  if (pieces <= fewThreads * 4) {
    chooseRowThreads(fields, pieces, fewThreads, /*maxPieces=*/4);
    return;
  }
  for (int64_t held = 4; held <= maxPieces; held *= 2) {
    if (pieces > held * target.maxThreadsPerBlock)
      continue;
    chooseRowThreads(fields, pieces, target.maxThreadsPerBlock, held);
    return;
  }
  // Otherwise a loop walks over it in steps of moderate tiles.
  if (!fields.threads)
    fields.threads = 16 * kWarp;
  if (!fields.columns)
    fields.columns = 4 * fields.getBlocks() * fields.threads * fields.vector;
}

void completeForHost(Fields &fields, const KernelShape &shape,
                     const Target &target) {
  if (shape.combinesLongRows() && !fields.persistent)
    fields.persistent = 1;
  // On the host a piece is a register of the computing type.
  if (!fields.vector)
    fields.vector = shape.getVector(target.vectorBytes * shape.minElementBytes /
                                    (shape.usesFloat64 ? 8 : 4));
  if (!fields.rows)
    fields.rows = 1;
  if (!fields.threads)
    fields.threads = 1;
  if (!fields.columns) {
    // Four registers to each value hide the latency of the arithmetic. Narrow
    // vectors get more, so that sums over long rows keep many partial sums, but
    // not where much is computed: a tile is code of its length. A row that is
    // to be added to others stays in registers if it can.
    int64_t pieces = llvm::divideCeil(shape.rowLength, fields.vector);
    int64_t held = std::max<int64_t>(4, 64 / fields.vector);
    if (!shape.hasPartialRows || shape.numReductions == 0)
      held = std::clamp<int64_t>(kMaxOpsOnHost / shape.numOps, 4, held);
    fields.columns = std::min(pieces, held) * fields.vector;
    for (int64_t group : shape.groups)
      fields.columns = llvm::alignTo(fields.columns, group);
  }
}

/// Checks that no group goes beyond a tile or, between threads, beyond a warp.
LogicalResult verifyGroups(function_ref<InFlightDiagnostic()> error,
                           const Fields &fields, const KernelShape &shape,
                           int64_t threadColumns) {
  int64_t columns = fields.columns / fields.getBlocks();
  for (int64_t group : shape.groups) {
    if (columns % group != 0)
      return error() << "a block's " << columns
                     << " columns do not divide into groups of " << group;
    if (group % fields.vector != 0)
      return error() << "a vector of " << fields.vector
                     << " does not divide a group of " << group << " columns";
    int64_t pieces = group / fields.vector;
    int64_t threads = std::min(pieces, threadColumns);
    if (threads > kWarp || !llvm::isPowerOf2_64(threads) ||
        pieces % threads != 0 || threadColumns % threads != 0)
      return error() << "a group of " << group << " columns has " << pieces
                     << " vectors, which must be a power of two up to " << kWarp
                     << " for threads of one warp to hold them";
  }
  return success();
}

LogicalResult verifySchedule(function_ref<InFlightDiagnostic()> error,
                             const Fields &fields, const KernelShape &shape,
                             const Target &target, MLIRContext *context) {
  if (shape.combinesLongRows() && !fields.persistent)
    return error() << "programs that combine rows are persistent";
  if (shape.rowLength % fields.vector != 0)
    return error() << "a vector of " << fields.vector
                   << " does not divide the row of " << shape.rowLength;
  if (fields.columns % fields.vector != 0)
    return error() << "a vector of " << fields.vector
                   << " does not divide the tile's " << fields.columns
                   << " columns";
  int64_t elements = fields.rows * fields.columns;
  if (shape.band && shape.band % fields.rows != 0)
    return error() << fields.rows << " rows do not divide a band of "
                   << shape.band;
  if (target.isHost()) {
    if (elements / fields.vector > kMaxPiecesOnHost)
      return error() << "a tile of " << elements / fields.vector
                     << " vectors is more than the " << kMaxPiecesOnHost
                     << " that the host unrolls";
    return verifyGroups(error, fields, shape, /*threadColumns=*/1);
  }

  int64_t blocks = fields.getBlocks();
  if (blocks > 1 && target.maxBlocksPerCluster == 1)
    return error() << "it has no clusters, and the schedule's is of " << blocks
                   << " blocks";
  if (blocks > kMaxBlocksPerCluster)
    return error() << blocks << " blocks are more than the "
                   << kMaxBlocksPerCluster << " of a cluster";
  if (blocks > 1 && shape.numReductions == 0)
    return error() << "the " << blocks
                   << " blocks of a cluster would share rows that no reduction "
                      "needs as a whole; leave out 'cluster'";
  if (fields.columns % (blocks * fields.vector) != 0)
    return error() << fields.columns / fields.vector
                   << " vectors do not divide evenly among the " << blocks
                   << " blocks of a cluster";
  if (fields.threads > target.maxThreadsPerBlock)
    return error() << fields.threads << " threads are more than the "
                   << target.maxThreadsPerBlock << " of a block";
  if (fields.threads % kWarp != 0)
    return error() << fields.threads
                   << " threads are not a multiple of the warp of " << kWarp;
  FailureOr<ThreadGrid> grid = ThreadGrid::get(fields.getAttr(context));
  if (failed(grid)) {
    int64_t pieces = fields.columns / fields.vector / blocks;
    InFlightDiagnostic diagnostic = error();
    diagnostic << fields.rows << " rows of " << pieces
               << " vectors do not divide evenly among " << fields.threads
               << " threads";
    if (blocks > 1)
      diagnostic << " in whole warps, as a cluster needs it";
    return diagnostic;
  }
  if (failed(verifyGroups(error, fields, shape, grid->columns)))
    return failure();
  int64_t elementsPerThread = elements / (blocks * fields.threads);
  if (elementsPerThread > kMaxElementsPerThread)
    return error() << elementsPerThread
                   << " elements a thread are more than the "
                   << kMaxElementsPerThread << " that registers hold";
  int64_t shared = shape.numReductions * grid->getScratchBytes(fields.rows);
  if (shared > kMaxStaticSharedBytes)
    return error() << shared << " bytes of shared memory are more than the "
                   << kMaxStaticSharedBytes << " that a block has without "
                   << "asking for more";
  return success();
}

/// Whether a loop walks over rows that are reduced, tile by tile.
bool isLoop(const Fields &fields, const KernelShape &shape) {
  return shape.numReductions > 0 && fields.columns < shape.rowLength;
}

/// The schedules that leave a thread half of what it holds in `fields`, the one
/// that costs least first. Programs that each leave a row of partial results
/// stay as many, and with the same rows.
SmallVector<Fields> halve(const Fields &fields, const KernelShape &shape) {
  SmallVector<Fields> halved;
  auto add = [&](int64_t Fields::*field, int64_t value) {
    halved.push_back(fields);
    halved.back().*field = value;
  };
  if (fields.rows % 2 == 0 && !shape.hasPartialRows)
    add(&Fields::rows, fields.rows / 2);
  bool hasOwnBlocks = shape.numReductions == 0 && !shape.hasPartialRows;
  if (fields.columns % 2 == 0 && (hasOwnBlocks || isLoop(fields, shape)))
    add(&Fields::columns, fields.columns / 2);
  add(&Fields::threads, fields.threads * 2);
  return halved;
}

/// The schedule for operands of any alignment. A thread accesses elements one
/// by one there, each by an instruction of its own, so that a few of them keep
/// it busy, more in a loop, and yet more would only make the program longer.
Fields getUnaligned(Fields fields, const KernelShape &shape,
                    const Target &target, MLIRContext *context) {
  constexpr int64_t vector = 4;
  int64_t held = isLoop(fields, shape) ? 2 * vector : vector;
  auto fits = [&](const Fields &candidate) {
    bool isValid = true;
    auto error = [&] {
      isValid = false;
      return InFlightDiagnostic();
    };
    (void)verifySchedule(error, candidate, shape, target, context);
    return isValid;
  };
  Fields narrow = fields;
  narrow.vector = std::min(narrow.vector, vector);
  if (fits(narrow))
    fields = narrow;
  while (fields.rows * fields.columns >
         held * fields.getBlocks() * fields.threads) {
    SmallVector<Fields> halved = halve(fields, shape);
    auto found = llvm::find_if(halved, fits);
    if (found == halved.end())
      break;
    fields = *found;
  }
  return fields;
}

struct SchedulePass : public bastile::impl::ScheduleBase<SchedulePass> {
  using ScheduleBase::ScheduleBase;

  void runOnOperation() override {
    const Target *target = lookupTarget(getOperation(), this->target);
    if (!target)
      return signalPassFailure();
    FailureOr<SchedulePins> pins =
        SchedulePins::parse(schedule, getOperation());
    if (failed(pins))
      return signalPassFailure();
    findAuxiliary();
    auto nothing = tile::ScheduleAttr::get(&getContext(), 0, 0, 0, 0, 0, 0);
    for (auto kernel : getOperation().getOps<tile::KernelOp>()) {
      tile::ScheduleAttr pinned = getPinned(kernel, *pins);
      // What a tuner pins is found on aligned operands.
      bool isForAligned =
          pinned == nothing || pins->getOwn(kernel.getSymName());
      if (failed(scheduleKernel(kernel, pinned, isForAligned, *target)))
        return signalPassFailure();
    }
  }

  /// Finds the kernels that a pinned schedule does not mean: those that finish
  /// what others have begun, walk no rows or scale in place, and those of
  /// shorter rows than others of the same function have.
  void findAuxiliary() {
    auxiliary.clear();
    SymbolTable symbols(getOperation());
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      SmallVector<std::pair<tile::KernelOp, int64_t>> kernels;
      int64_t longest = 0;
      for (auto launch : func.getOps<tile::LaunchOp>())
        for (auto name : launch.getKernels().getAsRange<FlatSymbolRefAttr>()) {
          auto kernel = symbols.lookup<tile::KernelOp>(name.getValue());
          if (!kernel || kernel.isTiled())
            continue;
          KernelShape shape = KernelShape::get(kernel);
          if (shape.hasFactor)
            auxiliary.insert(kernel);
          kernels.push_back({kernel, shape.hasCombinedRows || shape.leading == 0
                                         ? 0
                                         : shape.rowLength});
          longest = std::max(longest, kernels.back().second);
        }
      for (auto [kernel, length] : kernels)
        if (length < longest)
          auxiliary.insert(kernel);
    }
  }

  /// The fields that are pinned for `kernel`.
  tile::ScheduleAttr getPinned(tile::KernelOp kernel,
                               const SchedulePins &pins) {
    if (tile::ScheduleAttr own = pins.getOwn(kernel.getSymName()))
      return own;
    if (!auxiliary.contains(kernel)) {
      if (tile::ScheduleAttr common = pins.getCommon())
        return common;
      if (std::optional<tile::ScheduleAttr> given = kernel.getSchedule())
        return *given;
    }
    return tile::ScheduleAttr::get(&getContext(), 0, 0, 0, 0, 0, 0);
  }

  /// `isForAligned` lets operands of any alignment have another schedule.
  LogicalResult scheduleKernel(tile::KernelOp kernel, tile::ScheduleAttr pinned,
                               bool isForAligned, const Target &target) {
    KernelShape shape = KernelShape::get(kernel);
    if (!target.isHost() && shape.usesFloat64)
      return kernel.emitError()
             << "float64 is computed on the host only, not on " << target.name;
    Fields fields(pinned);
    if (target.isHost())
      completeForHost(fields, shape, target);
    else
      completeForGPU(fields, shape, target);
    // Few programs, so that it takes no time to find that there is no work.
    if (shape.hasFactor && !target.isHost() && !fields.persistent)
      fields.persistent = llvm::divideCeil(2048, fields.threads);
    MLIRContext *context = &getContext();
    auto error = [&] {
      return kernel.emitError() << "schedule " << fields.getAttr(context)
                                << " does not fit " << target.name << ": ";
    };
    if (failed(verifySchedule(error, fields, shape, target, context)))
      return failure();
    kernel.setScheduleAttr(fields.getAttr(context));
    // A program that holds less than a band would read it more than once.
    if (!target.isHost() && isForAligned && fields.vector > 1 && !shape.band)
      kernel.setUnalignedScheduleAttr(
          getUnaligned(fields, shape, target, context).getAttr(context));
    return success();
  }

  DenseSet<Operation *> auxiliary;
};

} // namespace
