//===- KernelShape.cpp - What scheduling needs of a kernel ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/KernelShape.h"

#include "dialect/ElementBytes.h"
#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;

namespace bastile {

tile::ReduceOp getSubtractedMaximum(tile::ReduceOp sum) {
  auto exp = sum.getInput().getDefiningOp<math::ExpOp>();
  if (!exp || sum.getKind() != tile::ReduceKind::Add || !isRowReduction(sum))
    return nullptr;
  auto difference = exp.getOperand().getDefiningOp<arith::SubFOp>();
  if (!difference)
    return nullptr;
  auto broadcast = difference.getRhs().getDefiningOp<tile::BroadcastOp>();
  if (!broadcast)
    return nullptr;
  auto max = broadcast.getSource().getDefiningOp<tile::ReduceOp>();
  bool isMaximum = max && max.getKind() == tile::ReduceKind::Max &&
                   isRowReduction(max) && max.getInput() == difference.getLhs();
  return isMaximum ? max : nullptr;
}

int64_t getReductionDepth(Value value, DenseMap<Value, int64_t> &depths) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return 0;
  auto it = depths.find(value);
  if (it != depths.end())
    return it->second;
  int64_t depth = 0;
  for (Value operand : getValueOperands(op))
    depth = std::max(depth, getReductionDepth(operand, depths));
  depth += isRowReduction(op);
  depths[value] = depth;
  return depth;
}

/// Whether `value` is only loaded or stored in pieces, or not at all: only its
/// sizes are of use.
static bool isOnlyPieces(Value value) {
  if (value.getDefiningOp<tile::JoinOp>())
    return true;
  return isa<BlockArgument>(value) &&
         llvm::all_of(value.getUses(), [](OpOperand &use) {
           Operation *user = use.getOwner();
           return isa<tile::SplitOp>(user) || getSizeOperand(user) == &use;
         });
}

bool isRead(BlockArgument argument) {
  return !llvm::all_of(argument.getUses(), [](OpOperand &use) {
    return getSizeOperand(use.getOwner()) == &use;
  });
}

void noteFollowingSums(tile::KernelOp kernel,
                       DenseMap<Value, int64_t> &depths) {
  for (auto reduce : kernel.getBody().front().getOps<tile::ReduceOp>())
    if (tile::ReduceOp maximum = getSubtractedMaximum(reduce))
      depths[reduce] = getReductionDepth(maximum, depths);
}

namespace {

/// Counts the sweeps over a row that several threads share.
class Sweeps {
public:
  Sweeps(tile::KernelOp kernel, int64_t rowLength) : rowLength(rowLength) {
    Block &body = kernel.getBody().front();
    noteFollowingSums(kernel, depths);
    for (Operation &op : body)
      visit(&op);
    // A result that takes the memory of an operand is stored in the last sweep.
    for (unsigned index = 0; index < kernel.getNumArguments(); ++index)
      if (kernel.getArgAttr(index, tile::TileDialect::kInPlaceAttrName))
        for (Value value : body.getTerminator()->getOperands())
          if (!value.getDefiningOp<tile::ReduceRowsOp>())
            read(value, last);
  }

  int64_t getCount() const { return last + 1; }

  /// Whether the first sweep reads nothing but what all rows share.
  bool startsWithShared() const {
    return llvm::none_of(
        readers, [](const auto &reader) { return reader.second.count(0); });
  }

  /// Bytes of the arguments that several sweeps read.
  int64_t getRereadBytes() const {
    int64_t bytes = 0;
    for (const auto &[argument, sweeps] : readers)
      if (sweeps.size() > 1)
        bytes += getRowBytes(cast<RankedTensorType>(argument.getType()));
    return bytes;
  }

private:
  void visit(Operation *op) {
    if (isRowReduction(op)) {
      tile::ReduceOp maximum = getSubtractedMaximum(cast<tile::ReduceOp>(op));
      Value input = maximum ? maximum.getInput() : op->getOperand(0);
      int64_t sweep = getReductionDepth(input, depths);
      return read(op->getOperand(0), sweep);
    }
    if (!isa<tile::ReturnOp, tile::ReduceRowsOp>(op))
      return;
    for (Value value : op->getOperands())
      read(value, getReductionDepth(value, depths));
  }

