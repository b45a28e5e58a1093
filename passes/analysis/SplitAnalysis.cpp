//===- SplitAnalysis.cpp - How many pieces rows have ----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/SplitAnalysis.h"

#include "dialect/ElementBytes.h"
#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include <numeric>

using namespace mlir;
using namespace bastile;

bool bastile::hasRows(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() >= 1 && !type.isDynamicDim(type.getRank() - 1);
}

static int64_t getLength(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}

bool bastile::isUniform(Value value) {
  if (auto broadcast = value.getDefiningOp<tile::BroadcastOp>()) {
    Value source = broadcast.getSource();
    return !hasRows(source) || getLength(source) == 1;
  }
  SplatElementsAttr splat;
  return matchPattern(value, m_Constant(&splat));
}

bool bastile::isColumnwise(Operation *op) {
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
    return isUniform(broadcast.getResult()) ||
           getLength(broadcast.getSource()) == getLength(broadcast.getResult());
  if (isa<tile::IotaOp, tile::ReduceRowsOp, tile::StopGradientOp>(op))
    return true;
  return OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1;
}

std::optional<int64_t> bastile::getStrands(Operation *op) {
  if (auto split = dyn_cast<tile::SplitOp>(op))
    return split.getStrands();
  if (auto join = dyn_cast<tile::JoinOp>(op))
    return join.getStrands();
  return std::nullopt;
}

/// The row and the pieces of a split or a join.
static std::pair<Value, ValueRange> getWholeAndPieces(Operation *op) {
  if (auto split = dyn_cast<tile::SplitOp>(op))
    return {split.getInput(), split.getPieces()};
  auto join = cast<tile::JoinOp>(op);
  return {join.getResult(), join.getPieces()};
}

int64_t SplitAnalysis::getCount(Value value) const {
  auto it = numbers.find(value);
  // Rows of no columns are never split.
  return it == numbers.end() || getLength(value) == 0
             ? 1
             : getLength(value) / units[components[it->second]];
}

void SplitAnalysis::number() {
  numbers.clear();
  groups.clear();
  components.clear();
  causes.clear();
  auto add = [&](Value value) {
    if (hasRows(value) && !isUniform(value))
      numbers.insert({value, numbers.size()});
  };
  llvm::for_each(block.getArguments(), add);
  for (Operation &op : block)
    llvm::for_each(op.getResults(), add);
  groups.grow(numbers.size());
  components.grow(numbers.size());
}

void SplitAnalysis::relate(Operation *op) {
  auto find = [&](Value value) { return numbers.find(value); };
  if (bastile::getStrands(op)) {
    auto [whole, pieces] = getWholeAndPieces(op);
    for (Value piece : pieces)
      if (find(whole) != numbers.end() && find(piece) != numbers.end())
        components.join(find(whole)->second, find(piece)->second);
    return;
  }
  if (!isColumnwise(op) || isWhole(op) ||
      find(op->getResult(0)) == numbers.end())
    return;
  unsigned result = find(op->getResult(0))->second;
  // Only the leading sizes matter of an operand that an op is `like`.
  for (Value operand : getValueOperands(op))
    if (auto it = find(operand); it != numbers.end()) {
      groups.join(result, it->second);
      components.join(result, it->second);
    }
}

/// Raises the strands of the row and of the pieces of `op` to the least numbers
/// that agree: a contiguous part of a row has the strands of the row, and one
/// of n strands of it has n times fewer. The strands that they had stay whole.
/// A uniform piece has no strands to raise, but those that the row asks for.
/// Returns whether rows and pieces are long enough.
bool SplitAnalysis::relateStrands(Operation *op, bool &changed) {
  auto [whole, pieces] = getWholeAndPieces(op);
  if (!numbers.contains(whole))
    return true;
  int64_t ratio = *bastile::getStrands(op);
  auto raise = [&](Value value, int64_t count) {
    int64_t &held = strands[groups[numbers.lookup(value)]];
    changed |= held != count;
    held = count;
  };
  for (Value piece : pieces) {
    bool isUniform = !numbers.contains(piece);
    int64_t inner = isUniform ? 1 : getStrands(piece);
    if (getLength(whole) % (ratio * inner) != 0)
      return false;
    int64_t least = std::lcm(getStrands(whole), ratio * inner);
    if (getLength(piece) % (least / ratio) != 0)
      return false;
    raise(whole, least);
    if (!isUniform)
      raise(piece, least / ratio);
  }
  return true;
}

