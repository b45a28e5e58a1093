//===- RowsModel.cpp - The resources of a GPU for schedules ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/RowsModel.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

static constexpr int64_t kMostRegistersPerThread = 255;
static constexpr int64_t kMostBlocksPerMultiprocessor = 32;

/// Seconds from a load to its data, on a busy GPU.
static constexpr double kMemoryLatency = 700e-9;

/// How many elements of its rows a thread has.
static double getElementsPerThread(const ScheduleFields &fields) {
  return static_cast<double>(fields.rows) * fields.columns /
         (fields.getBlocks() * fields.threads);
}

/// The bytes of a register that elements take: those that are narrower share
/// one where vectors are that wide.
static int64_t getRegisterBytes(const ScheduleFields &fields,
                                const KernelShape &shape) {
  return std::min<int64_t>(4, fields.vector * shape.minElementBytes);
}

double bastile::estimateRegisters(const ScheduleFields &fields,
                                  const KernelShape &shape) {
  // Addresses, sizes and statistics.
  constexpr double base = 24;
  // The assembler computes some values again, or later, and some of the next
  // vector before it is done with one.
  constexpr double liveShare = 0.65;
  constexpr double mostAtOnce = 12;
  // What a function holds meanwhile where no rounding hides its error.
  constexpr int64_t liveInFunction = 6;
  double perThread = getElementsPerThread(fields);
  // A row stays in registers as it was loaded, and so do values that a later
  // sweep needs. The next row is on its way to registers, or to shared memory
  // where there are more stages than two.
  const bool loadsAhead = fields.persistent > 0 && fields.stages == 2;
  int64_t held = shape.keptBytes + shape.sharedBytes +
                 (loadsAhead ? shape.loadedBytes : 0);
  int64_t registerBytes = getRegisterBytes(fields, shape);
  double registers =
      base + perThread * std::max(held, shape.loadedBytes) / registerBytes;
  // Each vector has an address.
  registers += perThread / fields.vector;
  int64_t live = shape.numLiveValues;
  if (shape.minElementBytes >= 4)
    live += liveInFunction;
  // Single elements are not computed on at once.
  constexpr double leastAtOnce = 8;
  double atOnce = 2.0 * fields.vector;
  if (fields.vector > 1)
    atOnce = std::max(atOnce, leastAtOnce);
  registers += liveShare * live * std::min({perThread, atOnce, mostAtOnce});
  // Column sums are floats, and lie in memory where a program goes through a
  // row in tiles.
  if (!isLoop(fields, shape))
    registers +=
        shape.numLongPartialRows * std::max(1.0, perThread / fields.rows);
  return registers;
}

double bastile::estimateSummingRegisters(const ScheduleFields &fields,
                                         const KernelShape &shape) {
  constexpr double base = 12, perLoaded = 0.65, perLoadedAhead = 0.35;
  constexpr double perSum = 1.8;
  // Of a value that is alive in the formula, for each element and for those
  // that are computed at once.
  constexpr double ofElement = 0.38, ofElementAtOnce = 0.2;
  // What functions hold meanwhile where no rounding hides their error.
  constexpr double ofFunctions = 1.2;
  const double perThread = getElementsPerThread(fields);
  const double loaded = static_cast<double>(shape.loadedBytes) /
                        static_cast<double>(getRegisterBytes(fields, shape));
  double held = perLoaded * loaded +
                perSum * static_cast<double>(shape.numLongPartialRows);
  if (fields.stages == 2)
    held += perLoadedAhead * loaded;
  double ofValue = ofElement * perThread +
                   ofElementAtOnce * std::min(perThread, 2.0 * fields.vector);
  if (shape.minElementBytes >= 4)
    ofValue += ofFunctions;
  return base + held * perThread +
         ofValue * static_cast<double>(shape.numLiveValues);
}

double bastile::estimateOutlivingRegisters(const ScheduleFields &fields,
                                           const KernelShape &shape) {
  // The first bytes are among the values that are alive, and the assembler
  // computes most of the others again.
  constexpr int64_t bytesAlive = 32;
  constexpr double perByte = 0.1;
  return perByte * std::max<int64_t>(0, shape.keptBytes - bytesAlive) *
         getElementsPerThread(fields);
}

bool bastile::isCrowded(const KernelShape &shape) {
  const int64_t most = shape.numLongPartialRows > 0 ? 5 : 6;
  return shape.numLiveValues > most;
}

int64_t bastile::getMostRegisters(int64_t threads) {
  return std::min<int64_t>(kMostRegistersPerThread,
                           kRegistersPerMultiprocessor / threads / 8 * 8);
}

int64_t bastile::getAvailableRegisters(const ScheduleFields &fields) {
  // Registers are given to four warps at a time.
  constexpr int64_t threadsAtOnce = 128;
  const int64_t blocks = getMinBlocksPerMultiprocessor(fields);
  return getMostRegisters(blocks *
                          llvm::alignTo(fields.threads, threadsAtOnce));
}

RowsEstimate RowsModel::estimate(tile::RowsAttr schedule) const {
  RowsEstimate result;
  int64_t threads = schedule.getThreads(), blocks = schedule.getBlocks();
  int64_t length = kernelShape.getSpan(schedule.getVector());
  bool isSwept = schedule.getColumns() < length;

  result.registers = estimateRegisters(ScheduleFields(schedule), kernelShape);
  ScheduleFields one(schedule);
  one.persistent = std::min<int64_t>(one.persistent, 1);
  int64_t available = getAvailableRegisters(one);
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
