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

int64_t bastile::getWholeStages(const MatmulShape &shape) {
  constexpr int64_t wide = 128;
  return shape.whole * shape.numInner <= wide ? 2 : 1;
}

/// Bytes of shared memory: the stages of the factors, and two slots for
/// results, whose rows have at most as many bytes.
static int64_t getSharedBytes(const MatmulFields &fields,
                              const MatmulShape &shape) {
  constexpr int64_t slots = 2, rowBytes = 128;
  return getStagedBytes(fields, shape) + slots * fields.rows * rowBytes;
}

/// The numbers of 32 bits that a thread holds: sums, and what is streamed, once
/// more as a factor of half as many bits.
static int64_t getHeld(const MatmulFields &fields, const MatmulShape &shape) {
  const int64_t streamed =
      shape.isStreaming ? fields.depth * shape.numInner + fields.depth / 2 : 0;
  return (fields.columns * shape.numDots + streamed) * kRows / kWarpgroup;
}

static int64_t getWarpgroups(const MatmulFields &fields) {
  return fields.threads / kWarpgroup - 1;
}

/// Sums of two warpgroups may take most of the registers, where all that is
/// computed of them is streamed.
static int64_t getMostHeld(const MatmulFields &fields,
                           const MatmulShape &shape) {
  constexpr int64_t half = 128, most = 176;
  return getWarpgroups(fields) > 2 || !shape.isStreaming ? half : most;
}

bool bastile::fitsSharedMemory(const MatmulFields &fields,
                               const MatmulShape &shape, const Target &target) {
  return getSharedBytes(fields, shape) <= target.maxSharedBytesPerBlock;
}

bool bastile::fitsRegisters(const MatmulFields &fields,
                            const MatmulShape &shape) {
  return getHeld(fields, shape) <= getMostHeld(fields, shape);
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
  auto hasRoom = [&] { return fitsSharedMemory(fields, shape, target); };
  while (!hasStages && fields.stages > 2 && !hasRoom())
    --fields.stages;
  constexpr int64_t leastColumns = 64;
  while (!hasColumns && !shape.isStreaming && fields.columns > leastColumns &&
         !hasRoom())
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
  const int64_t warpgroups = getWarpgroups(fields);
  const int64_t mostWarpgroups = shape.isStreaming ? 3 : 2;
  if (fields.threads % kWarpgroup != 0 || warpgroups < 1 ||
      warpgroups > mostWarpgroups || fields.rows != warpgroups * kRows)
    return error() << fields.threads << " threads and " << fields.rows
                   << " rows are not 1 to " << mostWarpgroups
                   << " warpgroups of " << kWarpgroup << " threads with "
                   << kRows << " rows each, and " << kWarpgroup
                   << " threads that copy; use " << 2 * kRows
                   << " 'rows' and leave out 'threads'";
  if (shape.isStreaming && fields.cluster != 1)
    return error() << "a cluster of " << fields.cluster
                   << " blocks shares no factors where left factors are "
                      "computed; leave out 'cluster'";
  if (fields.cluster != 1 && fields.cluster != 2 && fields.cluster != 4)
    return error() << "'cluster' is " << fields.cluster
                   << ", not 1, 2 or 4 blocks";
  const int64_t unit = shape.isStreaming ? 16 : 64;
  for (auto [name, size] :
       {std::pair("depth", fields.depth), std::pair("columns", fields.columns)})
    if (size % unit != 0)
      return error() << "'" << name << "' is " << size << ", no multiple of "
                     << unit << " elements, "
                     << (shape.isStreaming ? "as products sum them"
                                           : "a row in shared memory");
  if (!fitsRegisters(fields, shape))
    return error() << getHeld(fields, shape)
                   << " numbers a thread are more than the "
                   << getMostHeld(fields, shape) << " that registers hold; use "
                   << (shape.isStreaming ? "less 'depth'" : "fewer 'columns'");
  if (int64_t bytes = getSharedBytes(fields, shape);
      bytes > target.maxSharedBytesPerBlock)
    return error() << bytes << " bytes of the factors in " << fields.stages
                   << " stages and of results are more than the "
                   << target.maxSharedBytesPerBlock
                   << " of a block's shared memory; use fewer 'stages' or "
                      "'columns'";
  return success();
}