/// Reports pieces that cannot agree, which only contiguous and interleaved
/// pieces together can bring about.
LogicalResult SplitAnalysis::reportMisfit(Operation *op,
                                          ArrayRef<Operation *> splits) {
  auto isLike = [&](Operation *other) {
    return (*bastile::getStrands(other) > 1) == (*bastile::getStrands(op) > 1);
  };
  auto describe = [](Operation *op) {
    return *bastile::getStrands(op) > 1 ? "interleaved" : "contiguous";
  };
  auto getComponent = [&](Operation *op) {
    return components[numbers.lookup(getWholeAndPieces(op).first)];
  };
  InFlightDiagnostic error =
      op->emitOpError("has ")
      << describe(op) << " pieces of rows of type "
      << getWholeAndPieces(op).first.getType()
      << " that do not fit the other pieces they are computed with; split "
      << "the rows in one way, or in functions of their own";
  for (Operation *other : splits)
    if (numbers.contains(getWholeAndPieces(other).first) && !isLike(other) &&
        getComponent(other) == getComponent(op)) {
      error.attachNote(other->getLoc())
          << "'" << other->getName() << "' op with " << describe(other)
          << " pieces";
      break;
    }
  return error;
}

LogicalResult SplitAnalysis::findStrands(ArrayRef<Operation *> splits) {
  strands.assign(groups.getNumClasses(), 1);
  // The loop ends: every change replaces the strands of some group by a
  // multiple of them that still divides the length of the group's rows, so no
  // group changes more often than that length has prime factors.
  for (bool changed = true; changed;) {
    changed = false;
    for (Operation *op : splits)
      if (!relateStrands(op, changed))
        return reportMisfit(op, splits);
  }
  return success();
}

void SplitAnalysis::findUnits(ArrayRef<Operation *> splits) {
  units.assign(components.getNumClasses(), 0);
  auto divide = [&](Value value, int64_t length) {
    int64_t &unit = units[components[numbers.lookup(value)]];
    unit = std::gcd(unit, length);
  };
  for (auto [value, number] : numbers)
    divide(value, getLength(value) / strands[groups[number]]);
  // The pieces of a join may be uniform.
  for (Operation *op : splits) {
    auto [whole, pieces] = getWholeAndPieces(op);
    if (numbers.contains(whole))
      divide(whole, getLength(pieces.front()) /
                        (getStrands(whole) / *bastile::getStrands(op)));
  }
}

/// Whether the columns of `dot` in `count` pieces, of which `strands`
/// neighbours are interleaved, are products that one kernel computes of pieces
/// of the right factor.
static bool hasPieces(tile::DotOp dot, int64_t count, int64_t strands) {
  // A kernel has at most two products of one left factor.
  constexpr int64_t most = 2;
  auto right = cast<RankedTensorType>(dot.getB().getType());
  const int64_t length = right.getDimSize(dot.getFreeDimension(1));
  if (count != most || ShapedType::isDynamic(length))
    return false;
  // Rows of the factor may lie anywhere. Columns are neighbours, and are copied
  // in parts of 16 bytes from the first one of each piece on.
  constexpr int64_t copyBytes = 16;
  return dot.getContract()[1] == 1 ||
         (strands == 1 &&
          length / count * getElementBytes(right) % copyBytes == 0);
}

/// Neighbours that are apart are stored, and read from memory, by no kernel of
/// a product.
bool SplitAnalysis::isOfPieces(tile::DotOp dot) const {
  Value result = dot.getResult();
  const int64_t count = getCount(result);
  if (count == 1 || !hasPieces(dot, count, getStrands(result)))
    return false;
  const unsigned own = numbers.lookup(result);
  auto needsWhole = [](OpOperand &use) {
    return isa<tile::DotOp, func::ReturnOp>(use.getOwner());
  };
  return getStrands(result) == 1 || llvm::none_of(numbers, [&](auto &entry) {
           auto [value, number] = entry;
           const bool isRead = isa<BlockArgument>(value) &&
                               components[number] == components[own] &&
                               strands[groups[number]] > 1;
           const bool isStored = groups[number] == groups[own] &&
                                 llvm::any_of(value.getUses(), needsWhole);
           return isRead || isStored;
         });
}

/// Whether the pass knows how to compute `op` on pieces.
static bool isSupported(Operation *op) {
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return !reduce.isOfGroups();
  return isColumnwise(op) || getStrands(op) ||
         isa<func::ReturnOp, tile::DotOp>(op);
}

