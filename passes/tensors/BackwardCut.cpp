//===- BackwardCut.cpp - What a backward function reads -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tensors/BackwardCut.h"

#include "dialect/ElementBytes.h"
#include "dialect/KernelSpace.h"
#include "dialect/RowLength.h"
#include "dialect/Rows.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/analysis/StreamedFactors.h"
#include "passes/tensors/Derivatives.h"

using namespace mlir;
using namespace bastile;

/// Bytes that are moved for each row to read `value`; what all rows share
/// counts as 0, and rows whose length only a call knows as the longest.
static int64_t getBytesMoved(Value value) {
  if (!isRowTensor(value))
    return 0;
  auto type = cast<RankedTensorType>(value.getType());
  return ShapedType::isDynamic(type.getShape().back())
             ? maxRowLength * getElementBytes(type)
             : getRowBytes(type);
}

BackwardCut::BackwardCut(func::FuncOp forward, func::FuncOp backward,
                         const StreamedOps &streamedOps)
    : forward(forward) {
  Block &source = forward.front(), &copy = backward.front();
  for (auto [argument, copied] :
       llvm::zip(source.getArguments(), copy.getArguments()))
    originals[copied] = argument;
  for (auto [op, copied] : llvm::zip(source.without_terminator(), copy)) {
    bool waits = isa<tile::ReduceOp, tile::ReduceRowsOp>(copied) ||
                 dependsOnAny(&copied, reduced);
    bool isOfProduct = isa<tile::DotOp>(copied) ||
                       (OpTrait::hasElementwiseMappableTraits(&copied) &&
                        dependsOnAny(&copied, ofProducts));
    for (auto [result, copiedResult] :
         llvm::zip_equal(op.getResults(), copied.getResults())) {
      originals[copiedResult] = result;
      if (waits)
        reduced.insert(copiedResult);
      if (isOfProduct)
        ofProducts.insert(copiedResult);
      if (streamedOps.factors.contains(&op) && KernelSpace::hasColumns(result))
        streamed.insert(copiedResult);
    }
  }
  for (auto [index, value] :
       llvm::enumerate(copy.getTerminator()->getOperands()))
    resultNumbers.try_emplace(value, index);
}

/// Whether `value` is a product, or what is computed of one element by element
/// and rounded: that has fewer bytes, and gives the same where all that is
/// needed of the product comes after the rounding.
bool BackwardCut::isSavedProduct(Value value) const {
  Operation *op = value.getDefiningOp();
  return isa_and_present<tile::DotOp>(op) ||
         (isa_and_present<arith::TruncFOp>(op) && ofProducts.contains(value));
}

/// Whether `value` of the forward costs more to compute again than to read: a
/// product, or a statistic or row vector that waits for a reduction.
bool BackwardCut::isSaved(Value value) const {
  if (streamed.contains(value))
    return false;
  if (isSavedProduct(value))
    return true;
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && reduced.contains(value) &&
         (type.getRank() == 1 || type.getShape().back() == 1) &&
         isa<FloatType>(type.getElementType());
}

static void sortByPlace(SmallVectorImpl<Value> &values) {
  llvm::sort(values, [](Value lhs, Value rhs) {
    return lhs.getDefiningOp()->isBeforeInBlock(rhs.getDefiningOp());
  });
}

/// Whether `value` can be computed element by element from `known` statistics.
static bool followsFrom(Value value, const DenseSet<Value> &known) {
  llvm::SetVector<Value> needed;
  needed.insert(value);
  for (size_t next = 0; next < needed.size(); ++next) {
    if (known.contains(needed[next]))
      continue;
    Operation *op = needed[next].getDefiningOp();
    if (!op || isa<tile::ReduceOp, tile::ReduceRowsOp, tile::DotOp>(op))
      return false;
    ValueRange operands = getValueOperands(op);
    needed.insert(operands.begin(), operands.end());
  }
  return true;
}

BackwardCut::Reading
BackwardCut::trace(const DenseSet<Value> &available) const {
  Reading reading;
  DenseSet<Value> seen;
  SmallVector<Value> pending(required);
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    bool isForward = originals.contains(value);
    if (isa<BlockArgument>(value)) {
      reading.read.insert(value);
      if (isForward)
        reading.bytes += getBytesMoved(value);
      continue;
    }
    bool isResult = resultNumbers.contains(value);
    if (isForward && isSaved(value) && !derived.contains(value)) {
      if (isSavedProduct(value))
        reading.bytes += getBytesMoved(value);
      if (isResult)
        reading.cutResults.insert(value);
      else
        reading.statistics.insert(value);
      continue;
    }
    if (available.contains(value)) {
      reading.cutResults.insert(value);
      reading.bytes += getBytesMoved(value);
      continue;
    }
    llvm::append_range(pending, value.getDefiningOp()->getOperands());
  }
  return reading;
}

/// Leaves out the statistics that follow from others, looking at the last one
/// first.
void BackwardCut::deriveStatistics(const DenseSet<Value> &available) {
  SmallVector<Value> statistics(current.statistics.getArrayRef());
  sortByPlace(statistics);
  DenseSet<Value> known(statistics.begin(), statistics.end());
  known.insert(current.cutResults.begin(), current.cutResults.end());
  for (Value value : llvm::reverse(statistics)) {
    known.erase(value);
    if (followsFrom(value, known))
      derived.insert(value);
    else
      known.insert(value);
  }
  if (!derived.empty())
    current = trace(available);
}

void BackwardCut::choose() {
  DenseSet<Value> available;
  current = trace(available);
  for (auto [value, index] : resultNumbers) {
    if (isa<BlockArgument>(value) || isSaved(value))
      continue;
    available.insert(value);
    Reading reading = trace(available);
    if (reading.bytes < current.bytes)
      current = std::move(reading);
    else
      available.erase(value);
  }
  deriveStatistics(available);
  for (Value value : current.cutResults)
    results.push_back(resultNumbers.lookup(value));
  llvm::sort(results);
  // The statistics are listed in the order in which the forward computes them.
  SmallVector<Value> statistics = current.statistics.takeVector();
  sortByPlace(statistics);
  current.statistics.insert(statistics.begin(), statistics.end());
}
