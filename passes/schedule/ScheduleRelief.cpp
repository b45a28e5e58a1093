//===- ScheduleRelief.cpp - Where registers do not hold a GPU's row -------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A loop goes through a long row in tiles. A row that is held all the same, but
// whose threads would spill, is chosen a schedule for again in which each
// thread has less.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/RowsModel.h"
#include "passes/schedule/ScheduleFields.h"
#include "passes/schedule/ThreadGrid.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

/// Shared memory of a block beside what it keeps of rows, in bytes: the
/// system's share, and the partial results of its warps.
static constexpr int64_t kOtherSharedBytes = 2 << 10;

int64_t bastile::findThreads(const ScheduleFields &fields, int64_t pieces,
                             int64_t minThreads, int64_t maxThreads,
                             int64_t maxPieces, Prefer prefer) {
  int64_t best = 0, bestPadded = 0;
  for (int64_t threads = minThreads; threads <= maxThreads; threads += kWarp) {
    if (fields.threads && fields.threads != threads)
      continue;
    int64_t padded = llvm::alignTo(pieces, threads);
    if (padded > maxPieces * threads)
      continue;
    bool isAsGood = prefer == Prefer::Most && padded == bestPadded;
    if (!best || padded < bestPadded || isAsGood) {
      best = threads;
      bestPadded = padded;
    }
  }
  return best;
}

/// Whether the shared memory of a row's blocks has room for what later sweeps
/// read again of the row.
static bool canKeepRows(const ScheduleFields &fields, const KernelShape &shape,
                        const Target &target) {
  ThreadGrid grid{1, fields.threads, fields.getBlocks()};
  int64_t scratch = getScratchBytes(fields, shape, grid);
  return getKeptBytes(fields, shape) + scratch <= target.maxSharedBytesPerBlock;
}

bool bastile::haveRoom(int64_t blocks, int64_t bytes, const Target &target) {
  return blocks * (bytes + kOtherSharedBytes) <= target.maxSharedBytesPerBlock;
}

/// Sets threads, from `minThreads` to `maxThreads`, and tiles, of `elements` a
/// thread, of a loop that sweeps rows which `blocks` blocks share.
static void setLoop(ScheduleFields &fields, const KernelShape &shape,
                    int64_t blocks, int64_t elements, int64_t minThreads,
                    int64_t maxThreads) {
  int64_t parts =
      llvm::divideCeil(shape.getSpan(fields.vector), blocks * elements);
  fields.cluster = blocks;
  fields.threads = 0;
  fields.threads = findThreads(fields, parts, minThreads, maxThreads,
                               /*maxPieces=*/parts);
  fields.columns = blocks * fields.threads * elements;
}

/// Chooses a loop that sweeps rows which `blocks` blocks share, in tiles of
/// `perThread` elements a thread.
static void chooseLoopThreads(ScheduleFields &fields, const KernelShape &shape,
                              const Target &target, int64_t blocks,
                              int64_t perThread) {
  const int64_t elements =
      fields.vector * std::clamp<int64_t>(perThread / fields.vector, 1, 8);
  setLoop(fields, shape, blocks, elements, 8 * kWarp, 8 * kWarp);
  if (haveRoom(3, getKeptBytes(fields, shape), target))
    return;
  // So many threads that little of the last tile lies beyond the row.
  const ScheduleFields few = fields;
  setLoop(fields, shape, blocks, elements, 12 * kWarp, 16 * kWarp);
  if (haveRoom(2, getKeptBytes(few, shape), target) &&
      !haveRoom(2, getKeptBytes(fields, shape), target))
    fields = few;
}

/// Whether blocks of a loop can keep in shared memory what later sweeps read
/// again, with room for `atOnce` blocks on a multiprocessor.
static bool keepsRows(const ScheduleFields &fields, const KernelShape &shape,
                      const Target &target, int64_t atOnce) {
  return isLoop(fields, shape) &&
         haveRoom(atOnce, getKeptBytes(fields, shape), target) &&
         canKeepRows(fields, shape, target);
}

/// Chooses the fewest blocks to a row with which a multiprocessor has room for
/// `atOnce` blocks. Returns false if there is no such number.
static bool chooseSharers(ScheduleFields &fields, const KernelShape &shape,
                          const Target &target, int64_t atOnce,
                          int64_t perThread) {
  for (int64_t blocks = 1; blocks <= target.maxBlocksPerCluster; blocks *= 2) {
    chooseLoopThreads(fields, shape, target, blocks, perThread);
    if (keepsRows(fields, shape, target, atOnce))
      return true;
  }
  return false;
}

