//===- KernelShape.cpp - What scheduling needs of a kernel ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/KernelShape.h"

#include "dialect/ElementBytes.h"
#include "dialect/KernelSpace.h"
#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;

namespace bastile {

namespace {

/// Counts the sweeps over a row that several threads share.
class Sweeps {
public:
  Sweeps(tile::KernelOp kernel, const KernelSpace &space,
         const FollowingSums &following)
      : space(space), depths(following.getDepths()) {
    Block &body = kernel.getBody().front();
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
    if (isRowReduction(op))
      return read(cast<tile::ReduceOp>(op).getInput(), depths.getSweep(op));
    if (!isa<tile::ReturnOp, tile::ReduceRowsOp>(op))
      return;
    for (Value value : op->getOperands())
      read(value, depths.get(value));
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
      if (type.getRank() >= 2 && space.isWhole(value))
        readers[argument].insert(sweep);
      return;
    }
    for (Value operand : getValueOperands(value.getDefiningOp()))
      read(operand, sweep);
  }

  const KernelSpace &space;
  int64_t last = 0;
  ReductionDepths depths;
  DenseSet<std::pair<Value, int64_t>> visited;
  llvm::MapVector<BlockArgument, llvm::SmallSet<int64_t, 4>> readers;
};

} // namespace

/// Finds the sums of `kernel` that follow a maximum. Sums of anything but
/// powers do so only where that saves a sweep.
static FollowingSums findFollowingSums(tile::KernelOp kernel,
                                       const KernelSpace &space) {
  FollowingSums all(kernel.getBody().front());
  if (all.areAllPlain())
    return all;
  FollowingSums plain = all;
  plain.keepPlain();
  const bool savesSweep = Sweeps(kernel, space, all).getCount() <
                          Sweeps(kernel, space, plain).getCount();
  return savesSweep ? all : plain;
}

/// Whether `kernel` computes each column from the same column, or reduces whole
/// rows, and its elements have whole bytes. A combination of rows, unless of
/// statistics, adds columns of one row to columns of another.
static bool isAlongRows(tile::KernelOp kernel, const KernelSpace &space,
                        const KernelShape &shape) {
  OperandRange results =
      kernel.getBody().front().getTerminator()->getOperands();
  // The operands may be row vectors alone.
  auto isRow = [&](Value value) {
    return isRowTensor(value) && space.isWhole(value);
  };
  auto isReadRow = [&](BlockArgument argument) {
    return isRow(argument) && isRead(argument);
  };
  if (llvm::none_of(kernel.getArguments(), isReadRow) &&
      llvm::none_of(results, isRow))
    return false;
  auto isOperand = [&](Value value) {
    auto tensor = cast<RankedTensorType>(value.getType());
    auto argument = dyn_cast<BlockArgument>(value);
    return (tensor.getShape().back() == 1 || space.isWhole(value) ||
            (argument && !isRead(argument))) &&
           tensor.getElementTypeBitWidth() % 8 == 0;
  };
  auto isRowsOrOne = [](Value value) {
    auto tensor = cast<RankedTensorType>(value.getType());
    return tensor.getRank() > 1 || tensor.getShape().back() == 1;
  };
  return shape.leading > 0 && shape.rowLength > 1 && shape.groups.empty() &&
         !shape.band && !shape.combinesLongRows() &&
         llvm::all_of(kernel.getArguments(), isOperand) &&
         llvm::all_of(results, isOperand) &&
         llvm::all_of(results, isRowsOrOne) &&
         llvm::none_of(kernel.getBody().front(), [](Operation &op) {
           return isa<tile::SplitOp, tile::JoinOp, tile::RepeatBandsOp,
                      tile::PackBandsOp>(op);
         });
}

/// Bytes of each column that registers keep past a reduction: of values that do
/// not wait for the reduction but are needed together with values that do. A
/// number that is widened after it is loaded is kept narrow.
static int64_t getKeptBytes(tile::KernelOp kernel, const KernelSpace &space) {
  ReductionDepths depths;
  DenseSet<Value> kept;
  int64_t bytes = 0;
  auto keep = [&](Value value) {
    while (auto widened = value.getDefiningOp<arith::ExtFOp>())
      value = widened.getIn();
    bool isRow = isRowTensor(value) && space.isWhole(value) &&
                 !value.getDefiningOp<tile::BroadcastOp>();
    if (isRow && kept.insert(value).second)
      bytes += getElementBytes(cast<RankedTensorType>(value.getType()));
  };
  for (Operation &op : kernel.getBody().front()) {
    // A combination of rows takes its row at once and keeps nothing.
    if (op.getNumResults() != 1 || isRowReduction(&op) ||
        isa<tile::ReduceRowsOp>(op))
      continue;
    int64_t depth = depths.get(op.getResult(0));
    for (Value operand : getValueOperands(&op))
      if (isa<RankedTensorType>(operand.getType()) &&
          depths.get(operand) < depth)
        keep(operand);
  }
  return bytes;
}