  /// Notes what sweep number `sweep` reads to compute `value`, statistics
  /// aside.
  void read(Value value, int64_t sweep) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || type.getShape().back() == 1)
      return;
    last = std::max(last, sweep);
    if (!visited.insert({value, sweep}).second)
      return;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (type.getRank() >= 2 && type.getShape().back() >= rowLength)
        readers[argument].insert(sweep);
      return;
    }
    for (Value operand : getValueOperands(value.getDefiningOp()))
      read(operand, sweep);
  }

  int64_t rowLength;
  int64_t last = 0;
  DenseMap<Value, int64_t> depths;
  DenseSet<std::pair<Value, int64_t>> visited;
  llvm::MapVector<BlockArgument, llvm::SmallSet<int64_t, 4>> readers;
};

} // namespace

/// Whether `kernel` computes each column from the same column, or reduces whole
/// rows, and its elements have whole bytes. A combination of rows, unless of
/// statistics, adds columns of one row to columns of another.
static bool isAlongRows(tile::KernelOp kernel, const KernelShape &shape) {
  // The operands may be row vectors alone.
  auto isRow = [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return tensor.getRank() > 1 && tensor.getShape().back() == shape.rowLength;
  };
  auto isReadRow = [&](BlockArgument argument) {
    return isRow(argument.getType()) && isRead(argument);
  };
  if (llvm::none_of(kernel.getArguments(), isReadRow) &&
      llvm::none_of(kernel.getResultTypes(), isRow))
    return false;
  auto isOperand = [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    int64_t length = tensor.getShape().back();
    return (length == 1 || length == shape.rowLength) &&
           tensor.getElementTypeBitWidth() % 8 == 0;
  };
  auto isRowsOrOne = [](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return tensor.getRank() > 1 || tensor.getShape().back() == 1;
  };
  return shape.leading > 0 && shape.rowLength > 1 && shape.groups.empty() &&
         !shape.band && !shape.combinesLongRows() &&
         llvm::all_of(kernel.getArgumentTypes(), isOperand) &&
         llvm::all_of(kernel.getResultTypes(), isOperand) &&
         llvm::all_of(kernel.getResultTypes(), isRowsOrOne) &&
         llvm::none_of(kernel.getBody().front(), [](Operation &op) {
           return isa<tile::SplitOp, tile::JoinOp, tile::RepeatBandsOp,
                      tile::PackBandsOp>(op);
         });
}

/// Bytes of each column that registers keep past a reduction: of values that do
/// not wait for the reduction but are needed together with values that do. A
/// number that is widened after it is loaded is kept narrow.
static int64_t getKeptBytes(tile::KernelOp kernel, int64_t rowLength) {
  DenseMap<Value, int64_t> depths;
  DenseSet<Value> kept;
  int64_t bytes = 0;
  auto keep = [&](Value value) {
    while (auto widened = value.getDefiningOp<arith::ExtFOp>())
      value = widened.getIn();
    auto type = cast<RankedTensorType>(value.getType());
    bool isRow = type.getRank() >= 2 && type.getShape().back() == rowLength &&
                 !value.getDefiningOp<tile::BroadcastOp>();
    if (isRow && kept.insert(value).second)
      bytes += getElementBytes(type);
  };
  for (Operation &op : kernel.getBody().front()) {
    // A combination of rows takes its row at once and keeps nothing.
    if (op.getNumResults() != 1 || isRowReduction(&op) ||
        isa<tile::ReduceRowsOp>(op))
      continue;
    int64_t depth = getReductionDepth(op.getResult(0), depths);
    for (Value operand : getValueOperands(&op))
      if (isa<RankedTensorType>(operand.getType()) &&
          getReductionDepth(operand, depths) < depth)
        keep(operand);
  }
  return bytes;
}

/// About how many ops the host's processor takes to compute a vector of `op`.
static int64_t countHostOps(Operation *op) {
  auto isRow = [](Type result) {
    auto type = dyn_cast<RankedTensorType>(result);
    return type && type.getShape().back() != 1;
  };
  if (llvm::none_of(op->getResultTypes(), isRow))
    return 1;
  if (isa<math::ExpOp, math::Exp2Op, math::LogOp, math::Log2Op, math::RsqrtOp>(
          op))
    return 16;
  bool isFunction =
      op->getName().getDialectNamespace() ==
          math::MathDialect::getDialectNamespace() &&
      !isa<math::AbsFOp, math::AbsIOp, math::SqrtOp, math::FmaOp, math::FloorOp,
           math::CeilOp, math::RoundEvenOp, math::TruncOp, math::CopySignOp>(
          op);
  return isFunction || isa<arith::RemFOp>(op) ? 64 : 1;
}

