//===- ScheduleHeuristic.cpp - Choose the fields of a GPU's schedule ------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/ScheduleFields.h"

#include "passes/schedule/RowsModel.h"
#include "passes/schedule/ThreadGrid.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace bastile;

namespace {

/// Bytes of the vectors that a thread loads of a row, up to which registers
/// hold two rows beside the sums where a multiprocessor runs 1024 threads.
constexpr int64_t kMostStagedBytes = 32;
/// Bytes that a thread holds, up to which a multiprocessor has registers for
/// 768 threads and beyond which for 512: its vectors of the current row that
/// outlive a reduction, of the next row and of what all rows share, and its
/// sums.
constexpr int64_t kMostSummedBytes = 208;
/// Registers that such a thread takes for them and for what it computes, beyond
/// which a multiprocessor has registers for 512 threads.
constexpr double kMostSummedRegisters = 88;

/// Chooses `threads` and `columns` for a row of which each block holds `pieces`
/// vectors, up to `maxPieces` of them to a thread.
void chooseRowThreads(ScheduleFields &fields, int64_t pieces,
                      int64_t maxThreads, int64_t maxPieces,
                      Prefer prefer = Prefer::Most) {
  int64_t padded = 0;
  if (int64_t threads =
          findThreads(fields, pieces, kWarp, maxThreads, maxPieces, prefer)) {
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
void chooseTileThreads(ScheduleFields &fields, int64_t pieces,
                       const KernelShape &shape) {
  int64_t minThreads =
      std::min<int64_t>(4 * kWarp, llvm::alignTo(pieces, kWarp));
  // Groups of columns have to fit.
  Prefer prefer = shape.groups.empty() ? Prefer::Fewest : Prefer::Most;
  if (!fields.threads)
    fields.threads = findThreads(fields, pieces, minThreads,
                                 /*maxThreads=*/16 * kWarp,
                                 /*maxPieces=*/pieces, prefer);
  if (!fields.columns)
    fields.columns = fields.threads * fields.vector;
}

/// How many registers a thread needs that holds the widest vector of a row, or
/// as many elements one by one, beside sums of rows.
enum class Pressure { Low, Medium, High };

/// Whether the ops of an element take longer than loading it. Each sweep
/// computes them again, and threads that wait for others cost more than
/// registers do.
bool isCostly(const KernelShape &shape) { return shape.numOps >= 40; }

/// The pressure is medium where three tensors or more are loaded, high where
/// many values are kept beside the sums.
Pressure getPressure(const ScheduleFields &fields, const KernelShape &shape,
                     const Target &target) {
  int64_t elements =
      std::max(fields.vector, target.vectorBytes / shape.minElementBytes);
  int64_t bytes = shape.keptBytes + shape.loadedBytes + shape.sharedBytes +
                  4 * shape.numLongPartialRows;
  ScheduleFields one;
  one.rows = 1;
  one.threads = kWarp;
  one.vector = elements;
  one.columns = elements * kWarp;
  one.persistent = 1;
  one.stages = 2;
  double registers = estimateRegisters(one, shape);
  if (elements * bytes > kMostSummedBytes ||
      (isCrowded(shape) && registers > kMostSummedRegisters))
    return Pressure::High;
  return elements * shape.loadedBytes > kMostStagedBytes ? Pressure::Medium
                                                         : Pressure::Low;
}

/// Chooses the smallest cluster that can share a row of `pieces` vectors, if
/// one block cannot hold the row in 64 bytes a thread: with more bytes, the
/// registers of a multiprocessor have no room to load a second row while the
/// first is reduced. Blocks of half the threads, two on a multiprocessor, are
/// tried before full blocks, and also before a single block that holds its row
/// for later use, in which all threads would wait for one row. Returns whether
/// the row is too long for one block; if no cluster can hold it either,
/// `cluster` stays unset.
bool chooseCluster(ScheduleFields &fields, int64_t pieces,
                   const KernelShape &shape, const Target &target) {
  auto limitHeld = [](int64_t held) {
    return std::clamp<int64_t>(held, 1, 16);
  };
  int64_t bytes = std::max(shape.minElementBytes, shape.loadedBytes);
  int64_t held = limitHeld(64 / (fields.vector * bytes));
  int64_t mostHeld = limitHeld(32 / fields.vector);
  int64_t mostThreads = target.maxThreadsPerBlock;
  int64_t fewThreads = mostThreads / 2;
  // A sum of rows takes as many registers as the computation on a row, and
  // leaves no room for a second block with sums of its own.
  if (shape.numLongPartialRows > 0) {
    held = mostHeld = limitHeld(8 / fields.vector);
    if (getPressure(fields, shape, target) == Pressure::High)
      mostThreads = 16 * kWarp;
    fewThreads = mostThreads;
  }
  const bool waits = !fields.columns && !fields.threads && held > 1 &&
                     shape.rereadBytes > 0 && !isCostly(shape);
  if (pieces <= held * (waits ? fewThreads : mostThreads))
    return false;
  if (fields.threads)
    fewThreads = mostThreads = fields.threads;
  for (int64_t capacity :
       {held * fewThreads, held * mostThreads, mostHeld * mostThreads})
    for (int64_t blocks = 2; blocks <= target.maxBlocksPerCluster; blocks *= 2)
      if (pieces <= blocks * capacity) {
        fields.cluster = blocks;
        return true;
      }
  return true;
}

/// Chooses several rows to a block, for rows too short to keep a block busy.
/// Each row is held by a power of two of threads.
void chooseShortRows(ScheduleFields &fields, int64_t pieces, int64_t threads,
                     int64_t held = 2) {
  int64_t perRow = llvm::PowerOf2Ceil(pieces);
  if (!fields.columns)
    fields.columns = fields.getBlocks() * perRow * fields.vector;
  if (!fields.threads && fields.rows)
    threads =
        std::min<int64_t>(threads, llvm::alignTo(fields.rows * perRow, kWarp));
  if (!fields.threads)
    fields.threads = threads;
  int64_t threadRows = std::max<int64_t>(1, fields.threads / perRow);
  // Two rows to a thread keep more loads in flight.
  if (!fields.rows)
    fields.rows = held * threadRows;
}

/// Chooses the schedule of a kernel in which one program combines all rows.
/// There are few rows, one for each program of the kernel before, and the many
/// threads of a block share them out for a few columns.
void chooseCombinedRows(ScheduleFields &fields, const KernelShape &shape) {
  if (!fields.vector)
    fields.vector = 1;
  // The least that memory gives at a time: so there are blocks for all
  // multiprocessors, and each has as many rows under way.
  constexpr int64_t kSectorElements = 8;
  if (!fields.columns)
    fields.columns = std::min<int64_t>(kSectorElements,
                                       llvm::PowerOf2Ceil(shape.rowLength)) *
                     fields.vector;
  if (!fields.threads)
    fields.threads = 16 * kWarp;
  int64_t threadRows =
      std::max<int64_t>(1, fields.threads * fields.vector / fields.columns);
  // Several rows to a thread keep as many loads in flight.
  if (!fields.rows)
    fields.rows = 4 * threadRows;
}

/// Chooses the stages of loads. Where registers hold more than one sum, the
/// next rows are better off in shared memory; otherwise they are loaded faster
/// into registers. So are those of a formula that computes much, as long as
/// its threads have the registers.
int64_t chooseStages(const ScheduleFields &fields, const KernelShape &shape,
                     const Target &target) {
  ScheduleFields ahead = fields, staged = fields;
  ahead.stages = 2;
  staged.stages = 3;
  bool isWide = fields.vector * shape.minElementBytes >= 4;
  bool hasSums = shape.numLongPartialRows > 1;
  const bool fits =
      isCrowded(shape) &&
      estimateSummingRegisters(ahead, shape) <= getAvailableRegisters(ahead);
  return isWide && hasSums && !fits && fields.rows == 1 &&
                 haveRoom(fields.persistent, getStagedBytes(staged, shape),
                          target)
             ? staged.stages
             : ahead.stages;
}

/// Packs several rows into a block, where each row keeps `fields.threads` busy,
/// up to `most` threads to a multiprocessor: each block leaves a row of sums,
/// so fewer blocks are better. Short rows share blocks of 256 threads, other
/// rows share one block; where no multiple of a row's threads comes near
/// `most`, each row keeps a block of its own.
void packSummedRows(ScheduleFields &fields, const KernelShape &shape,
                    int64_t most) {
  const bool isShort = fields.threads <= 4 * kWarp;
  if (!isShort && isCostly(shape))
    return;
  const int64_t rows = (isShort ? 8 * kWarp : most) / fields.threads;
  const int64_t fewest = isShort ? 0 : most - 2 * kWarp;
  if (rows < 2 || rows * fields.threads < fewest)
    return;
  ScheduleFields packed = fields;
  packed.rows = rows;
  packed.threads *= rows;
  packed.persistent = most / packed.threads;
  if (hasScratchRoom(packed, shape, {rows, fields.threads, /*blocks=*/1}))
    fields = packed;
}

/// How many threads of a multiprocessor have registers for sums and for `held`
/// vectors, both of the current row and of the next one.
int64_t countSummingThreads(const ScheduleFields &fields, Pressure pressure,
                            int64_t held) {
  if (pressure == Pressure::High || (held > 1 && held * fields.vector > 8))
    return 16 * kWarp;
  if (pressure == Pressure::Medium)
    return 24 * kWarp;
  return held > 1 ? 28 * kWarp : 32 * kWarp;
}

/// How many blocks of a multiprocessor have registers, where threads load
/// elements one by one, whose rules above are for vectors. The assembler makes
/// do with a little less than is expected.
int64_t countBlocksOfSingles(const ScheduleFields &fields,
                             const KernelShape &shape) {
  constexpr int64_t mostThreads = 1536;
  ScheduleFields one = fields;
  one.persistent = 1;
  one.stages = 2;
  double registers = estimateRegisters(one, shape);
  auto blocks = static_cast<int64_t>(
      std::round(kRegistersPerMultiprocessor / (registers * fields.threads)));
  return std::clamp<int64_t>(
      blocks, 1, std::max<int64_t>(1, mostThreads / fields.threads));
}

/// Chooses the schedule of a kernel that keeps sums of rows beside the current
/// row: as many threads as the registers for both allow, and blocks that fill
/// the multiprocessor with such threads. Under medium pressure that is 768
/// threads with one vector of each row or, for longer rows, 512 threads with
/// two; under high pressure, 512 threads with one.
void chooseSummedRows(ScheduleFields &fields, int64_t pieces,
                      const KernelShape &shape, const Target &target) {
  const Pressure pressure = getPressure(fields, shape, target);
  const bool isHigh = pressure == Pressure::High;
  const bool isFree =
      !fields.rows && !fields.threads && !fields.columns && !fields.persistent;
  if (pieces <= kWarp) {
    chooseShortRows(fields, pieces, /*threads=*/8 * kWarp,
                    /*held=*/isHigh ? 1 : 2);
  } else {
    if (!fields.rows)
      fields.rows = 1;
    int64_t mostHeld = std::max<int64_t>(1, (isHigh ? 8 : 16) / fields.vector);
    int64_t most =
        pieces <= 16 * kWarp || isHigh ? 16 * kWarp : target.maxThreadsPerBlock;
    if (pressure == Pressure::Medium && pieces <= 32 * kWarp)
      most = pieces <= 24 * kWarp ? 12 * kWarp : 16 * kWarp;
    // Of loads of single elements a thread has several.
    if (fields.vector == 1 && pieces <= 32 * kWarp)
      most = std::min(most, 8 * kWarp);
    chooseRowThreads(fields, pieces, most, mostHeld);
  }
  int64_t held = fields.rows * fields.columns /
                 (fields.getBlocks() * fields.threads * fields.vector);
  if (isFree && held == 1 && fields.rows == 1 && !fields.cluster)
    packSummedRows(fields, shape, (isHigh ? 16 : 24) * kWarp);
  // A loop keeps its sums in memory.
  Pressure needed = isLoop(fields, shape) ? Pressure::Low : pressure;
  if (!fields.persistent)
    fields.persistent =
        fields.vector == 1 && !isLoop(fields, shape)
            ? countBlocksOfSingles(fields, shape)
            : std::max<int64_t>(1, countSummingThreads(fields, needed, held) /
                                       fields.threads);
  if (!fields.stages && !isLoop(fields, shape))
    fields.stages = chooseStages(fields, shape, target);
}

/// Chooses the schedule of a kernel of row vectors alone: a single row, whose
/// tiles are shared out among blocks.
void chooseSingleRow(ScheduleFields &fields, int64_t pieces) {
  if (!fields.rows)
    fields.rows = 1;
  if (!fields.threads)
    fields.threads = std::min<int64_t>(8 * kWarp, llvm::alignTo(pieces, kWarp));
  if (!fields.columns)
    fields.columns = fields.threads * fields.vector;
}

} // namespace

void bastile::chooseForGPU(ScheduleFields &fields, const KernelShape &shape,
                           const Target &target) {
  if (shape.numCombinedRows > 0) {
    if (!fields.persistent)
      fields.persistent = 1;
    return chooseCombinedRows(fields, shape);
  }
  if (!fields.vector)
    fields.vector = shape.chooseVector(target.vectorBytes);
  if (shape.band)
    return chooseBand(fields, shape);
  int64_t span = shape.getSpan(fields.vector);
  int64_t pieces = llvm::divideCeil(span, fields.vector);
  if (fields.columns)
    pieces = llvm::divideCeil(std::min(fields.columns, span), fields.vector);
  if (shape.leading == 0)
    return chooseSingleRow(fields, pieces);
  // A row is swept rather than held in registers where more than two reductions
  // need those, or where the first sweep reads nothing but what all rows share.
  bool isSwept = shape.numReductions > 2 ||
                 (shape.startsWithShared && shape.numSweeps == 2 &&
                  shape.numLongPartialRows == 0);
  const bool isFree = !fields.columns && !fields.threads;
  if (isSwept && isFree && shape.rowLength > KernelShape::kMostElementsHeld) {
    if (shape.combinesLongRows() && !fields.persistent)
      fields.persistent = 1;
    return chooseLoop(fields, shape, target);
  }
  // Up to 64 elements a thread, which leaves room for the intermediate values,
  // and up to 16 vectors, each of which takes an address.
  const int64_t mostHeld = std::min<int64_t>(16, 64 / fields.vector);
  if (!fields.cluster && shape.numReductions > 0 &&
      chooseCluster(fields, pieces, shape, target)) {
    // A row too long for one block is swept as well where two reductions need
    // it and it is one tensor's, or they are one in a sweep, where it is
    // misaligned, or no cluster holds it. In small pieces, sweeps take longer
    // than blocks wait for each other.
    constexpr int64_t mostOfCostly = 2560;
    // A later sweep computes a formula again, a third one costs too much.
    const bool isBetterShared =
        isCostly(shape) && (pieces <= mostOfCostly || shape.numSweeps > 2);
    const bool isBetterSwept =
        (!shape.isPiecemeal(fields.vector) &&
         ((shape.numReductions > 1 &&
           (shape.loadsOneTensor() || shape.sweepsSaveReductions())) ||
          shape.isMisaligned(fields.vector))) ||
        (!fields.cluster && pieces > mostHeld * target.maxThreadsPerBlock);
    if (isBetterSwept && isFree && !isBetterShared && !fields.stages &&
        shape.rereadBytes > 0 && shape.numLongPartialRows == 0 &&
        chooseKeptRows(fields, shape, target))
      return;
  }
  // From here on, `pieces` is what one block holds.
  pieces = llvm::divideCeil(pieces, fields.getBlocks());
  if (shape.numLongPartialRows > 0)
    return chooseSummedRows(fields, pieces, shape, target);
  if (pieces <= kWarp) {
    // Several tensors of a row keep enough loads in flight for what a costly
    // formula computes.
    const bool isReduced = shape.numReductions > 0;
    const bool isBusy = isReduced && isCostly(shape) && !shape.loadsOneTensor();
    chooseShortRows(fields, pieces, /*threads=*/(isReduced ? 8 : 4) * kWarp,
                    /*held=*/isBusy ? 1 : 2);
    return;
  }
  if (!fields.rows)
    fields.rows = 1;
  if (shape.numReductions == 0) {
    chooseTileThreads(fields, pieces, shape);
    return;
  }
  const Prefer prefer =
      shape.isPiecemeal(fields.vector) && shape.fitsRegister(fields.vector)
          ? Prefer::Fewest
          : Prefer::Most;
  // A row stays in registers as long as it fits; few vectors to a thread are
  // tried first.
  int64_t fewThreads = 16 * kWarp;
  if (pieces <= 16 * kWarp)
    fewThreads = pieces <= 8 * kWarp ? 4 * kWarp : 8 * kWarp;
  if (pieces <= fewThreads * 4) {
    chooseRowThreads(fields, pieces, fewThreads, /*maxPieces=*/4, prefer);
    return;
  }
  for (int64_t held = 4; held <= mostHeld; held *= 2) {
    if (pieces > held * target.maxThreadsPerBlock)
      continue;
    chooseRowThreads(fields, pieces, target.maxThreadsPerBlock, held, prefer);
    return;
  }
  // Otherwise a loop sweeps the row in tiles of moderate size.
  if (!fields.threads)
    fields.threads = 16 * kWarp;
  if (!fields.columns)
    fields.columns = 4 * fields.getBlocks() * fields.threads * fields.vector;
}

/// Has a multiprocessor work on several rows of a costly formula where one
/// block with a row would take most of its registers: while the threads wait
/// for a reduction, no other row is computed on. Several blocks of few threads
/// share the row, or a loop takes it from shared memory once more, where it
/// finds sums together with the maximum that they wait for.
static void overlapHeldRows(ScheduleFields &fields, const KernelShape &shape,
                            const Target &target) {
  constexpr int64_t manyBytes = 64, manyThreads = 16 * kWarp;
  constexpr int64_t fewThreads = 8 * kWarp, fewOfSeveral = 16;
  const bool isBig =
      fields.threads > manyThreads ||
      fields.columns / fields.threads * shape.minElementBytes >= manyBytes;
  if (shape.combinesLongRows() || fields.getBlocks() > 1 || !isBig ||
      shape.keptBytes <= shape.loadedBytes)
    return;
  ScheduleFields other;
  other.vector = fields.vector;
  if (shape.numSweeps == 2 && shape.sweepsSaveReductions() &&
      shape.rereadBytes > 0 && fields.threads <= manyThreads &&
      chooseKeptRows(other, shape, target)) {
    fields = other;
    chooseReread(fields, shape, target);
    return;
  }
  const int64_t span = shape.getSpan(fields.vector);
  // Two blocks hold more of one tensor in each thread. More of them would hold
  // as much of a longer row, where formulas have been seen to spill that.
  constexpr int64_t mostOfMuch = 2;
  int64_t fewElements = std::max(fewOfSeveral, manyBytes / shape.loadedBytes);
  auto countBlocks = [&] {
    return static_cast<int64_t>(
        llvm::PowerOf2Ceil(llvm::divideCeil(span, fewThreads * fewElements)));
  };
  if (countBlocks() > mostOfMuch)
    fewElements = fewOfSeveral;
  const int64_t blocks = countBlocks();
  if (blocks < 2 || blocks > target.maxBlocksPerCluster)
    return;
  other = ScheduleFields();
  other.vector = fields.vector;
  other.rows = 1;
  other.cluster = blocks;
  chooseRowThreads(other, llvm::divideCeil(span, blocks * fields.vector),
                   fewThreads, fewElements / fields.vector);
  fields = other;
}

/// Has two blocks of half the threads add up rows of a costly formula where one
/// block would wait alone for the other blocks of its row.
static void halveSummingBlocks(ScheduleFields &fields, const KernelShape &shape,
                               const Target &target) {
  constexpr int64_t threads = 16 * kWarp, mostBlocks = 4;
  constexpr int64_t fewestBytes = 8, fewestBytesHeld = 10;
  if (shape.numLongPartialRows == 0 || fields.persistent != 1 ||
      fields.getBlocks() == 1 || fields.getBlocks() > mostBlocks ||
      2 * fields.getBlocks() > target.maxBlocksPerCluster ||
      fields.threads != threads ||
      fields.columns / (fields.getBlocks() * threads) * shape.minElementBytes <
          fewestBytesHeld)
    return;
  fields.cluster *= 2;
  fields.threads /= 2;
  fields.persistent = 2;
  if (fields.vector % 2 == 0 &&
      fields.vector * shape.minElementBytes > fewestBytes)
    fields.vector /= 2;
}

/// Changes what was chosen, where all fields were open, for a costly formula.
static void overlapCostlyRows(ScheduleFields &fields,
                              const ScheduleFields &given,
                              const KernelShape &shape, const Target &target) {
  const bool isFree = !given.cluster && !given.threads && !given.columns &&
                      !given.persistent && !given.stages && !given.rows &&
                      !given.vector;
  if (!isFree || !isCostly(shape) || shape.numReductions == 0 || shape.band ||
      !shape.groups.empty() || fields.rows != 1 || isLoop(fields, shape))
    return;
  overlapHeldRows(fields, shape, target);
  halveSummingBlocks(fields, shape, target);
}

void bastile::completeForGPU(ScheduleFields &fields, const KernelShape &shape,
                             const Target &target, MLIRContext *context) {
  const ScheduleFields given = fields;
  chooseForGPU(fields, shape, target);
  chooseReread(fields, shape, target);
  relieveRegisters(fields, given, shape, target);
  relieveSpilled(fields, given, shape, target);
  overlapCostlyRows(fields, given, shape, target);
  if (shape.groups.empty() || isValidSchedule(fields, shape, target, context))
    return;
  if (auto found = findScheduleForGroups(given, shape, target, context)) {
    fields = *found;
    chooseReread(fields, shape, target);
  }
}
