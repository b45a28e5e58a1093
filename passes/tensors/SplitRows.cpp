//===- SplitRows.cpp - Compute on pieces of rows that are split -----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Values whose columns correspond, such as the operands and the result of an
// addition, are split in the same way, so all of them have to be known before
// one is rewritten: first the function's values are gathered into classes, then
// each class gets its number of pieces, then one walk over the function builds
// the pieces.
//
// A kernel computes on rows of one length. Rows that meet in a split or a join,
// even by way of others, are therefore all cut into pieces of one length. A row
// is first cut into contiguous parts, and each part into strands, the
// interleaved pieces. So each row first gets the fewest strands with which all
// that is interleaved in it, or in its pieces, comes out whole, and then the
// pieces of all rows get the greatest length that fits.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Rows.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/analysis/RowClass.h"
#include "llvm/ADT/IntEqClasses.h"
#include <numeric>

namespace bastile {
#define GEN_PASS_DEF_SPLITROWS
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

namespace {

/// Whether `value` has rows of a known length.
bool hasRows(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() >= 1 && !type.isDynamicDim(type.getRank() - 1);
}

int64_t getLength(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}

/// The type of one of `count` pieces of `value`.
RankedTensorType getTypeOfPiece(Value value, int64_t count) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.back() /= count;
  return type.clone(shape);
}

/// Whether all columns of `value` are equal by construction. Such a value has
/// any number of pieces and does not tie the values it meets to each other,
/// which matters where CSE has merged several such values.
bool isUniform(Value value) {
  if (auto broadcast = value.getDefiningOp<tile::BroadcastOp>()) {
    Value source = broadcast.getSource();
    return !hasRows(source) || getLength(source) == 1;
  }
  SplatElementsAttr splat;
  return matchPattern(value, m_Constant(&splat));
}

/// Whether `op` computes each column of its result from the same column of its
/// operands.
bool isColumnwise(Operation *op) {
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
    return isUniform(broadcast.getResult()) ||
           getLength(broadcast.getSource()) == getLength(broadcast.getResult());
  if (isa<tile::IotaOp, tile::ReduceRowsOp, tile::StopGradientOp>(op))
    return true;
  return OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1;
}

/// How many neighbouring pieces of a split or a join are interleaved with each
/// other; nothing for other ops.
std::optional<int64_t> getStrands(Operation *op) {
  if (auto split = dyn_cast<tile::SplitOp>(op))
    return split.getStrands();
  if (auto join = dyn_cast<tile::JoinOp>(op))
    return join.getStrands();
  return std::nullopt;
}

/// The row and the pieces of a split or a join.
std::pair<Value, ValueRange> getWholeAndPieces(Operation *op) {
  if (auto split = dyn_cast<tile::SplitOp>(op))
    return {split.getInput(), split.getPieces()};
  auto join = cast<tile::JoinOp>(op);
  return {join.getResult(), join.getPieces()};
}

/// The number of pieces of each value of a function, and their strands.
class SplitAnalysis {
public:
  explicit SplitAnalysis(Block &block) : block(block) {}

  /// Fails with a diagnostic if some value cannot be split as needed.
  LogicalResult run();

  /// The number of pieces of a value; 1 for values that stay whole.
  int64_t getCount(Value value) const {
    auto it = numbers.find(value);
    // Rows of no columns are never split.
    return it == numbers.end() || getLength(value) == 0
               ? 1
               : getLength(value) / units[components[it->second]];
  }
  /// How many neighbouring pieces of a value are interleaved with each other.
  int64_t getStrands(Value value) const {
    return strands[groups[numbers.lookup(value)]];
  }

private:
  void number();
  void relate(Operation *op);
  bool relateStrands(Operation *op, bool &changed);
  LogicalResult reportMisfit(Operation *op, ArrayRef<Operation *> splits);
  LogicalResult findStrands(ArrayRef<Operation *> splits);
  void findUnits(ArrayRef<Operation *> splits);
  LogicalResult verifyUses(Operation *op);

