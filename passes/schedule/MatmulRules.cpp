//===- MatmulRules.cpp - What schedules of products a target can run ------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/MatmulRules.h"

#include "dialect/ElementBytes.h"
#include "passes/schedule/ThreadGrid.h"

using namespace mlir;
using namespace bastile;

/// Rows of a tile that a warp multiplies at once on tensor cores.
static constexpr int64_t kWarpRows = tile::MmaAttr::kWarpRows;
/// Past this, the sums of a thread leave no registers for what it multiplies.
static constexpr int64_t kMostSums = 128;
/// The same of programs that compute left factors, and have all columns: those
/// of three inner products beside 256 columns. Some registers are spilled then,
/// which costs less than factors in memory.
static constexpr int64_t kMostStreamedSums = 152;
/// Rows of threads that share a tile where each thread multiplies by itself.
static constexpr int64_t kThreadRows = 16;
/// Vectors of sums that a program of the host unrolls.
static constexpr int64_t kMostHostVectors = 64;

/// Whether so many bytes are rows of a tile in shared memory: panels of 32, 64
/// or 128 bytes.
static bool dividesIntoPanels(int64_t bytes) {
  return bytes == 32 || bytes == 64 || bytes % 128 == 0;
}

int64_t bastile::getStagedBytes(const MatmulFields &fields,
                                const MatmulShape &shape) {
  if (!fields.isStaged())
    return 0;
  const int64_t bytes = getElementBytes(tile::DotOp(shape.dot).getFactorType());
  int64_t right = fields.columns * shape.numDots;
  if (!shape.isStreaming)
    return (fields.rows + right) * fields.depth * fields.stages * bytes;
  // The rows of inner products are there once, their other factors in stages.
  constexpr int64_t unit = 16;
  // Boxes that both kinds of products need are there once.
  if (fields.isSpecialized() && fields.sharesStages(shape) &&
      fields.columns == shape.getAllColumns(unit))
    right -= fields.columns * shape.numShared;
  const auto whole = static_cast<int64_t>(llvm::alignTo(shape.whole, unit));
  const int64_t inner = whole * shape.numInner;
  const int64_t wholeStages =
      fields.isSpecialized() ? getWholeStages(shape) : 1;
  return (fields.rows * inner * wholeStages +
          (inner + right) * fields.depth * fields.stages) *
         bytes;
}

/// Chooses what is left open of the schedule of a product on tensor cores.
static void completeStaged(MatmulFields &fields, const MatmulFields &chosen,
                           const MatmulShape &shape, const Target &target) {
  const bool hasThreads = fields.threads > 0, hasColumns = fields.columns > 0;
  const bool hasStages = fields.stages > 0;
  if (!fields.rows)
    fields.rows = llvm::alignTo(
        chosen.rows, std::max<int64_t>(1, fields.threads / kWarp) * kWarpRows);
  if (!hasThreads)
    fields.threads = std::min(
        chosen.threads, std::max<int64_t>(1, fields.rows / kWarpRows) * kWarp);
  if (!hasColumns)
    fields.columns = chosen.columns;
  fields.depth = fields.depth ? fields.depth : chosen.depth;
  fields.vector = fields.vector ? fields.vector : chosen.vector;
  fields.stages = hasStages ? fields.stages : chosen.stages;
  // A larger tile takes more threads, and few threads a narrower one.
  auto takesMoreThreads = [&] {
    return fields.threads * 2 <= target.maxThreadsPerBlock &&
           fields.rows % (fields.threads * 2 / kWarp * kWarpRows) == 0;
  };
  while (!hasThreads && fields.getSumsPerThread(shape) > kMostSums &&
         takesMoreThreads())
    fields.threads *= 2;
  auto hasRoom = [&] {
    return getStagedBytes(fields, shape) <= target.maxSharedBytesPerBlock;
  };
  while (!hasStages && fields.stages > 2 && !hasRoom())
    --fields.stages;
  constexpr int64_t leastColumns = 16;
  while (!hasColumns && !shape.isStreaming && fields.columns > leastColumns &&
         (fields.getSumsPerThread(shape) > kMostSums || !hasRoom()))
    fields.columns /= 2;
}