void bastile::chooseLoop(ScheduleFields &fields, const KernelShape &shape,
                         const Target &target) {
  constexpr int64_t kPerThread = 16;
  if (!fields.rows)
    fields.rows = 1;
  if (fields.cluster)
    return chooseLoopThreads(fields, shape, target, fields.cluster, kPerThread);
  if (chooseSharers(fields, shape, target, /*atOnce=*/2, kPerThread))
    return;
  int64_t rowBytes = shape.rowLength * shape.minElementBytes;
  int64_t blocks = 1;
  while (blocks < std::min<int64_t>(4, target.maxBlocksPerCluster) &&
         target.residentBlocks / blocks * rowBytes > target.cachedRowBytes)
    blocks *= 2;
  chooseLoopThreads(fields, shape, target, blocks, kPerThread);
}

bool bastile::chooseKeptRows(ScheduleFields &fields, const KernelShape &shape,
                             const Target &target) {
  constexpr int64_t kBytesPerThread = 32;
  ScheduleFields loop = fields;
  if (!loop.rows)
    loop.rows = 1;
  const bool isOneTensor = shape.loadsOneTensor();
  bool isKept = false;
  if (isOneTensor) {
    setLoop(loop, shape, /*blocks=*/1, loop.vector, 12 * kWarp, 16 * kWarp);
    isKept = keepsRows(loop, shape, target, /*atOnce=*/3);
  }
  const int64_t fewest = fields.cluster ? 2 : 1;
  for (int64_t atOnce = isOneTensor ? 3 : 2; !isKept && atOnce >= fewest;
       --atOnce)
    isKept = chooseSharers(loop, shape, target, atOnce,
                           kBytesPerThread / shape.minElementBytes);
  if (isKept)
    fields = loop;
  return isKept;
}

void bastile::chooseReread(ScheduleFields &fields, const KernelShape &shape,
                           const Target &target) {
  if (fields.reread != tile::Reread::Unset || !isLoop(fields, shape) ||
      shape.rereadBytes == 0)
    return;
  fields.reread = canKeepRows(fields, shape, target) ? tile::Reread::Shared
                                                     : tile::Reread::Memory;
}

/// By how many times a thread needs more registers than it can have.
static double getExcess(const ScheduleFields &fields,
                        const KernelShape &shape) {
  const double needed = shape.numLongPartialRows > 0
                            ? estimateSummingRegisters(fields, shape)
                            : estimateRegisters(fields, shape);
  return needed / getAvailableRegisters(fields);
}

/// By how many times a thread that keeps sums of rows needs more registers than
/// it can have, those included that it needs for much that outlives a
/// reduction.
static double getLongExcess(const ScheduleFields &fields,
                            const KernelShape &shape) {
  return (estimateSummingRegisters(fields, shape) +
          estimateOutlivingRegisters(fields, shape)) /
         getAvailableRegisters(fields);
}

namespace {

/// Tries schedules in place of one whose threads would spill, and keeps the one
/// that needs the fewest of the registers that it has.
class Relief {
public:
  using Excess = double (*)(const ScheduleFields &, const KernelShape &);

  Relief(ScheduleFields &fields, const ScheduleFields &given,
         const KernelShape &shape, const Target &target, Excess getExcess)
      : fields(fields), given(given), shape(shape), target(target),
        getExcess(getExcess), least(getExcess(fields, shape)) {}

  /// The excess of the schedule that is kept.
  double getLeast() const { return least; }

  /// Whether a vector may be halved at all: of wide types, loads and addresses
  /// take more than spills.
  bool mayHalve() const {
    constexpr int64_t wide = 4;
    return !given.vector && fields.vector % 2 == 0 &&
           shape.minElementBytes < wide;
  }
  /// Whether loads and addresses of narrower vectors take more than a few
  /// spills.
  bool isNarrow() const {
    constexpr int64_t fewestBytes = 8;
    return fields.vector * shape.minElementBytes <= fewestBytes;
  }

  /// What was given, with such vectors and, if more than one, so many blocks to
  /// a row.
  ScheduleFields open(int64_t vector, int64_t blocks) const {
    ScheduleFields other = given;
    other.vector = vector;
    if (blocks > 1)
      other.cluster = blocks;
    return other;
  }
  /// Completes `other`, and keeps it if it is better and no loop and, where
  /// they are counted, has so many blocks to a row.
  void tryOther(ScheduleFields other, std::optional<int64_t> blocks = {}) {
    chooseForGPU(other, shape, target);
    chooseReread(other, shape, target);
    const double excess = getExcess(other, shape);
    if (isLoop(other, shape) || excess >= least ||
        (blocks && other.getBlocks() != *blocks))
      return;
    least = excess;
    fields = other;
  }

private:
  ScheduleFields &fields;
  const ScheduleFields &given;
  const KernelShape &shape;
  const Target &target;
  Excess getExcess;
  double least;
};

} // namespace

