//===- ScheduleRules.cpp - What schedules a target can run ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/ScheduleFields.h"

#include "passes/schedule/GroupChunks.h"
#include "passes/schedule/KernelSchedule.h"
#include "passes/schedule/ThreadGrid.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

namespace {

/// Past this, the vectors that a thread holds no longer fit its registers.
constexpr int64_t kMaxElementsPerThread = 256;
/// The ops beyond which a program of the host takes many seconds to compile.
/// Tiles of few vectors may have more, which are the source's own ops, and so
/// may tiles that have to hold groups.
constexpr int64_t kMaxUnrolledOps = 16384;
constexpr int64_t kMaxUnrolledOpsOfGroups = 32768;
constexpr int64_t kFewPieces = 32;
/// Shared memory in which warps combine their results, in bytes. The code
/// declares it, of which every target takes as much; more has to be asked for
/// at launch.
constexpr int64_t kMaxStaticSharedBytes = 48 * 1024;

/// Checks that no group of columns extends beyond a tile or, in a cluster,
/// beyond the columns that the threads of a block hold at a time. A tile may
/// end within a group only where the tile ends behind the row.
LogicalResult verifyGroups(function_ref<InFlightDiagnostic()> error,
                           const ScheduleFields &fields,
                           const KernelShape &shape, int64_t threadColumns) {
  for (int64_t group : shape.groups) {
    if (group % fields.vector != 0)
      return error() << "a vector of " << fields.vector
                     << " does not divide a group of " << group << " columns";
    if (fields.columns % group != 0 && fields.columns < shape.rowLength)
      return error() << "a tile's " << fields.columns
                     << " columns do not divide into groups of " << group;
    int64_t atOnce = threadColumns * fields.vector;
    if (fields.getBlocks() > 1 && atOnce % group != 0)
      return error()
             << "the " << atOnce
             << " columns that the threads of a block have at a time do not "
                "divide into groups of "
             << group << ", which blocks of a cluster do not share";
  }
  return success();
}

} // namespace

/// Whether a kernel of `shape` can run on `target` by complete `fields`; if
/// not, `error` begins the diagnostic that says why.
static LogicalResult verifyRules(function_ref<InFlightDiagnostic()> error,
                                 const ScheduleFields &fields,
                                 const KernelShape &shape, const Target &target,
                                 MLIRContext *context) {
  if (shape.combinesLongRows() && !fields.persistent)
    return error() << "programs that combine rows are persistent; set "
                      "'persistent'";
  if (!shape.takesVectors(fields.vector, target.isHost()))
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
    const int64_t most = getMaxUnrolledVectors(shape);
    if (elements / fields.vector > most)
      return error() << "a tile of " << elements / fields.vector
                     << " vectors is more than the " << most
                     << " that the host unrolls of this kernel; use fewer "
                        "'rows' or 'columns', or a wider 'vector'";
    return verifyGroups(error, fields, shape, /*threadColumns=*/1);
  }

  if (fields.getStages() > 1) {
    if (!fields.persistent)
      return error() << "a program that is not persistent has no rows to load "
                        "ahead; leave out 'stages'";
    if (isLoop(fields, shape) || shape.band)
      return error() << "only programs that hold whole rows load the next ones "
                        "ahead; leave out 'stages'";
  }
  if (fields.getStages() > 2 && shape.isMisaligned(fields.vector))
    return error() << "a row of " << shape.rowLength << ", which the vector of "
                   << fields.vector
                   << " does not divide, is loaded ahead in 2 stages at most, "
                   << "not " << fields.stages << "; use fewer 'stages'";
  int64_t blocks = fields.getBlocks();
  if (blocks > 1 && target.maxBlocksPerCluster == 1)
    return error() << "it has no clusters, and the schedule asks for one of "
                   << blocks << " blocks; leave out 'cluster'";
  if (blocks > Target::kMostBlocksPerCluster)
    return error() << blocks << " blocks are more than the "
                   << Target::kMostBlocksPerCluster << " of a cluster";
  if (blocks > 1 && shape.numReductions == 0)
    return error() << "the " << blocks
                   << " blocks of a cluster would share rows that no reduction "
                      "needs as a whole; leave out 'cluster'";
  if (fields.columns % (blocks * fields.vector) != 0)
    return error() << fields.columns / fields.vector
                   << " vectors do not divide evenly among the " << blocks
                   << " blocks of a cluster";
  if (failed(verifyThreads(error, fields.threads, target)))
    return failure();
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
  int64_t shared = getScratchBytes(fields, shape, *grid);
  if (shared > kMaxStaticSharedBytes)
    return error() << shared << " bytes of shared memory are more than the "
                   << kMaxStaticSharedBytes << " that a block has without "
                   << "asking for more";
  if (fields.reread == tile::Reread::Shared) {
    if (!isLoop(fields, shape) || shape.rereadBytes == 0)
      return error() << "no later sweep reads a row again; leave out 'reread'";
    if (int64_t kept = getKeptBytes(fields, shape);
        kept + shared > target.maxSharedBytesPerBlock)
      return error() << kept << " bytes of the row that each block would keep "
                     << "are more than the " << target.maxSharedBytesPerBlock
                     << " of its shared memory; use more blocks in 'cluster' "
                        "or 'reread = memory'";
  }
  if (int64_t staged = getStagedBytes(fields, shape);
      staged + shared > target.maxSharedBytesPerBlock)
    return error() << staged << " bytes of the rows in " << fields.stages
                   << " stages are more than the "
                   << target.maxSharedBytesPerBlock
                   << " of a block's shared memory; use fewer 'stages'";
  return success();
}