MatmulFields bastile::completeMatmul(MatmulFields fields,
                                     const MatmulShape &shape,
                                     const Target &target) {
  const MatmulFields chosen = chooseMatmul(shape, target, fields.roles);
  if (chosen.isSpecialized()) {
    completeSpecialized(fields, chosen, shape, target);
    return fields;
  }
  fields.roles = fields.roles ? fields.roles : chosen.roles;
  fields.cluster = fields.cluster ? fields.cluster : chosen.cluster;
  if (target.isHost()) {
    // A tile that was meant for many threads is too large for one.
    if (fields.threads > 1)
      fields = {};
    // Fields that are about a GPU do nothing on the host, and are no error.
    fields.threads = 1;
    fields.depth = fields.stages = fields.roles = fields.cluster =
        fields.split = fields.steps = fields.resident = fields.matrices = 0;
  }
  if (chosen.isStaged()) {
    completeStaged(fields, chosen, shape, target);
    return fields;
  }
  fields.rows = fields.rows ? fields.rows : chosen.rows;
  if (!shape.dot || shape.isStreaming) {
    // What is streamed has tiles of its own, and products all of their columns.
    fields.columns = fields.columns ? fields.columns : chosen.columns;
    fields.depth = fields.depth ? fields.depth : chosen.depth;
    fields.threads = fields.threads ? fields.threads : chosen.threads;
    fields.vector = fields.vector ? fields.vector : chosen.vector;
    return fields;
  }
  // A tile has as many vectors in a row, whatever their width, and vectors
  // divide the columns.
  if (!fields.columns)
    fields.columns = fields.vector
                         ? chosen.columns / chosen.vector * fields.vector
                         : chosen.columns;
  if (!fields.vector)
    fields.vector = std::min(chosen.vector, fields.columns & -fields.columns);
  // Fewer threads stand over a narrower tile.
  if (!fields.threads)
    fields.threads = std::min(
        chosen.threads,
        std::max<int64_t>(1, fields.columns / fields.vector) * kThreadRows);
  return fields;
}

/// The rules of products on tensor cores.
static LogicalResult verifyStaged(function_ref<InFlightDiagnostic()> error,
                                  const MatmulFields &fields,
                                  const MatmulShape &shape,
                                  const Target &target) {
  constexpr int64_t vector = 2;
  if (fields.vector != vector)
    return error() << "tensor cores give each thread " << vector
                   << " neighbouring sums; leave out 'vector'";
  if (fields.stages < 2)
    return error() << "tensor cores multiply what was copied ahead; use 2 or "
                      "more 'stages'";
  if (fields.rows % (fields.threads / kWarp * kWarpRows) != 0)
    return error() << fields.rows << " rows do not divide into " << kWarpRows
                   << " for each of " << fields.threads / kWarp
                   << " warps; use "
                      "other 'rows' or 'threads'";
  constexpr int64_t step = 16, stepBytes = 32;
  const int64_t bytes = getElementBytes(tile::DotOp(shape.dot).getFactorType());
  for (auto [name, size, least] :
       {std::tuple("depth", fields.depth, stepBytes / bytes),
        std::tuple("columns", fields.columns, step)})
    if (size % least != 0)
      return error() << "'" << name << "' is " << size
                     << ", no multiple of the " << least
                     << " that tensor cores take at once";
  // Of a left factor that is summed over its rows, a row of the tile in shared
  // memory has the elements of one column of the product.
  const bool hasRowsInRow =
      !shape.isStreaming && tile::DotOp(shape.dot).getContract()[0] == 0;
  for (auto [name, size] :
       {std::pair("depth", fields.depth * bytes),
        std::pair("columns", fields.columns * bytes),
        std::pair("rows", hasRowsInRow ? fields.rows * bytes : stepBytes)})
    if (!shape.isStreaming && !dividesIntoPanels(size))
      return error() << "'" << name << "' is " << size / bytes
                     << ", but rows in shared memory have " << 32 / bytes
                     << ", " << 64 / bytes << " or a multiple of "
                     << 128 / bytes << " elements";
  // There, warps have a part of a row's panel each, or a number of panels
  // together.
  constexpr int64_t warpsOfPanel = 4;
  if (const int64_t warps = fields.threads / kWarp;
      hasRowsInRow && warps != 1 && warps != 2 && warps % warpsOfPanel != 0)
    return error() << warps << " warps do not divide the rows of a factor that "
                   << "is summed over its rows; use 1, 2 or a multiple of "
                   << warpsOfPanel << " warps of 32 'threads'";
  const int64_t most = shape.isStreaming ? kMostStreamedSums : kMostSums;
  if (int64_t sums = fields.getSumsPerThread(shape); sums > most)
    return error() << sums << " sums a thread are more than the " << most
                   << " that registers hold; use fewer 'rows' or 'columns', or "
                      "more 'threads'";
  if (int64_t bytes = getStagedBytes(fields, shape);
      bytes > target.maxSharedBytesPerBlock)
    return error() << bytes << " bytes of the factors in " << fields.stages
                   << " stages are more than the "
                   << target.maxSharedBytesPerBlock
                   << " of a block's shared memory; use fewer 'stages' or a "
                      "smaller tile";
  return success();
}

