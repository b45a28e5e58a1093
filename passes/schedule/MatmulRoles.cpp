//===- MatmulRoles.cpp - Schedules of products whose warps have roles -----===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/MatmulRules.h"

#include "dialect/ElementBytes.h"
#include "passes/schedule/ThreadGrid.h"

using namespace mlir;
using namespace bastile;

/// Threads of a warpgroup, and rows that it multiplies.
static constexpr int64_t kWarpgroup = 4 * ThreadGrid::kWarp, kRows = 64;
/// Past this, the sums of a thread leave no registers for what follows them.
static constexpr int64_t kMostSums = 128;

/// Bytes of shared memory: the stages of the factors, and two slots for
/// results, whose rows have at most as many bytes.
static int64_t getSharedBytes(const MatmulFields &fields,
                              const MatmulShape &shape) {
  constexpr int64_t slots = 2, rowBytes = 128;
  return getStagedBytes(fields, shape) + slots * fields.rows * rowBytes;
}

static int64_t getSums(const MatmulFields &fields, const MatmulShape &shape) {
  return fields.columns * shape.numDots * kRows / kWarpgroup;
}

void bastile::completeSpecialized(MatmulFields &fields,
                                  const MatmulFields &chosen,
                                  const MatmulShape &shape,
                                  const Target &target) {
  const bool hasColumns = fields.columns > 0, hasStages = fields.stages > 0;
  if (!fields.rows)
    fields.rows =
        fields.threads
            ? std::max<int64_t>(1, fields.threads / kWarpgroup - 1) * kRows
            : chosen.rows;
  if (!fields.threads)
    fields.threads = (fields.rows / kRows + 1) * kWarpgroup;
  auto choose = [&](auto field) {
    fields.*field = fields.*field ? fields.*field : chosen.*field;
  };
  choose(&MatmulFields::columns);
  choose(&MatmulFields::depth);
  choose(&MatmulFields::vector);
  choose(&MatmulFields::stages);
  choose(&MatmulFields::roles);
  choose(&MatmulFields::cluster);
  auto hasRoom = [&] {
    return getSharedBytes(fields, shape) <= target.maxSharedBytesPerBlock;
  };
  while (!hasStages && fields.stages > 2 && !hasRoom())
    --fields.stages;
  constexpr int64_t leastColumns = 64;
  while (!hasColumns && fields.columns > leastColumns && !hasRoom())
    fields.columns /= 2;
}

LogicalResult
bastile::verifySpecialized(function_ref<InFlightDiagnostic()> error,
                           const MatmulFields &fields, const MatmulShape &shape,
                           const Target &target) {
  if (!chooseMatmul(shape, target, fields.roles).isSpecialized())
    return error() << "warps have roles, and blocks clusters, where products "
                      "of 16-bit matrices run on warpgroups and lie 16 bytes "
                      "apart in memory; leave out 'roles' and 'cluster'";
  if (fields.vector != 2)
    return error() << "tensor cores give each thread 2 neighbouring sums; "
                      "leave out 'vector'";
  if (fields.stages < 2)
    return error() << "warpgroups multiply what was copied ahead; use 2 or "
                      "more 'stages'";
  constexpr int64_t mostWarpgroups = 2;
  if (const int64_t warpgroups = fields.threads / kWarpgroup - 1;
      fields.threads % kWarpgroup != 0 || warpgroups < 1 ||
      warpgroups > mostWarpgroups || fields.rows != warpgroups * kRows)
    return error() << fields.threads << " threads and " << fields.rows
                   << " rows are not one or two warpgroups of " << kWarpgroup
                   << " threads with " << kRows << " rows each, and "
                   << kWarpgroup << " threads that copy; use " << 2 * kRows
                   << " 'rows' and leave out 'threads'";
  if (fields.cluster != 1 && fields.cluster != 2 && fields.cluster != 4)
    return error() << "'cluster' is " << fields.cluster
                   << ", not 1, 2 or 4 blocks";
  constexpr int64_t panel = 64;
  for (auto [name, size] :
       {std::pair("depth", fields.depth), std::pair("columns", fields.columns)})
    if (size % panel != 0)
      return error() << "'" << name << "' is " << size
                     << ", no multiple of the " << panel
                     << " elements of a row in shared memory";
  if (int64_t sums = getSums(fields, shape); sums > kMostSums)
    return error() << sums << " sums a thread are more than the " << kMostSums
                   << " that registers hold; use fewer 'columns'";
  if (int64_t bytes = getSharedBytes(fields, shape);
      bytes > target.maxSharedBytesPerBlock)
    return error() << bytes << " bytes of the factors in " << fields.stages
                   << " stages and of results are more than the "
                   << target.maxSharedBytesPerBlock
                   << " of a block's shared memory; use fewer 'stages' or "
                      "'columns'";
  return success();
}
