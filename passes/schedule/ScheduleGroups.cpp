//===- ScheduleGroups.cpp - Schedules for groups of columns and bands -----===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The heuristic chooses tiles for whole rows. Where groups of columns do not
// divide such a tile, the tile is some whole groups instead, or the whole row
// with the padding behind it. Where bands of rows are reduced, the tile is a
// band.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/ScheduleFields.h"

#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace bastile;

namespace {

/// Enumerates schedules and remembers the best.
class GroupSearch {
public:
  GroupSearch(const ScheduleFields &given, const KernelShape &shape,
              const Target &target, MLIRContext *context)
      : given(given), shape(shape), target(target), context(context) {}

  std::optional<ScheduleFields> run();

private:
  void tryThreads(int64_t threads, int64_t mostHeld);
  void tryColumns(ScheduleFields fields, int64_t columns, int64_t mostHeld);

  const ScheduleFields &given;
  const KernelShape &shape;
  const Target &target;
  MLIRContext *context;
  std::optional<ScheduleFields> best;
  /// The columns that tiles cover, and how many of them one thread holds.
  std::pair<int64_t, int64_t> bestCost;
};

void GroupSearch::tryColumns(ScheduleFields fields, int64_t columns,
                             int64_t mostHeld) {
  if (!fields.columns)
    fields.columns = columns;
  int64_t held = fields.columns / fields.threads;
  if (!fields.rows) {
    // A tile holds a whole band if it can, or a part that divides it.
    const int64_t band = std::max<int64_t>(1, shape.band);
    const int64_t most = mostHeld / std::max<int64_t>(1, held);
    fields.rows = std::clamp<int64_t>(most, 1, band);
    while (band % fields.rows != 0)
      --fields.rows;
  }
  if (held * fields.rows > mostHeld)
    return;
  std::pair<int64_t, int64_t> cost{
      llvm::alignTo(shape.rowLength, fields.columns), held};
  if (best && bestCost <= cost)
    return;
  if (!isValidSchedule(fields, shape, target, context))
    return;
  best = fields;
  bestCost = cost;
}

void GroupSearch::tryThreads(int64_t threads, int64_t mostHeld) {
  ScheduleFields fields = given;
  fields.threads = threads;
  if (!fields.vector)
    fields.vector = shape.getVector(target.vectorBytes);
  if (shape.combinesLongRows() && !fields.persistent)
    fields.persistent = std::max<int64_t>(1, 16 * kWarp / threads);
  int64_t atOnce = fields.getBlocks() * threads * fields.vector;
  tryColumns(fields, llvm::alignTo(shape.rowLength, atOnce), mostHeld);
  int64_t columns = std::lcm(shape.getGroupColumns(), atOnce);
  if (columns < shape.rowLength)
    tryColumns(fields, columns, mostHeld);
}

std::optional<ScheduleFields> GroupSearch::run() {
  // First what registers hold with ease, then all that they hold.
  for (int64_t mostHeld : {64, 256}) {
    for (int64_t threads = kWarp; threads <= target.maxThreadsPerBlock;
         threads += kWarp)
      if (!given.threads || given.threads == threads)
        tryThreads(threads, mostHeld);
    if (best)
      break;
  }
  return best;
}

} // namespace

std::optional<ScheduleFields>
bastile::findScheduleForGroups(const ScheduleFields &fields,
                               const KernelShape &shape, const Target &target,
                               MLIRContext *context) {
  return GroupSearch(fields, shape, target, context).run();
}

/// The most threads, in whole warps, that divide the tile's rows evenly among
/// them; 0 if there are none.
static int64_t chooseBandThreads(const ScheduleFields &fields) {
  int64_t pieces = std::max<int64_t>(1, fields.columns / fields.vector);
  for (int64_t threads = 256; threads >= kWarp; threads /= 2)
    if (threads % pieces == 0 && fields.rows % (threads / pieces) == 0)
      return threads;
  return 0;
}

void bastile::chooseBand(ScheduleFields &fields, const KernelShape &shape) {
  if (!fields.rows)
    fields.rows = shape.band;
  const bool isFree = !fields.columns;
  if (isFree) {
    fields.columns = std::min<int64_t>(
        128,
        llvm::PowerOf2Ceil(llvm::divideCeil(shape.rowLength, fields.vector)) *
            fields.vector);
    fields.columns = llvm::alignTo(fields.columns, shape.getGroupColumns());
  }
  if (fields.threads)
    return;
  fields.threads = chooseBandThreads(fields);
  if (fields.threads)
    return;
  // Where no number of warps divides the rows, the warps lie along the columns.
  if (isFree)
    fields.columns = std::lcm(fields.columns, kWarp * fields.vector);
  fields.threads = llvm::alignTo(fields.columns / fields.vector, kWarp);
}