/// The rules of kernels that compute left factors, or only reduce: a program
/// has all columns of the products, and goes along k.
static LogicalResult verifyStreamed(function_ref<InFlightDiagnostic()> error,
                                    const MatmulFields &fields,
                                    const MatmulShape &shape,
                                    const Target &target) {
  const MatmulFields chosen = chooseMatmul(shape, target);
  const bool fitsColumns =
      shape.dot ? fields.columns >= shape.columns : fields.columns == 1;
  if (!fitsColumns)
    return error() << "a program has all of the kernel's " << shape.columns
                   << " columns; leave out 'columns'";
  if (fields.depth < 1 || fields.depth % fields.vector != 0)
    return error() << "'depth' is " << fields.depth
                   << ", no multiple of the vector of " << fields.vector;
  if (fields.isStaged() != chosen.isStaged())
    return error() << "'stages' is " << fields.stages
                   << ", but the heuristic's are " << chosen.stages
                   << "; leave it out";
  return success();
}

LogicalResult bastile::verifyMatmul(function_ref<InFlightDiagnostic()> error,
                                    const MatmulFields &fields,
                                    const MatmulShape &shape,
                                    const Target &target) {
  const bool isStreamed = !shape.dot || shape.isStreaming;
  if (isStreamed && failed(verifyStreamed(error, fields, shape, target)))
    return failure();
  if (shape.dot && fields.columns % fields.vector != 0)
    return error() << "a vector of " << fields.vector
                   << " does not divide the tile's " << fields.columns
                   << " columns";
  if (target.isHost()) {
    const int64_t elements =
        fields.rows * std::max(fields.columns, fields.depth);
    if (int64_t vectors = elements / fields.vector; vectors > kMostHostVectors)
      return error() << "a tile of " << vectors << " vectors is more than the "
                     << kMostHostVectors
                     << " that the host unrolls; use fewer 'rows' or 'columns'";
    return success();
  }
  if (failed(verifyThreads(error, fields.threads, target)))
    return failure();
  if (fields.roles > 1 || fields.cluster > 1 || fields.split > 1 ||
      fields.steps > 0 || fields.resident > 0 || fields.matrices > 1)
    return verifySpecialized(error, fields, shape, target);
  if (chooseMatmul(shape, target, fields.roles).isStaged())
    return verifyStaged(error, fields, shape, target);
  if (fields.stages > 1 || (fields.depth && !isStreamed))
    return error() << "only products of 16-bit matrices, and of 8-bit floats "
                      "along their rows, run on tensor cores, which copy parts "
                      "of them ahead; leave out 'stages' and 'depth'";
  const int64_t threadRows = shape.dot ? kThreadRows : fields.threads / kWarp;
  const int64_t threadColumns = fields.threads / threadRows;
  for (int64_t columns : {fields.columns, isStreamed ? fields.depth : 1})
    if (fields.rows % threadRows != 0 ||
        (columns != 1 && columns % (threadColumns * fields.vector) != 0))
      return error() << fields.rows << " rows of " << columns / fields.vector
                     << " vectors do not divide evenly among " << threadRows
                     << " rows of " << threadColumns << " threads";
  if (int64_t sums = fields.getSumsPerThread(shape); sums > kMostOwnSums)
    return error() << sums << " sums a thread are more than the "
                   << kMostOwnSums
                   << " that registers hold; use fewer 'rows' or 'columns', or "
                      "more 'threads'";
  return success();
}

