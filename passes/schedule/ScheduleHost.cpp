//===- ScheduleHost.cpp - Choose the fields of a host's schedule ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/ScheduleFields.h"

#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace bastile;

namespace {

/// Ops on vectors that a program of the host is to have, unless that is pinned.
constexpr int64_t kMaxOpsOnHost = 256;
/// Ops for each element of a row beyond which a tile may be a single vector.
constexpr int64_t kManyOpsOnHost = 1024;
/// Ops of a program of the host whose tile was meant for a GPU's threads.
constexpr int64_t kMaxOpsOfThreads = 4096;

} // namespace

void bastile::completeForHost(ScheduleFields &fields, const KernelShape &shape,
                              const Target &target) {
  // Fields that are about a GPU's memory do nothing on the host, and are no
  // error.
  fields.stages = 0;
  fields.reread = tile::Reread::Unset;
  if (shape.combinesLongRows() && !fields.persistent)
    fields.persistent = 1;
  // On the host a thread's piece is one vector register of the type that is
  // computed in.
  if (!fields.vector)
    fields.vector = shape.getVector(target.vectorBytes * shape.minElementBytes /
                                    (shape.usesFloat64 ? 8 : 4));
  if (!fields.rows)
    fields.rows = 1;
  if (!fields.threads)
    fields.threads = 1;
  if (!fields.columns) {
    // Four registers for each value hide the latency of the arithmetic. Narrow
    // vectors get more, so that sums over long rows keep many partial sums,
    // unless much is computed: the code of a tile is as long as the tile. A row
    // that is added to other rows stays in registers if it can.
    int64_t pieces = llvm::divideCeil(shape.rowLength, fields.vector);
    int64_t held = std::max<int64_t>(4, 64 / fields.vector);
    if (!shape.hasPartialRows || shape.numReductions == 0)
      held = std::clamp<int64_t>(kMaxOpsOnHost / shape.numOps,
                                 shape.numOps > kManyOpsOnHost ? 1 : 4, held);
    // Many partial sums of long formulas are more than a program may unroll.
    held = std::min(
        held, std::max<int64_t>(1, getMaxUnrolledVectors(shape) / fields.rows));
    fields.columns = std::min(pieces, held) * fields.vector;
    fields.columns = llvm::alignTo(fields.columns, shape.getGroupColumns());
  }
  // A tile that was meant for many threads is too wide for one.
  const int64_t whole = std::lcm(fields.vector, shape.getGroupColumns());
  while (fields.threads > 1 &&
         countUnrolledOps(fields, shape) > kMaxOpsOfThreads &&
         fields.columns % (2 * whole) == 0)
    fields.columns /= 2;
}