/// The most values of a column that are alive at once where a column's values
/// are computed one by one, in the order of the formula: operands and numbers
/// that are only widened or repeated aside.
static int64_t countLiveValues(tile::KernelOp kernel,
                               const KernelSpace &space) {
  auto isComputed = [&](Value value) {
    Operation *op = value.getDefiningOp();
    return op &&
           !isa<tile::BroadcastOp, arith::ExtFOp, arith::ConstantOp>(op) &&
           isRowTensor(value) && space.isWhole(value);
  };
  Block &body = kernel.getBody().front();
  DenseMap<Value, Operation *> lastUses;
  // What is read of a value that is widened or repeated is the value itself.
  auto use = [&](Value value, Operation *user) {
    while (auto widened = value.getDefiningOp<arith::ExtFOp>())
      value = widened.getIn();
    if (isComputed(value))
      lastUses[value] = user;
  };
  for (Operation &op : body)
    for (Value operand : op.getOperands())
      use(operand, &op);
  DenseMap<Operation *, int64_t> ends;
  for (auto [value, last] : lastUses)
    ++ends[last];
  int64_t live = 0, most = 0;
  for (Operation &op : body) {
    for (Value result : op.getResults())
      live += lastUses.contains(result);
    most = std::max(most, live);
    live -= ends.lookup(&op);
  }
  return most;
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

KernelShape::KernelShape(tile::KernelOp kernel, const KernelSpace &space) {
  ReductionDepths depths;
  auto visitValue = [&](Value value) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    if (tensor && tensor.getRank() >= 2)
      leading = tensor.getRank() - 1;
    reductionDepth = std::max(reductionDepth, depths.get(value));
    usesFloat64 |= getElementTypeOrSelf(value.getType()).isF64();
  };
  for (BlockArgument argument : kernel.getArguments()) {
    visitValue(argument);
    hasFactor |= bool(kernel.getArgAttr(argument.getArgNumber(),
                                        tile::TileDialect::kFactorAttrName));
  }
  for (Operation &op : kernel.getBody().front()) {
    if (auto reduce = dyn_cast<tile::ReduceRowsOp>(op)) {
      hasPartialRows |= reduce.getPartial();
      numCombinedRows += !reduce.getPartial();
      numLongPartialRows += reduce.getPartial() &&
                            reduce.getInput().getType().getShape().back() > 1;
      // The result has the rank of partial results, which are one row a
      // program.
      if (reduce.getPartial())
        continue;
      if (reduce.keepsRows()) {
        combinedDimensions = reduce.getCombinedDimensions();
        keptRows =
            SmallVector<Attribute>(space.getProjection(reduce).drop_back());
      }
    }
    if (auto reduce = dyn_cast<tile::ReduceBandsOp>(op))
      band = reduce.getBand();
    for (Value result : op.getResults())
      visitValue(result);
    numReductions += isRowReduction(&op);
    ++numOps;
    numHostOps += countHostOps(&op);
  }
  if (const tile::SpaceDimension *columns = space.getColumns())
    rowLength = columns->size;
  for (auto reduce : kernel.getBody().front().getOps<tile::ReduceOp>())
    if (reduce.isOfGroups())
      reducedGroups.push_back(space.getGroup(reduce));
  groups = space.getGroups();

  if (numReductions > 0) {
    following = findFollowingSums(kernel, space);
    Sweeps sweeps(kernel, space, following);
    numSweeps = sweeps.getCount();
    rereadBytes = sweeps.getRereadBytes();
    startsWithShared = sweeps.startsWithShared();
    keptBytes = getKeptBytes(kernel, space);
  }
  numLiveValues = countLiveValues(kernel, space);
  for (BlockArgument argument : kernel.getArguments())
    (isRowTensor(argument) ? loadedBytes : sharedBytes) +=
        getRowBytes(cast<RankedTensorType>(argument.getType())) / rowLength;
  auto visitOperand = [&](Value value) {
    if (space.isWhole(value))
      minElementBytes =
          std::min(minElementBytes,
                   getElementBytes(cast<RankedTensorType>(value.getType())));
  };
  llvm::for_each(kernel.getArguments(), visitOperand);
  llvm::for_each(kernel.getBody().front().getTerminator()->getOperands(),
                 visitOperand);
  isAlongRows = ::bastile::isAlongRows(kernel, space, *this);
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

/// Vectors divide the row, unless those are much narrower than the widest and
/// many of the widest would lie inside of each row. Of several tensors, whose
/// ends of rows take as many instructions as the rest, vectors that fill a
/// register are wide enough, and twice as much in long rows.
int64_t KernelShape::chooseVector(int64_t bytes) const {
  constexpr int64_t fewestVectors = 32, fewThreads = 256, mostOfShort = 4;
  constexpr int64_t longRow = 8192;
  const int64_t dividing = getVector(bytes);
  int64_t widest = bytes / minElementBytes;
  bool isNarrow = dividing * 4 <= widest;
  if (numReductions > 0 && rowLength <= kMostElementsHeld) {
    if (!loadsOneTensor()) {
      const int64_t registers = rowLength < longRow ? 1 : 2;
      widest =
          std::max<int64_t>(1, registers * kRegisterBytes / minElementBytes);
      isNarrow = dividing < widest;
    } else if (rowLength < fewThreads * widest) {
      // Each of the few warps would have an edge.
      widest = std::min(widest, mostOfShort);
    }
  }
  return isNarrow && allowsMisalignment(widest) &&
                 rowLength >= fewestVectors * widest
             ? widest
             : dividing;
}

} // namespace bastile