LogicalResult bastile::verifySchedule(tile::KernelOp kernel,
                                      const ScheduleFields &fields,
                                      const KernelShape &shape,
                                      const Target &target) {
  MLIRContext *context = kernel.getContext();
  auto error = [&]() -> InFlightDiagnostic {
    return kernel.emitError("schedule ")
           << fields.getAttr(context) << " does not fit " << target.name
           << ": ";
  };
  return verifyRules(error, fields, shape, target, context);
}

int64_t bastile::countUnrolledOps(const ScheduleFields &fields,
                                  const KernelShape &shape) {
  int64_t pieces = fields.rows * fields.columns / fields.vector;
  return pieces <= kFewPieces ? 0 : pieces * shape.numHostOps;
}

int64_t bastile::getMaxUnrolledVectors(const KernelShape &shape) {
  const int64_t mostOps =
      shape.groups.empty() ? kMaxUnrolledOps : kMaxUnrolledOpsOfGroups;
  return std::max(kFewPieces, mostOps / std::max<int64_t>(1, shape.numHostOps));
}

bool bastile::isValidSchedule(const ScheduleFields &fields,
                              const KernelShape &shape, const Target &target,
                              MLIRContext *context) {
  ScopedDiagnosticHandler silence(context, [](Diagnostic &) {});
  auto error = [&] { return emitError(UnknownLoc::get(context)); };
  return succeeded(verifyRules(error, fields, shape, target, context));
}

int64_t bastile::getStagedBytes(const ScheduleFields &fields,
                                const KernelShape &shape) {
  if (fields.getStages() <= 2)
    return 0;
  return shape.loadedBytes * fields.rows * fields.columns * fields.stages /
         fields.getBlocks();
}

int64_t bastile::getScratchBytes(const ScheduleFields &fields,
                                 const KernelShape &shape,
                                 const ThreadGrid &grid) {
  int64_t places = fields.persistent ? 2 : 1;
  // Several combinations of rows use the same memory, one after the other.
  bool combinesRows =
      shape.hasPartialRows || shape.numCombinedRows > 0 || shape.band > 0;
  int64_t columns = combinesRows ? fields.columns / fields.getBlocks() : 0;
  int64_t ofGroups = 0;
  int64_t atOnce = fields.getBlocks() * grid.columns * fields.vector;
  for (int64_t group : shape.reducedGroups)
    ofGroups += GroupChunks::getScratchBytes(grid, fields.rows / grid.rows,
                                             fields.columns / atOnce, group,
                                             fields.vector);
  int64_t groupPlaces = isLoop(fields, shape) ? 2 : places;
  return places * shape.numReductions * grid.getScratchBytes(fields.rows) +
         groupPlaces * ofGroups + grid.getRowScratchBytes(columns);
}

bool bastile::hasScratchRoom(const ScheduleFields &fields,
                             const KernelShape &shape, const ThreadGrid &grid) {
  return getScratchBytes(fields, shape, grid) <= kMaxStaticSharedBytes;
}

