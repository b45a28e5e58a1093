//===- ScheduleProduct.cpp - The tiles of products ------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/ScheduleProduct.h"

#include "dialect/Dimensions.h"
#include "dialect/ElementBytes.h"
#include "dialect/KernelSpace.h"
#include "passes/schedule/ScheduleFields.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

static constexpr int64_t kWarp = 32, kThreadRows = 16;

/// Whether `kernel` multiplies what it computes, so that it has all columns of
/// the product.
static bool isStreaming(const KernelSpace &space) {
  return llvm::any_of(space.getDots(), KernelSpace::isLeftComputed);
}

static bool hasInner(tile::KernelOp kernel, const KernelSpace &space) {
  return llvm::any_of(kernel.getBody().front().getOps<tile::DotOp>(),
                      [&](tile::DotOp dot) { return space.isInner(dot); });
}

/// All columns of the product `dot`, in whole `unit`s.
static int64_t getAllColumns(tile::DotOp dot, int64_t unit) {
  return static_cast<int64_t>(
      llvm::alignTo(dot.getSumType().getShape().back(), unit));
}

//===----------------------------------------------------------------------===//
// The host
//===----------------------------------------------------------------------===//

/// The tile of a program on the host, whose sums are to stay in registers.
static void chooseForHost(ScheduleFields &fields, tile::DotOp dot,
                          const Target &target) {
  const int64_t bytes = getElementBytes(dot.getSumType());
  // Processors with vectors of 64 bytes have 32 registers for them, others 16.
  // Three quarters of them hold sums.
  constexpr int64_t wide = 64;
  const int64_t sums = target.vectorBytes >= wide ? 24 : 12;
  fields.threads = 1;
  if (dot.getContract()[1] == 0) {
    // Vectors along the columns of `b` are multiplied by a number of each row.
    constexpr int64_t vectors = 2;
    fields.vector = target.vectorBytes / bytes;
    fields.columns = vectors * fields.vector;
    fields.rows = sums / vectors;
    return;
  }
  // Rows of both operands are multiplied, a vector at a time.
  fields.vector = 4;
  fields.columns = fields.vector;
  fields.rows = sums / fields.columns;
}

/// Rows that a step of the host computes, of what is streamed.
static void chooseStreamedForHost(ScheduleFields &fields,
                                  const KernelSpace &space,
                                  const Target &target) {
  constexpr int64_t floatBytes = 4;
  fields.threads = 1;
  fields.vector = target.vectorBytes / floatBytes;
  fields.rows = space.getDot() ? 4 : 1;
  constexpr int64_t vectors = 4;
  fields.columns = space.getDot() ? getAllColumns(space.getDot(), fields.vector)
                                  : vectors * fields.vector;
}

//===----------------------------------------------------------------------===//
// GPUs
//===----------------------------------------------------------------------===//

/// Whether the warps of a block can multiply on tensor cores: tiles with more
/// than one row and column, of elements of 16 bits.
static bool fitsTensorCores(tile::DotOp dot) {
  Type element = dot.getFactorType();
  ArrayRef<int64_t> matrix = dot.getSumType().getShape().take_back(2);
  return (element.isBF16() || element.isF16()) &&
         !llvm::is_contained(matrix, 1);
}

static void chooseForGPU(ScheduleFields &fields, tile::KernelOp kernel,
                         const KernelSpace &space) {
  tile::DotOp dot = space.getDot();
  if (!dot) {
    // A warp has a row at a time.
    fields.threads = 256;
    fields.vector = 1;
    fields.rows = fields.threads / kWarp;
    fields.columns = 512;
    return;
  }
  if (fitsTensorCores(dot) && isStreaming(space)) {
    // A warp has 16 rows, whose sums take no more than half of its registers.
    constexpr int64_t unit = 16;
    fields.threads = 256;
    fields.vector = 2;
    fields.rows = 128;
    fields.columns = getAllColumns(dot, unit);
    fields.stages = 2;
    return;
  }
  if (fitsTensorCores(dot)) {
    // Two such blocks run on a multiprocessor: one multiplies while the other
    // one waits for copies, or stores.
    // Two products share the registers that hold sums.
    fields.threads = 128;
    fields.vector = 2;
    fields.rows = 128;
    fields.columns = space.getDots().size() == 1 ? 128 : 64;
    fields.stages = 4;
    return;
  }
  // Each thread computes 4 x 4 sums, and neighbours read neighbouring columns.
  fields.threads = 256;
  fields.vector = 1;
  fields.rows = 64;
  fields.columns = isStreaming(space)
                       ? getAllColumns(dot, fields.threads / kThreadRows)
                       : 64;
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

int64_t bastile::getStreamedExtent(tile::KernelOp kernel, bool onHost) {
  const KernelSpace space(kernel);
  const tile::ScheduleAttr schedule = *kernel.getSchedule();
  if (!space.getDot())
    return schedule.getColumns();
  if (schedule.getStages() > 1) {
    constexpr int64_t chunk = 32, mostColumns = 128;
    const bool isWide = schedule.getColumns() > mostColumns;
    return hasInner(kernel, space) && !isWide ? 2 * chunk : chunk;
  }
  constexpr int64_t vectors = 4, ofGPU = 64;
  return onHost ? vectors * schedule.getVector() : ofGPU;
}

Attribute bastile::getSpaceLayout(tile::KernelOp kernel, bool onHost) {
  const tile::ScheduleAttr schedule = *kernel.getSchedule();
  MLIRContext *context = kernel.getContext();
  if (schedule.getStages() > 1)
    return tile::MmaAttr::get(context, schedule.getThreads() / kWarp);
  if (onHost)
    return tile::BlockedAttr::get(context, schedule.getVector(), 1, 1,
                                  /*blocks=*/1);
  const int64_t rows =
      getDot(kernel) ? kThreadRows : schedule.getThreads() / kWarp;
  return tile::BlockedAttr::get(context, schedule.getVector(), rows,
                                schedule.getThreads() / rows, /*blocks=*/1);
}

LogicalResult bastile::scheduleProduct(tile::KernelOp kernel,
                                       tile::ScheduleAttr pinned,
                                       const Target &target) {
  if (pinned)
    return kernel.emitError()
           << "schedule " << pinned << " is pinned for kernel @"
           << kernel.getSymName()
           << ", which multiplies; products have no fields to choose";
  const KernelSpace space(kernel);
  ScheduleFields fields;
  if (target.isHost()) {
    if (!space.getDot() || isStreaming(space))
      chooseStreamedForHost(fields, space, target);
    else
      chooseForHost(fields, space.getDot(), target);
  } else {
    auto isF64 = [](Operation &op) {
      return llvm::any_of(op.getResultTypes(), [](Type type) {
        return getElementTypeOrSelf(type).isF64();
      });
    };
    if (llvm::any_of(kernel.getBody().front(), isF64))
      return kernel.emitError()
             << "float64 is computed on the host only, not on " << target.name;
    chooseForGPU(fields, kernel, space);
  }
  kernel.setScheduleAttr(fields.getAttr(kernel.getContext()));
  return success();
}
