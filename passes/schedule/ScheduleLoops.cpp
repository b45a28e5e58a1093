//===- ScheduleLoops.cpp - Loops over long rows on GPUs -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

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