LogicalResult SplitAnalysis::verifyUses(Operation *op) {
  for (Value value : llvm::concat<Value>(llvm::to_vector(op->getOperands()),
                                         llvm::to_vector(op->getResults()))) {
    if (getCount(value) == 1)
      continue;
    InFlightDiagnostic error = op->emitOpError("needs whole rows of type ")
                               << value.getType()
                               << ", which are split; split or join them in "
                               << "a function of its own";
    Operation *cause = causes.lookup(groups[numbers.lookup(value)]);
    error.attachNote(cause->getLoc()) << "'" << cause->getName() << "' op here";
    return error;
  }
  return success();
}

/// Whether `value` is an argument, of any float type, or the same in all
/// columns: what the kernel of a product reads whole.
static bool isReadWhole(Value value) {
  if (auto broadcast = value.getDefiningOp<tile::BroadcastOp>();
      broadcast && !isUniform(value))
    return value.hasOneUse() && isReadWhole(broadcast.getSource());
  if (Operation *op = value.getDefiningOp();
      isa_and_present<arith::ExtFOp, arith::TruncFOp>(op))
    return isReadWhole(op->getOperand(0));
  return !hasRows(value) || isUniform(value) || isa<BlockArgument>(value);
}

/// The op that computes with `value`, if there is one alone. Others may take
/// their sizes from it.
static Operation *getOnlyUser(Value value) {
  Operation *user = nullptr;
  for (OpOperand &use : value.getUses()) {
    if (&use == getSizeOperand(use.getOwner()))
      continue;
    if (user && user != use.getOwner())
      return nullptr;
    user = use.getOwner();
  }
  return user;
}

/// Leaves to the kernel of `dot` what follows it element by element, up to the
/// last value of the fewest bytes: that is what is stored, whole, and taken
/// apart in memory.
void SplitAnalysis::keepWhole(tile::DotOp dot) {
  SmallVector<Operation *> followers;
  size_t kept = 0;
  int64_t least = getElementBytes(dot.getType());
  Value value = dot.getResult();
  while (Operation *op = getOnlyUser(value)) {
    if (!OpTrait::hasElementwiseMappableTraits(op) ||
        op->getNumResults() != 1 || op->getBlock() != &block ||
        !llvm::all_of(op->getOperands(), [&](Value operand) {
          return operand == value || isReadWhole(operand);
        }))
      break;
    value = op->getResult(0);
    followers.push_back(op);
    auto type = cast<RankedTensorType>(value.getType());
    if (!isa<FloatType>(type.getElementType()) || getElementBytes(type) > least)
      continue;
    least = getElementBytes(type);
    kept = followers.size();
  }
  for (Operation *op : ArrayRef(followers).take_front(kept)) {
    wholes.insert(op);
    for (Value operand : op->getOperands())
      if (auto broadcast = operand.getDefiningOp<tile::BroadcastOp>();
          broadcast && !isUniform(operand))
        wholes.insert(broadcast);
  }
}

/// Keeps rows whole behind the products that stay whole. Returns whether that
/// leaves fewer rows to take apart.
bool SplitAnalysis::findWholes() {
  const size_t before = wholes.size();
  for (auto dot : block.getOps<tile::DotOp>())
    if (getCount(dot.getResult()) > 1 && !isOfPieces(dot))
      keepWhole(dot);
  return wholes.size() > before;
}

/// Finds the number of pieces of each value, and their strands.
LogicalResult SplitAnalysis::findPieces() {
  number();
  for (Operation &op : block)
    relate(&op);
  groups.compress();
  components.compress();
  SmallVector<Operation *> splits;
  for (Operation &op : block) {
    if (!bastile::getStrands(&op))
      continue;
    splits.push_back(&op);
    auto [whole, pieces] = getWholeAndPieces(&op);
    for (Value value : llvm::concat<Value>(SmallVector<Value>{whole},
                                           llvm::to_vector(pieces)))
      if (numbers.contains(value))
        causes.try_emplace(groups[numbers.lookup(value)], &op);
  }
  if (failed(findStrands(splits)))
    return failure();
  findUnits(splits);
  return success();
}

LogicalResult SplitAnalysis::run() {
  do
    if (failed(findPieces()))
      return failure();
  while (findWholes());
  auto result = block.getParentOp()->walk([&](Operation *op) {
    bool isSupportedHere = op->getBlock() == &block && isSupported(op);
    return isSupportedHere || succeeded(verifyUses(op))
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}
