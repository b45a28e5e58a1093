//===- ScheduleRelief.cpp - Give threads less where registers are short ---===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/RowsModel.h"
#include "passes/schedule/ScheduleFields.h"
#include "passes/schedule/ThreadGrid.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace bastile;

/// By how many times a thread needs more registers than it can have.
static double getExcess(const ScheduleFields &fields,
                        const KernelShape &shape) {
  const double needed = shape.numLongPartialRows > 0
                            ? estimateSummingRegisters(fields, shape)
                            : estimateRegisters(fields, shape);
  return needed / getAvailableRegisters(fields);
}

void bastile::relieveRegisters(ScheduleFields &fields,
                               const ScheduleFields &given,
                               const KernelShape &shape, const Target &target) {
  // Of rows that are not added up, the registers are an upper bound, and what
  // blocks of a cluster wait for each other costs as much as many spills.
  const bool isSumming = shape.numLongPartialRows > 0;
  const double mostExcess = isSumming ? 0.95 : 1.05;
  const double mostOfBlocks = isSumming ? 0.95 : 1.5;
  // Of narrower vectors than this, and of wide types, loads and addresses take
  // more than spills.
  constexpr int64_t fewestBytes = 8, wide = 4;
  constexpr int64_t mostThreads = 512;
  if (shape.numReductions == 0 || shape.band || isLoop(fields, shape))
    return;
  // Where few values are alive at once, the bounds on bytes hold, unless they
  // are far from what is expected.
  constexpr double farExcess = 1.2;
  double least = getExcess(fields, shape);
  if (!isCrowded(shape) && !(isSumming && least > farExcess))
    return;
  const ScheduleFields chosen = fields;
  SmallVector<int64_t> vectors{chosen.vector};
  if (!given.vector && chosen.vector % 2 == 0 && shape.minElementBytes < wide &&
      chosen.vector * shape.minElementBytes > fewestBytes)
    vectors.push_back(chosen.vector / 2);
  // Single elements leave room for several blocks, unless much else is held.
  const bool canShare = !given.cluster && chosen.rows == 1 &&
                        (chosen.vector > 1 || chosen.persistent == 1);
  const int64_t mostBlocks =
      canShare ? target.maxBlocksPerCluster : chosen.getBlocks();
  auto tryOther = [&](ScheduleFields other) {
    chooseForGPU(other, shape, target);
    chooseReread(other, shape, target);
    if (isLoop(other, shape) || getExcess(other, shape) >= least)
      return;
    least = getExcess(other, shape);
    fields = other;
  };
  for (int64_t blocks = chosen.getBlocks(); blocks <= mostBlocks; blocks *= 2)
    for (int64_t vector : vectors) {
      if (least <= (blocks > chosen.getBlocks() ? mostOfBlocks : mostExcess))
        return;
      // That was chosen already.
      if (blocks == chosen.getBlocks() && vector == chosen.vector)
        continue;
      ScheduleFields other = given;
      other.vector = vector;
      if (blocks > 1)
        other.cluster = blocks;
      tryOther(other);
    }
  // Blocks of a row that cannot be shared by more of them have a vector for
  // each thread.
  const int64_t vectorsOfBlock = llvm::divideCeil(
      shape.getSpan(fields.vector), fields.getBlocks() * fields.vector);
  if (least <= mostOfBlocks || given.threads || fields.getBlocks() == 1 ||
      vectorsOfBlock > mostThreads)
    return;
  ScheduleFields other = given;
  other.vector = fields.vector;
  other.cluster = fields.getBlocks();
  other.threads = llvm::alignTo(vectorsOfBlock, kWarp);
  tryOther(other);
}

/// By how many times a thread that keeps sums of rows needs more registers than
/// it can have, those included that it needs for much that outlives a
/// reduction.
static double getLongExcess(const ScheduleFields &fields,
                            const KernelShape &shape) {
  return (estimateSummingRegisters(fields, shape) +
          estimateOutlivingRegisters(fields, shape)) /
         getAvailableRegisters(fields);
}

void bastile::relieveSpilled(ScheduleFields &fields,
                             const ScheduleFields &given,
                             const KernelShape &shape, const Target &target) {
  if (shape.numLongPartialRows == 0 || shape.numReductions == 0 || shape.band ||
      isLoop(fields, shape) || !isCrowded(shape))
    return;
  const ScheduleFields chosen = fields;
  const double excess = getLongExcess(chosen, shape);
  // How many blocks of single elements have room was another estimate.
  constexpr double mostOfSingles = 1.1;
  if (chosen.vector == 1 && chosen.persistent > 1) {
    if (!given.persistent && getExcess(chosen, shape) > mostOfSingles)
      fields.persistent = 1;
    return;
  }
  double least = excess;
  auto tryOther = [&](int64_t vector, int64_t blocks) {
    ScheduleFields other = given;
    other.vector = vector;
    if (blocks > 1)
      other.cluster = blocks;
    chooseForGPU(other, shape, target);
    chooseReread(other, shape, target);
    if (isLoop(other, shape) || other.getBlocks() != blocks ||
        getLongExcess(other, shape) >= least)
      return;
    least = getLongExcess(other, shape);
    fields = other;
  };
  constexpr int64_t wide = 4, fewestBytes = 8;
  constexpr double mostExcess = 0.95, mostOfNarrow = 1.05, mostOfBlocks = 1;
  const bool mayHalve =
      !given.vector && chosen.vector % 2 == 0 && shape.minElementBytes < wide;
  const bool isNarrow = chosen.vector * shape.minElementBytes <= fewestBytes;
  if (mayHalve && excess > (isNarrow ? mostOfNarrow : mostExcess))
    tryOther(chosen.vector / 2, chosen.getBlocks());
  // What blocks of few threads spill costs less than that more of them wait for
  // each other.
  constexpr int64_t fewThreads = 12 * kWarp;
  const int64_t blocks = 2 * chosen.getBlocks();
  if (least <= mostOfBlocks || given.cluster || chosen.rows != 1 ||
      chosen.threads <= fewThreads || blocks > target.maxBlocksPerCluster)
    return;
  tryOther(chosen.vector, blocks);
  if (mayHalve && !isNarrow && least > mostExcess)
    tryOther(chosen.vector / 2, blocks);
}