/// Whether threads hold rows that are reduced.
static bool holdsReducedRows(const ScheduleFields &fields,
                             const KernelShape &shape) {
  return shape.numReductions > 0 && !shape.band && !isLoop(fields, shape);
}

void bastile::relieveRegisters(ScheduleFields &fields,
                               const ScheduleFields &given,
                               const KernelShape &shape, const Target &target) {
  // Of rows that are not added up, the registers are an upper bound, and what
  // blocks of a cluster wait for each other costs as much as many spills.
  const bool isSumming = shape.numLongPartialRows > 0;
  const double mostExcess = isSumming ? 0.95 : 1.05;
  const double mostOfBlocks = isSumming ? 0.95 : 1.5;
  constexpr int64_t mostThreads = 512;
  if (!holdsReducedRows(fields, shape))
    return;
  // Where few values are alive at once, the bounds on bytes hold, unless they
  // are far from what is expected.
  constexpr double farExcess = 1.2;
  Relief relief(fields, given, shape, target, getExcess);
  if (!isCrowded(shape) && !(isSumming && relief.getLeast() > farExcess))
    return;
  const ScheduleFields chosen = fields;
  SmallVector<int64_t> vectors{chosen.vector};
  if (relief.mayHalve() && !relief.isNarrow())
    vectors.push_back(chosen.vector / 2);
  // Single elements leave room for several blocks, unless much else is held.
  const bool canShare = !given.cluster && chosen.rows == 1 &&
                        (chosen.vector > 1 || chosen.persistent == 1);
  const int64_t mostBlocks =
      canShare ? target.maxBlocksPerCluster : chosen.getBlocks();
  for (int64_t blocks = chosen.getBlocks(); blocks <= mostBlocks; blocks *= 2)
    for (int64_t vector : vectors) {
      if (relief.getLeast() <=
          (blocks > chosen.getBlocks() ? mostOfBlocks : mostExcess))
        return;
      // That was chosen already.
      if (blocks == chosen.getBlocks() && vector == chosen.vector)
        continue;
      relief.tryOther(relief.open(vector, blocks));
    }
  // Blocks of a row that cannot be shared by more of them have a vector for
  // each thread.
  const int64_t vectorsOfBlock = llvm::divideCeil(
      shape.getSpan(fields.vector), fields.getBlocks() * fields.vector);
  if (relief.getLeast() <= mostOfBlocks || given.threads ||
      fields.getBlocks() == 1 || vectorsOfBlock > mostThreads)
    return;
  ScheduleFields other = relief.open(fields.vector, fields.getBlocks());
  other.threads = llvm::alignTo(vectorsOfBlock, kWarp);
  relief.tryOther(other);
}

void bastile::relieveSpilled(ScheduleFields &fields,
                             const ScheduleFields &given,
                             const KernelShape &shape, const Target &target) {
  if (shape.numLongPartialRows == 0 || !holdsReducedRows(fields, shape) ||
      !isCrowded(shape))
    return;
  const ScheduleFields chosen = fields;
  // How many blocks of single elements have room was another estimate.
  constexpr double mostOfSingles = 1.1;
  if (chosen.vector == 1 && chosen.persistent > 1) {
    if (!given.persistent && getExcess(chosen, shape) > mostOfSingles)
      fields.persistent = 1;
    return;
  }
  Relief relief(fields, given, shape, target, getLongExcess);
  constexpr double mostExcess = 0.95, mostOfNarrow = 1.05, mostOfBlocks = 1;
  const bool mayHalve = relief.mayHalve(), isNarrow = relief.isNarrow();
  int64_t blocks = chosen.getBlocks();
  if (mayHalve && relief.getLeast() > (isNarrow ? mostOfNarrow : mostExcess))
    relief.tryOther(relief.open(chosen.vector / 2, blocks), blocks);
  // What blocks of few threads spill costs less than that more of them wait for
  // each other.
  constexpr int64_t fewThreads = 12 * kWarp;
  blocks *= 2;
  if (relief.getLeast() <= mostOfBlocks || given.cluster || chosen.rows != 1 ||
      chosen.threads <= fewThreads || blocks > target.maxBlocksPerCluster)
    return;
  relief.tryOther(relief.open(chosen.vector, blocks), blocks);
  if (mayHalve && !isNarrow && relief.getLeast() > mostExcess)
    relief.tryOther(relief.open(chosen.vector / 2, blocks), blocks);
}
