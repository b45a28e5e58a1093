//===- RowsModel.cpp - The resources of a GPU for schedules ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/RowsModel.h"

#include "passes/schedule/Occupancy.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

/// The number of registers on every GPU so far.
static constexpr int64_t kRegistersPerMultiprocessor = 65536;
static constexpr int64_t kMostRegistersPerThread = 255;
static constexpr int64_t kMostBlocksPerMultiprocessor = 32;

/// Seconds from a load to its data, on a busy GPU.
static constexpr double kMemoryLatency = 700e-9;

/// Registers for addresses, sizes and intermediate values.
static constexpr double kBaseRegisters = 20;
static constexpr double kRegistersPerOperand = 2;

RowsModel::RowsModel(tile::KernelOp kernel, const Target &target)
    : kernelShape(KernelShape::get(kernel)), target(target) {
  operands = kernel.getNumArguments() + kernel.getNumResults();
  for (Operation &op : kernel.getBody().front())
    if (auto reduce = dyn_cast<tile::ReduceRowsOp>(op))
      sums += reduce.getInput().getType().getShape().back() > 1;
}

RowsEstimate RowsModel::estimate(tile::RowsAttr schedule) const {
  RowsEstimate result;
  int64_t threads = schedule.getThreads(), blocks = schedule.getBlocks();
  int64_t length = kernelShape.getSpan(schedule.getVector());
  double perThread = static_cast<double>(schedule.getRows()) *
                     schedule.getColumns() / (blocks * threads);
  bool isSwept = schedule.getColumns() < length;

  // A row stays in registers as it was loaded; its vectors are computed on one
  // after the other. Column sums are floats, and lie in memory where a program
  // goes through a row in tiles.
  double vectors = perThread / schedule.getVector();
  result.registers = kBaseRegisters + kRegistersPerOperand * operands +
                     perThread * kernelShape.loadedBytes / 4 +
                     schedule.getVector() + vectors;
  double perColumn = perThread / schedule.getRows();
  if (sums > 0 && !(isSwept && kernelShape.numReductions > 0))
    result.registers += sums * std::max(1.0, perColumn);
  int64_t available = std::min<int64_t>(
      kMostRegistersPerThread, kRegistersPerMultiprocessor / threads / 8 * 8);
  result.spills = result.registers > available;

  double registers = std::min<double>(
      available, llvm::alignTo(static_cast<int64_t>(result.registers), 8));
  result.blocks = std::min<int64_t>(
      {kMostBlocksPerMultiprocessor,
       static_cast<int64_t>(target.maxThreadsPerMultiprocessor) / threads,
       static_cast<int64_t>(kRegistersPerMultiprocessor /
                            (registers * threads))});
  double resident = result.blocks;
  if (int64_t persistent = schedule.getPersistent())
    resident = std::min<double>(resident, persistent);
  // A program that combines all rows is one for each tile of columns.
  if (kernelShape.numCombinedRows > 0)
    resident = std::min<double>(resident, static_cast<double>(llvm::divideCeil(
                                              length, schedule.getColumns())) /
                                              target.multiprocessors);
  int64_t columns = std::min(schedule.getColumns(), length) / blocks;
  result.bytesInFlight =
      resident * schedule.getRows() * columns * kernelShape.loadedBytes;
  result.padding =
      static_cast<double>(llvm::alignTo(length, schedule.getColumns())) /
      length;
  if (isSwept && kernelShape.numReductions > 0)
    // Rows kept in shared memory are closer than those in a cache, but not as
    // close as registers.
    result.sweeps =
        1 + (kernelShape.numSweeps - 1) *
                (schedule.getReread() == tile::Reread::Shared ? 0.4 : 1.0);
  return result;
}

double RowsModel::getBytesNeeded() const {
  return target.memoryBytesPerSecond * kMemoryLatency / target.multiprocessors;
}

bool RowsModel::rulesOut(const RowsEstimate &estimate,
                         const RowsEstimate &choice) const {
  constexpr double kMostPadding = 1.34;
  return (estimate.spills && estimate.registers > choice.registers) ||
         estimate.blocks == 0 ||
         estimate.padding > std::max(kMostPadding, choice.padding) ||
         estimate.bytesInFlight <
             std::min(getBytesNeeded(), choice.bytesInFlight) / 2;
}

double RowsModel::getRelativeTime(const RowsEstimate &estimate) const {
  double waiting =
      std::max(1.0, getBytesNeeded() / std::max(estimate.bytesInFlight, 1.0));
  // Later sweeps find the row in the cache for the most part.
  double reading = 1 + 0.5 * (estimate.sweeps - 1);
  // Lanes without elements cost time to issue, not memory.
  return waiting * reading * (1 + 0.25 * (estimate.padding - 1));
}