KernelShape KernelShape::get(tile::KernelOp kernel) {
  KernelShape shape;
  DenseMap<Value, int64_t> depths;
  llvm::SetVector<int64_t> lengths;
  auto visitValue = [&](Value value) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    if (tensor && tensor.getRank() >= 2)
      shape.leading = tensor.getRank() - 1;
    if (tensor && !isOnlyPieces(value)) {
      shape.rowLength = std::max(shape.rowLength, tensor.getShape().back());
      lengths.insert(tensor.getShape().back());
    }
    shape.reductionDepth =
        std::max(shape.reductionDepth, getReductionDepth(value, depths));
    shape.usesFloat64 |= getElementTypeOrSelf(value.getType()).isF64();
  };
  for (BlockArgument argument : kernel.getArguments()) {
    visitValue(argument);
    shape.hasFactor |= bool(kernel.getArgAttr(
        argument.getArgNumber(), tile::TileDialect::kFactorAttrName));
  }
  for (Operation &op : kernel.getBody().front()) {
    if (auto reduce = dyn_cast<tile::ReduceRowsOp>(op)) {
      shape.hasPartialRows |= reduce.getPartial();
      shape.numCombinedRows += !reduce.getPartial();
      shape.numLongPartialRows +=
          reduce.getPartial() &&
          reduce.getInput().getType().getShape().back() > 1;
      // The result has the rank of partial results, which are one row a
      // program.
      if (reduce.getPartial())
        continue;
      if (reduce.keepsRows()) {
        shape.combinedDimensions = reduce.getCombinedDimensions();
        shape.keptSizes =
            SmallVector<int64_t>(reduce.getType().getShape().drop_back());
      }
    }
    if (auto reduce = dyn_cast<tile::ReduceBandsOp>(op))
      shape.band = reduce.getBand();
    for (Value result : op.getResults())
      visitValue(result);
    shape.numReductions += isRowReduction(&op);
    ++shape.numOps;
    shape.numHostOps += countHostOps(&op);
  }
  for (auto reduce : kernel.getBody().front().getOps<tile::ReduceOp>())
    if (reduce.isOfGroups())
      shape.reducedGroups.push_back(shape.rowLength /
                                    reduce.getType().getShape().back());
  for (int64_t length : lengths)
    if (length != 1 && length != shape.rowLength)
      shape.groups.push_back(shape.rowLength / length);

  if (shape.numReductions > 0) {
    Sweeps sweeps(kernel, shape.rowLength);
    shape.numSweeps = sweeps.getCount();
    shape.rereadBytes = sweeps.getRereadBytes();
    shape.startsWithShared = sweeps.startsWithShared();
    shape.keptBytes = getKeptBytes(kernel, shape.rowLength);
  }
  for (BlockArgument argument : kernel.getArguments())
    (isRowTensor(argument) ? shape.loadedBytes : shape.sharedBytes) +=
        getRowBytes(cast<RankedTensorType>(argument.getType())) /
        shape.rowLength;
  auto visitOperand = [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getShape().back() == 1 ||
        tensor.getShape().back() % shape.rowLength != 0)
      return;
    shape.minElementBytes =
        std::min(shape.minElementBytes, getElementBytes(tensor));
  };
  for (Type type : kernel.getArgumentTypes())
    visitOperand(type);
  for (Type type : kernel.getResultTypes())
    visitOperand(type);
  shape.isAlongRows = ::bastile::isAlongRows(kernel, shape);
  return shape;
}

bool KernelShape::allowsMisalignment(int64_t vector) const {
  // Numbers of columns have 32 bits.
  constexpr int64_t kMostColumns = int64_t(1) << 30;
  return isAlongRows && rowLength >= 2 * vector - 1 && rowLength < kMostColumns;
}

int64_t KernelShape::getGroupColumns() const {
  int64_t columns = 1;
  for (int64_t group : groups)
    columns = std::lcm(columns, group);
  return columns;
}

int64_t KernelShape::getVector(int64_t bytes) const {
  int64_t vector = std::max<int64_t>(1, bytes / minElementBytes);
  auto divides = [&](int64_t columns) { return columns % vector == 0; };
  while (!divides(rowLength) || !llvm::all_of(groups, divides))
    vector /= 2;
  return vector;
}

} // namespace bastile