namespace {

void setFewRows(tile::KernelOp kernel, ArrayRef<FewRows> few) {
  if (few.empty())
    return;
  SmallVector<int64_t> most;
  SmallVector<Attribute> schedules;
  for (const FewRows &own : few) {
    most.push_back(own.most);
    schedules.push_back(own.fields.getAttr(kernel.getContext()));
  }
  kernel.setFewRows(most);
  kernel.setFewRowsSchedulesAttr(
      ArrayAttr::get(kernel.getContext(), schedules));
}

struct MatmulSchedule
    : public KernelScheduleInterface::ExternalModel<MatmulSchedule,
                                                    tile::MatmulAttr> {
  LogicalResult assign(Attribute schedule, tile::KernelOp kernel,
                       bool /*isOwn*/, const Target &target,
                       AnalysisManager analyses) const {
    const auto &shape = analyses.getAnalysis<MatmulShape, tile::KernelOp>();
    const MatmulFields pinned(cast<tile::MatmulAttr>(schedule));
    const bool isPinned =
        schedule != Attribute(MatmulFields().getAttr(kernel.getContext()));
    if (!target.isHost() && shape.usesFloat64)
      return kernel.emitError()
             << "float64 is computed on the host only, not on " << target.name;
    tile::MatmulAttr complete =
        completeMatmul(pinned, shape, target).getAttr(kernel.getContext());
    if (failed(verifyFor(complete, kernel, target, analyses)))
      return failure();
    kernel.setScheduleAttr(complete);
    kernel.removeUnalignedScheduleAttr();
    kernel.removeFewRowsAttr();
    kernel.removeFewRowsSchedulesAttr();
    if (!complete.isSpecialized())
      return success();
    // A schedule that somebody asks for is for calls of any size.
    if (!isPinned)
      setFewRows(kernel, chooseForFewRows(shape, target));
    // What copies of boxes do not take, threads do.
    MatmulFields general;
    general.roles = 1;
    kernel.setUnalignedScheduleAttr(
        completeMatmul(general, shape, target).getAttr(kernel.getContext()));
    return success();
  }

  LogicalResult verifyFor(Attribute schedule, tile::KernelOp kernel,
                          const Target &target,
                          AnalysisManager analyses) const {
    auto error = [&]() -> InFlightDiagnostic {
      return kernel.emitError("schedule ")
             << schedule << " does not fit " << target.name << ": ";
    };
    return verifyMatmul(error, MatmulFields(cast<tile::MatmulAttr>(schedule)),
                        analyses.getAnalysis<MatmulShape, tile::KernelOp>(),
                        target);
  }

  ScheduleCandidates getCandidates(Attribute /*schedule*/,
                                   tile::KernelOp kernel,
                                   const Target &target) const {
    return getMatmulCandidates(kernel, target);
  }
};

} // namespace

void bastile::registerMatmulSchedule(MLIRContext &context) {
  tile::MatmulAttr::attachInterface<MatmulSchedule>(context);
}
