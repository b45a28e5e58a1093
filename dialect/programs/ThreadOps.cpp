//===- ThreadOps.cpp - Products as threads run them -----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/ElementBytes.h"
#include "dialect/Tile.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace bastile::tile;

LogicalResult
SharedMatrixAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                         int64_t offset, int64_t leading, int64_t stride,
                         int64_t swizzle, bool transposed) {
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    return emitError() << "a swizzle has 0, 32, 64 or 128 bytes, not "
                       << swizzle;
  // A descriptor has 14 bits for each, in units of 16 bytes.
  constexpr int64_t unit = 16, most = unit << 14;
  for (int64_t bytes : {offset, leading, stride})
    if (bytes < 0 || bytes >= most || bytes % unit != 0)
      return emitError() << bytes << " bytes are no multiple of " << unit
                         << " below " << most;
  // A GPU takes `leading` and `stride` the other way around here.
  if (transposed && swizzle == 0)
    return emitError() << "an operand that is transposed has a swizzle";
  return success();
}

LogicalResult WgmmaWaitOp::verify() {
  // The instruction has three bits for the number of groups.
  if (getPending() < 0 || getPending() > 7)
    return emitOpError("leaves ")
           << getPending() << " groups, which is not from 0 to 7";
  int64_t anchors = getAnchors();
  if (anchors < 0 || anchors > static_cast<int64_t>(getValues().size()))
    return emitOpError("has ")
           << anchors << " anchors among " << getValues().size() << " values";
  for (Value anchor : getValues().take_back(anchors))
    if (!anchor.getType().isF32())
      return emitOpError("has an anchor of type ")
             << anchor.getType() << ", not of float32";
  return success();
}

/// Adds to `values` those that control flow passes to `value`; nothing where it
/// is an argument of a function. Nothing around the op that asks has been
/// verified yet.
static void addPassed(Value value, SetVector<Value> &values) {
  auto argument = dyn_cast<BlockArgument>(value);
  Block *block = argument ? argument.getOwner() : nullptr;
  if (argument && !block->isEntryBlock()) {
    for (auto it = block->pred_begin(); it != block->pred_end(); ++it) {
      auto branch = dyn_cast<BranchOpInterface>((*it)->getTerminator());
      if (!branch)
        continue;
      SuccessorOperands passed =
          branch.getSuccessorOperands(it.getSuccessorIndex());
      if (argument.getArgNumber() < passed.size())
        if (Value from = passed[argument.getArgNumber()])
          values.insert(from);
    }
    return;
  }
  auto branch = dyn_cast<RegionBranchOpInterface>(
      argument ? block->getParentOp() : value.getDefiningOp());
  if (!branch)
    return;
  for (RegionBranchPoint point : branch.getAllRegionBranchPoints()) {
    SmallVector<RegionSuccessor> successors;
    branch.getSuccessorRegions(point, successors);
    for (const RegionSuccessor &successor : successors) {
      ValueRange inputs = successor.getSuccessorInputs();
      const auto index =
          static_cast<size_t>(llvm::find(inputs, value) - inputs.begin());
      auto terminator = dyn_cast_or_null<RegionBranchTerminatorOpInterface>(
          point.getTerminatorPredecessorOrNull());
      OperandRange passed = terminator
                                ? terminator.getSuccessorOperands(successor)
                                : branch.getEntrySuccessorOperands(successor);
      if (index < inputs.size() && index < passed.size())
        values.insert(passed[index]);
    }
  }
}

/// An op that gives a product the number `accumulator`, or one of those that it
/// may be, and is neither a fence nor a product; null if there is none.
static Operation *findUnordered(Value accumulator) {
  SetVector<Value> values;
  values.insert(accumulator);
  for (size_t index = 0; index < values.size(); ++index) {
    Operation *from = values[index].getDefiningOp();
    if (isa_and_present<WgmmaOp, WgmmaFenceOp>(from))
      continue;
    if (from && !isa<RegionBranchOpInterface>(from))
      return from;
    addPassed(values[index], values);
  }
  return nullptr;
}

LogicalResult WgmmaOp::verify() {
  int64_t columns = getColumns();
  if (columns < 8 || columns > 256 || columns % 8 != 0)
    return emitOpError("has ")
           << columns << " columns, which are no multiple of 8 up to 256";
  auto expected = static_cast<size_t>(columns / 2);
  if (getResults().size() != expected ||
      (!getAccumulators().empty() && getAccumulators().size() != expected))
    return emitOpError("of ")
           << columns << " columns has " << expected
           << " accumulators a thread, but " << getAccumulators().size()
           << " and " << getResults().size() << " are given";
  Type type = getElementType();
  bool isWide = type.isBF16() || type.isF16();
  if (!isWide && !isSmallFloat(type))
    return emitOpError("multiplies bf16, f16, f8E4M3FN or f8E5M2, not ")
           << type;
  if (std::optional<Type> other = getBElementType();
      other && (isWide || !isSmallFloat(*other)))
    return emitOpError("multiplies ")
           << type << " by " << *other << "; only f8E4M3FN and f8E5M2 may meet";
  bool hasRegisters = getFragment().size() == 4;
  if (hasRegisters == bool(getA()) || getFragment().size() % 4 != 0 ||
      bool(getA()) != bool(getAMatrixAttr()))
    return emitOpError(
        "takes its first operand from shared memory, with its layout, or from "
        "four registers");
  bool isTransposed = getBMatrix().getTransposed() ||
                      (getAMatrixAttr() && getAMatrix()->getTransposed());
  if (isTransposed && !isWide)
    return emitOpError("transposes operands of 16 bits, not of ") << type;
  // What moved after the fence, or was never fenced, the products may not see.
  for (Value accumulator : getAccumulators())
    if (Operation *from = findUnordered(accumulator))
      return emitOpError("adds to a value of ")
             << from->getName() << ", which no 'tile.wgmma_fence' orders";
  return success();
}