int64_t bastile::getKeptBytes(const ScheduleFields &fields,
                              const KernelShape &shape) {
  int64_t columns = llvm::alignTo(shape.getSpan(fields.vector), fields.columns);
  return llvm::divideCeil(shape.rereadBytes * columns, shape.rowLength) *
         fields.rows / fields.getBlocks();
}

bool bastile::isLoop(const ScheduleFields &fields, const KernelShape &shape) {
  return shape.numReductions > 0 &&
         fields.columns < shape.getSpan(fields.vector);
}

/// Elements that keep a thread busy where each is an access of its own; more
/// would only make the program longer.
static constexpr int64_t kUnalignedElements = 4;

/// Whether a row that a tile holds whole may as well be swept in a loop:
/// because the loop loads nothing twice, or because the program would be very
/// long without it.
static bool mayBecomeLoop(const ScheduleFields &fields,
                          const KernelShape &shape) {
  if (shape.numReductions == 0 || shape.hasPartialRows || shape.band ||
      isLoop(fields, shape))
    return false;
  int64_t held =
      fields.rows * fields.columns / (fields.getBlocks() * fields.threads);
  return shape.rereadBytes == 0 || held > 4 * kUnalignedElements;
}

/// The schedules by which a thread holds half of what it holds by `fields`, the
/// cheapest first. A program that leaves a row of partial results keeps its
/// rows, so that there are as many programs; a program that reduces bands of
/// rows keeps a whole band, so that the band is read once.
static SmallVector<ScheduleFields> halve(const ScheduleFields &fields,
                                         const KernelShape &shape) {
  SmallVector<ScheduleFields> halved;
  auto add = [&](int64_t ScheduleFields::*field,
                 int64_t value) -> ScheduleFields & {
    halved.push_back(fields);
    halved.back().*field = value;
    return halved.back();
  };
  const bool isFree = !shape.hasPartialRows && !shape.band;
  if (fields.rows % 2 == 0 && isFree)
    add(&ScheduleFields::rows, fields.rows / 2);
  bool hasOwnBlocks = shape.numReductions == 0 && isFree;
  if (fields.columns % 2 == 0 && (hasOwnBlocks || isLoop(fields, shape)))
    add(&ScheduleFields::columns, fields.columns / 2);
  add(&ScheduleFields::threads, fields.threads * 2);
  if (fields.columns % 2 == 0 && mayBecomeLoop(fields, shape)) {
    ScheduleFields &loop = add(&ScheduleFields::columns, fields.columns / 2);
    if (shape.rereadBytes > 0)
      loop.reread = tile::Reread::Memory;
  }
  return halved;
}

/// A new schedule with the vector of `fields` and, if each program leaves a row
/// of partial results, with its rows.
static ScheduleFields completeForRows(const ScheduleFields &fields,
                                      const KernelShape &shape,
                                      const Target &target,
                                      MLIRContext *context) {
  ScheduleFields completed;
  completed.vector = fields.vector;
  if (shape.hasPartialRows) {
    completed.rows = fields.rows;
    completed.persistent = fields.persistent;
  }
  completeForGPU(completed, shape, target, context);
  return completed;
}

/// The schedule for operands of any alignment, by which a thread accesses
/// elements one by one, each by an instruction of its own.
ScheduleFields bastile::getUnaligned(ScheduleFields fields,
                                     const KernelShape &shape,
                                     const Target &target,
                                     MLIRContext *context) {
  auto fits = [&](const ScheduleFields &candidate) {
    return isValidSchedule(candidate, shape, target, context);
  };
  ScheduleFields narrow = fields;
  bool isMisaligned = shape.isMisaligned(fields.vector);
  narrow.vector =
      isMisaligned ? shape.getVector(kUnalignedElements * shape.minElementBytes)
                   : std::min(narrow.vector, kUnalignedElements);
  narrow.stages = 0;
  // A schedule for misaligned rows cannot serve operands of any alignment.
  if (!fits(narrow) && isMisaligned)
    narrow = completeForRows(narrow, shape, target, context);
  if (fits(narrow))
    fields = narrow;
  while (fields.rows * fields.columns >
         kUnalignedElements * fields.getBlocks() * fields.threads) {
    SmallVector<ScheduleFields> halved = halve(fields, shape);
    auto *found = llvm::find_if(halved, fits);
    if (found == halved.end())
      break;
    fields = *found;
  }
  return fields;
}