  Block &block;
  /// The number of each value. Uniform values have none, since each of their
  /// uses is split on its own.
  DenseMap<Value, unsigned> numbers;
  /// Values whose columns correspond, and the strands of their rows.
  llvm::IntEqClasses groups;
  SmallVector<int64_t> strands;
  /// Values whose pieces must have one length, and that length.
  llvm::IntEqClasses components;
  SmallVector<int64_t> units;
  /// The first split or join of each group.
  DenseMap<unsigned, Operation *> causes;
};

void SplitAnalysis::number() {
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
  if (::getStrands(op)) {
    auto [whole, pieces] = getWholeAndPieces(op);
    for (Value piece : pieces)
      if (find(whole) != numbers.end() && find(piece) != numbers.end())
        components.join(find(whole)->second, find(piece)->second);
    return;
  }
  if (!isColumnwise(op) || find(op->getResult(0)) == numbers.end())
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
  int64_t ratio = *::getStrands(op);
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
    return (*::getStrands(other) > 1) == (*::getStrands(op) > 1);
  };
  auto describe = [](Operation *op) {
    return *::getStrands(op) > 1 ? "interleaved" : "contiguous";
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
                        (getStrands(whole) / *::getStrands(op)));
  }
}

/// Whether the pass knows how to compute `op` on pieces.
bool isSupported(Operation *op) {
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

LogicalResult SplitAnalysis::run() {
  number();
  for (Operation &op : block)
    relate(&op);
  groups.compress();
  components.compress();
  SmallVector<Operation *> splits;
  for (Operation &op : block) {
    if (!::getStrands(&op))
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
  auto result = block.getParentOp()->walk([&](Operation *op) {
    bool isSupportedHere = op->getBlock() == &block && isSupported(op);
    return isSupportedHere || succeeded(verifyUses(op))
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Builds the pieces, in the order of the block, and leaves the ops that they
/// replace dead.
class RowSplitter {
public:
  RowSplitter(Block &block, const SplitAnalysis &analysis)
      : block(block), analysis(analysis),
        builder(block.getParentOp()->getContext()) {}

  void run();

private:
  /// Takes apart rows that are in memory: of arguments and products.
  void splitInMemory(Value value);
  void rewrite(Operation *op);
  void rewrite(tile::SplitOp op);
  void rewrite(tile::JoinOp op);
  void rewrite(tile::ReduceOp op);
  void rewriteInMemory(Operation *op);
  void rewriteColumnwise(Operation *op);
  SmallVector<Value> buildColumnwise(Operation *op, int64_t count);
  SmallVector<Value> buildBroadcast(tile::BroadcastOp op, int64_t count);
  SmallVector<Value> buildIota(tile::IotaOp op, int64_t count);

  /// The `count` pieces of a value that was visited before.
  SmallVector<Value> getPieces(Value value, int64_t count);
  Value getUniformPiece(Value value, int64_t count);
  /// The whole rows of a value that was visited before, in memory.
  Value getWhole(Value value);
  /// A tensor with the leading sizes of `value` that does not keep a whole row
  /// alive.
  Value getLike(Value value) {
    return getPieces(value, analysis.getCount(value)).front();
  }
  void setPieces(Value value, ArrayRef<Value> built) {
    if (built.size() == 1)
      value.replaceAllUsesWith(built.front());
    else
      pieces[value].assign(built.begin(), built.end());
  }

  Block &block;
  const SplitAnalysis &analysis;
  OpBuilder builder;
  DenseMap<Value, SmallVector<Value>> pieces;
  DenseMap<std::pair<Value, int64_t>, Value> uniformPieces;
  /// The rows that were put together, by the values that they are.
  DenseMap<Value, Value> joined;
};

void RowSplitter::splitInMemory(Value value) {
  const int64_t count = analysis.getCount(value);
  if (count == 1)
    return;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(value);
  SmallVector<Type> types(count, getTypeOfPiece(value, count));
  auto split = tile::SplitOp::create(builder, value.getLoc(), types,
                                     analysis.getStrands(value), value);
  setPieces(value, llvm::to_vector_of<Value>(split.getPieces()));
}

Value RowSplitter::getUniformPiece(Value value, int64_t count) {
  Value &piece = uniformPieces[{value, count}];
  if (piece)
    return piece;
  OpBuilder::InsertionGuard guard(builder);
  Operation *op = value.getDefiningOp();
  builder.setInsertionPointAfter(op);
  RankedTensorType type = getTypeOfPiece(value, count);
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op)) {
    piece = builder.createOrFold<tile::BroadcastOp>(
        op->getLoc(), type, broadcast.getSource(), broadcast.getLike());
    return piece;
  }
  SplatElementsAttr splat;
  matchPattern(value, m_Constant(&splat));
  piece =
      arith::ConstantOp::create(builder, op->getLoc(), splat.resizeSplat(type));
  return piece;
}

SmallVector<Value> RowSplitter::getPieces(Value value, int64_t count) {
  if (count == 1)
    return {value};
  if (isUniform(value))
    return SmallVector<Value>(count, getUniformPiece(value, count));
  return pieces.at(value);
}

/// Which of a row's pieces make up the piece `index` of a split or a join with
/// `strands`. There are `held` of them, which lie in that piece with
/// `heldStrands`.
SmallVector<int64_t> getPositions(int64_t index, int64_t strands, int64_t held,
                                  int64_t heldStrands) {
  int64_t firstPart = index / strands * (held / heldStrands);
  SmallVector<int64_t> positions;
  for (int64_t inner = 0; inner < held; ++inner) {
    int64_t part = firstPart + inner / heldStrands;
    int64_t strand = index % strands + inner % heldStrands * strands;
    positions.push_back(part * strands * heldStrands + strand);
  }
  return positions;
}

void RowSplitter::rewrite(tile::SplitOp op) {
  int64_t number = op.getPieces().size();
  for (auto [index, result] : llvm::enumerate(op.getPieces())) {
    int64_t held = analysis.getCount(result);
    SmallVector<Value> all = getPieces(op.getInput(), number * held), some;
    for (int64_t position : getPositions(index, op.getStrands(), held,
                                         analysis.getStrands(result)))
      some.push_back(all[position]);
    setPieces(result, some);
  }
}

void RowSplitter::rewrite(tile::JoinOp op) {
  int64_t count = analysis.getCount(op.getResult());
  int64_t held = count / op.getPieces().size();
  int64_t heldStrands = analysis.getStrands(op.getResult()) / op.getStrands();
  SmallVector<Value> all(count);
  for (auto [index, piece] : llvm::enumerate(op.getPieces()))
    for (auto [position, value] : llvm::zip_equal(
             getPositions(index, op.getStrands(), held, heldStrands),
             getPieces(piece, held)))
      all[position] = value;
  setPieces(op.getResult(), all);
}

void RowSplitter::rewrite(tile::ReduceOp op) {
  int64_t count = analysis.getCount(op.getInput());
  if (count == 1)
    return;
  SmallVector<Value> inputs = getPieces(op.getInput(), count);
  Value combined = inputs.front();
  for (Value input : ArrayRef(inputs).drop_front())
    combined = tile::ReduceOp::combine(builder, op.getLoc(), op.getKind(),
                                       combined, input);
  op.getInputMutable().assign(combined);
}

Value RowSplitter::getWhole(Value value) {
  const int64_t count = analysis.getCount(value);
  if (count == 1 || isInMemory(value))
    return value;
  Value &join = joined[value];
  if (!join)
    join = tile::JoinOp::create(builder, value.getLoc(), value.getType(),
                                analysis.getStrands(value),
                                getPieces(value, count));
  return join;
}

/// Products take whole rows and leave whole rows, as the function does.
void RowSplitter::rewriteInMemory(Operation *op) {
  for (OpOperand &operand : op->getOpOperands())
    operand.set(getWhole(operand.get()));
  llvm::for_each(op->getResults(), [&](Value value) { splitInMemory(value); });
}

SmallVector<Value> RowSplitter::buildBroadcast(tile::BroadcastOp op,
                                               int64_t count) {
  SmallVector<Value> built;
  for (Value source : getPieces(op.getSource(), count))
    built.push_back(builder.createOrFold<tile::BroadcastOp>(
        op.getLoc(), getTypeOfPiece(op.getResult(), count), source,
        op.getLike()));
  return built;
}

/// One `iota` serves all pieces, as they have the same shape.
SmallVector<Value> RowSplitter::buildIota(tile::IotaOp op, int64_t count) {
  RankedTensorType type = getTypeOfPiece(op.getResult(), count);
  Value like = op.getLike();
  auto number = [&](int64_t value) -> Value {
    Value scalar = arith::ConstantOp::create(builder, op.getLoc(),
                                             builder.getI32IntegerAttr(value));
    return tile::BroadcastOp::create(builder, op.getLoc(), type, scalar, like);
  };
  Value first = tile::IotaOp::create(builder, op.getLoc(), type, like);
  int64_t strands = analysis.getStrands(op.getResult());
  if (strands > 1)
    first = arith::MulIOp::create(builder, op.getLoc(), first, number(strands));
  int64_t partLength = strands * type.getShape().back();
  SmallVector<Value> built{first};
  for (int64_t piece = 1; piece < count; ++piece)
    built.push_back(arith::AddIOp::create(
        builder, op.getLoc(), first,
        number(piece / strands * partLength + piece % strands)));
  return built;
}

SmallVector<Value> RowSplitter::buildColumnwise(Operation *op, int64_t count) {
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
    return buildBroadcast(broadcast, count);
  if (auto iota = dyn_cast<tile::IotaOp>(op))
    return buildIota(iota, count);
  // A scalar, such as a select's condition, serves all pieces.
  SmallVector<SmallVector<Value>> operands;
  for (Value operand : op->getOperands())
    operands.push_back(hasRows(operand) ? getPieces(operand, count)
                                        : SmallVector<Value>(count, operand));
  SmallVector<Value> built;
  for (int64_t piece = 0; piece < count; ++piece) {
    OperationState state(op->getLoc(), op->getName());
    for (ArrayRef<Value> operand : operands)
      state.operands.push_back(operand[piece]);
    state.addTypes(getTypeOfPiece(op->getResult(0), count));
    state.addAttributes(op->getAttrs());
    built.push_back(builder.create(state)->getResult(0));
  }
  return built;
}

void RowSplitter::rewriteColumnwise(Operation *op) {
  if (OpOperand *like = getSizeOperand(op))
    like->set(getLike(like->get()));
  Value result = op->getResult(0);
  if (int64_t count = analysis.getCount(result); count > 1)
    setPieces(result, buildColumnwise(op, count));
}

void RowSplitter::rewrite(Operation *op) {
  builder.setInsertionPoint(op);
  if (auto split = dyn_cast<tile::SplitOp>(op))
    return rewrite(split);
  if (auto join = dyn_cast<tile::JoinOp>(op))
    return rewrite(join);
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return rewrite(reduce);
  if (isa<tile::DotOp, func::ReturnOp>(op))
    return rewriteInMemory(op);
  if (isColumnwise(op))
    rewriteColumnwise(op);
}

void RowSplitter::run() {
  SmallVector<Operation *> ops =
      llvm::map_to_vector(block, [](Operation &op) { return &op; });
  for (BlockArgument argument : llvm::reverse(block.getArguments()))
    splitInMemory(argument);
  llvm::for_each(ops, [&](Operation *op) { rewrite(op); });
  // A reduction of pieces of one element is replaced by its operand: in a
  // kernel of longer rows it would be taken for a reduction of those.
  for (auto reduce :
       llvm::make_early_inc_range(block.getOps<tile::ReduceOp>())) {
    if (reduce.getInput().getType() != reduce.getType())
      continue;
    reduce.replaceAllUsesWith(reduce.getInput());
    reduce.erase();
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

struct SplitRowsPass : public bastile::impl::SplitRowsBase<SplitRowsPass> {
  void runOnOperation() override {
    // A function of several blocks cannot become kernels; 'fuse' reports it.
    func::FuncOp func = getOperation();
    if (!func.getBody().hasOneBlock())
      return markAllAnalysesPreserved();
    Block &block = func.getBody().front();
    if (llvm::none_of(block,
                      [](Operation &op) { return bool(getStrands(&op)); }))
      return markAllAnalysesPreserved();
    SplitAnalysis analysis(block);
    if (failed(analysis.run()))
      return signalPassFailure();
    RowSplitter(block, analysis).run();
  }
};

} // namespace
