//===- SplitRows.cpp - Compute on the pieces of rows taken apart ----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Values whose columns correspond (the operands and the result of an addition)
// are taken apart in the same way, so all of them have to be known before one
// is rewritten: first the function's values are gathered into classes, then
// each class gets its number of pieces, then one walk builds the pieces.
//
// A kernel computes on rows of one length. Rows that meet in a split or a join,
// even by way of others, are therefore all cut to one length: the greatest that
// divides theirs.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Sizes.h"
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
RankedTensorType getPieceType(Value value, int64_t count) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.back() /= count;
  return type.clone(shape);
}

/// Whether all columns of `value` are equal by construction. Such a value has
/// pieces of any number and ties nothing to anything, which matters where CSE
/// has made one of several.
bool isUniform(Value value) {
  if (auto broadcast = value.getDefiningOp<tile::BroadcastOp>()) {
    Value source = broadcast.getSource();
    return !hasRows(source) || getLength(source) != getLength(value);
  }
  SplatElementsAttr splat;
  return matchPattern(value, m_Constant(&splat));
}

/// Whether `op` computes each column of its result from the same column of its
/// operands.
bool isColumnwise(Operation *op) {
  if (isa<tile::BroadcastOp, tile::IotaOp, tile::ReduceRowsOp,
          tile::StopGradientOp>(op))
    return true;
  return OpTrait::hasElementwiseMappableTraits(op) && op->getNumResults() == 1;
}

/// Whether `op` is a split or a join whose pieces are interleaved; nothing for
/// other ops.
std::optional<bool> isInterleaved(Operation *op) {
  if (auto split = dyn_cast<tile::SplitOp>(op))
    return split.getInterleaved();
  if (auto join = dyn_cast<tile::JoinOp>(op))
    return join.getInterleaved();
  return std::nullopt;
}

/// The row and the pieces of a split or a join.
std::pair<Value, ValueRange> getWholeAndPieces(Operation *op) {
  if (auto split = dyn_cast<tile::SplitOp>(op))
    return {split.getInput(), split.getPieces()};
  auto join = cast<tile::JoinOp>(op);
  return {join.getResult(), join.getPieces()};
}

/// Into how many pieces each value of a function is taken apart, and how.
class SplitAnalysis {
public:
  explicit SplitAnalysis(Block &block) : block(block) {}

  /// Fails with a diagnostic if some value cannot be taken apart as needed.
  LogicalResult run();

  /// 1 for values that stay whole.
  int64_t getCount(Value value) const {
    auto it = numbers.find(value);
    return it == numbers.end()
               ? 1
               : getLength(value) / units[components[it->second]];
  }
  /// Only for values of several pieces.
  bool isInterleaved(Value value) const {
    return *::isInterleaved(causes.lookup(groups[numbers.lookup(value)]));
  }

private:
  void number();
  void relate(Operation *op);
  LogicalResult relateKinds(Operation *op);
  LogicalResult verifyUses(Operation *op);

  Block &block;
  /// Uniform values have no number: each of their uses is on its own.
  DenseMap<Value, unsigned> numbers;
  /// Values whose columns correspond; later, values of which the pieces must
  /// lie in the same way.
  llvm::IntEqClasses groups;
  /// Values whose pieces must have one length, and that length.
  llvm::IntEqClasses components;
  SmallVector<int64_t> units;
  /// The first split or join in each group.
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
  if (::isInterleaved(op)) {
    auto [whole, pieces] = getWholeAndPieces(op);
    for (Value piece : pieces)
      if (find(whole) != numbers.end() && find(piece) != numbers.end())
        components.join(find(whole)->second, find(piece)->second);
    return;
  }
  if (!isColumnwise(op) || find(op->getResult(0)) == numbers.end())
    return;
  unsigned result = find(op->getResult(0))->second;
  // Of what an op is like, only the leading sizes matter.
  for (Value operand : getValueOperands(op))
    if (auto it = find(operand); it != numbers.end()) {
      groups.join(result, it->second);
      components.join(result, it->second);
    }
}

/// Notes how `op` takes its row apart. A piece that is taken apart in turn
/// makes more pieces of the row, which lie in one way only if both do.
LogicalResult SplitAnalysis::relateKinds(Operation *op) {
  auto [whole, pieces] = getWholeAndPieces(op);
  if (!numbers.contains(whole))
    return success();
  Operation *&cause = causes[groups[numbers.lookup(whole)]];
  if (!cause)
    cause = op;
  if (::isInterleaved(cause) == ::isInterleaved(op))
    return success();
  auto describe = [](Operation *op) {
    return *::isInterleaved(op) ? "interleaved" : "contiguous";
  };
  InFlightDiagnostic error =
      op->emitOpError("has ")
      << describe(op) << " pieces of rows of type " << whole.getType()
      << " that are also taken apart into " << describe(cause)
      << " pieces; use one of the two for both";
  error.attachNote(cause->getLoc()) << "'" << cause->getName() << "' op with "
                                    << describe(cause) << " pieces";
  return error;
}

/// Whether the pass knows how to compute `op` on pieces.
bool isSupported(Operation *op) {
  return isColumnwise(op) || ::isInterleaved(op) ||
         isa<tile::ReduceOp, func::ReturnOp>(op);
}

LogicalResult SplitAnalysis::verifyUses(Operation *op) {
  for (Value value : llvm::concat<Value>(llvm::to_vector(op->getOperands()),
                                         llvm::to_vector(op->getResults()))) {
    if (getCount(value) == 1)
      continue;
    InFlightDiagnostic error =
        op->emitOpError("needs whole rows of type ")
        << value.getType() << ", which are taken apart; split or join them in "
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
  components.compress();
  units.assign(components.getNumClasses(), 0);
  for (auto [value, number] : numbers) {
    int64_t &unit = units[components[number]];
    unit = std::gcd(unit, getLength(value));
  }
  SmallVector<Operation *> splits;
  for (Operation &op : block)
    if (::isInterleaved(&op))
      splits.push_back(&op);
  for (Operation *op : splits) {
    auto [whole, pieces] = getWholeAndPieces(op);
    for (Value piece : pieces)
      if (numbers.contains(whole) && getCount(piece) > 1)
        groups.join(numbers.lookup(whole), numbers.lookup(piece));
  }
  groups.compress();
  for (Operation *op : splits)
    if (failed(relateKinds(op)))
      return failure();
  auto result = block.getParentOp()->walk([&](Operation *op) {
    bool isSupportedHere = op->getBlock() == &block && isSupported(op);
    return isSupportedHere || succeeded(verifyUses(op))
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Builds the pieces, in the order of the block. What they replace is dead
/// then.
class RowSplitter {
public:
  RowSplitter(Block &block, const SplitAnalysis &analysis)
      : block(block), analysis(analysis),
        builder(block.getParentOp()->getContext()) {}

  void run();

private:
  void splitArguments();
  void rewrite(Operation *op);
  void rewrite(tile::SplitOp op);
  void rewrite(tile::JoinOp op);
  void rewrite(tile::ReduceOp op);
  void rewrite(func::ReturnOp op);
  void rewriteColumnwise(Operation *op);
  SmallVector<Value> buildColumnwise(Operation *op, int64_t count);
  SmallVector<Value> buildBroadcast(tile::BroadcastOp op, int64_t count);
  SmallVector<Value> buildIota(tile::IotaOp op, int64_t count);

  /// The `count` pieces of a value that was met already.
  SmallVector<Value> getPieces(Value value, int64_t count);
  Value getUniformPiece(Value value, int64_t count);
  /// A tensor with the leading sizes of `value`, for which no row need be
  /// whole.
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
};

void RowSplitter::splitArguments() {
  builder.setInsertionPointToStart(&block);
  for (BlockArgument argument : block.getArguments()) {
    int64_t count = analysis.getCount(argument);
    if (count == 1)
      continue;
    SmallVector<Type> types(count, getPieceType(argument, count));
    auto split =
        tile::SplitOp::create(builder, argument.getLoc(), types,
                              analysis.isInterleaved(argument), argument);
    setPieces(argument, llvm::to_vector_of<Value>(split.getPieces()));
  }
}

Value RowSplitter::getUniformPiece(Value value, int64_t count) {
  Value &piece = uniformPieces[{value, count}];
  if (piece)
    return piece;
  OpBuilder::InsertionGuard guard(builder);
  Operation *op = value.getDefiningOp();
  builder.setInsertionPointAfter(op);
  RankedTensorType type = getPieceType(value, count);
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

void RowSplitter::rewrite(tile::SplitOp op) {
  int64_t number = op.getPieces().size();
  for (auto [index, result] : llvm::enumerate(op.getPieces())) {
    int64_t held = analysis.getCount(result);
    SmallVector<Value> all = getPieces(op.getInput(), number * held), some;
    for (int64_t inner = 0; inner < held; ++inner)
      some.push_back(all[op.getInterleaved() ? index + number * inner
                                             : index * held + inner]);
    setPieces(result, some);
  }
}

void RowSplitter::rewrite(tile::JoinOp op) {
  int64_t number = op.getPieces().size();
  int64_t held = analysis.getCount(op.getResult()) / number;
  SmallVector<Value> all(number * held);
  for (auto [index, piece] : llvm::enumerate(op.getPieces()))
    for (auto [inner, value] : llvm::enumerate(getPieces(piece, held)))
      all[op.getInterleaved() ? index + number * inner : index * held + inner] =
          value;
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

/// An argument that is returned as it is stays so.
void RowSplitter::rewrite(func::ReturnOp op) {
  DenseMap<Value, Value> joined;
  for (OpOperand &operand : op->getOpOperands()) {
    Value value = operand.get();
    int64_t count = analysis.getCount(value);
    if (count == 1 || isa<BlockArgument>(value))
      continue;
    Value &join = joined[value];
    if (!join)
      join = tile::JoinOp::create(builder, value.getLoc(), value.getType(),
                                  analysis.isInterleaved(value),
                                  getPieces(value, count));
    operand.set(join);
  }
}

SmallVector<Value> RowSplitter::buildBroadcast(tile::BroadcastOp op,
                                               int64_t count) {
  SmallVector<Value> built;
  for (Value source : getPieces(op.getSource(), count))
    built.push_back(builder.createOrFold<tile::BroadcastOp>(
        op.getLoc(), getPieceType(op.getResult(), count), source,
        op.getLike()));
  return built;
}

/// All pieces have the same shape, so one numbering serves them.
SmallVector<Value> RowSplitter::buildIota(tile::IotaOp op, int64_t count) {
  RankedTensorType type = getPieceType(op.getResult(), count);
  Value like = op.getLike();
  auto number = [&](int64_t value) -> Value {
    Value scalar = arith::ConstantOp::create(builder, op.getLoc(),
                                             builder.getI32IntegerAttr(value));
    return tile::BroadcastOp::create(builder, op.getLoc(), type, scalar, like);
  };
  Value first = tile::IotaOp::create(builder, op.getLoc(), type, like, Value());
  int64_t distance = type.getShape().back();
  if (analysis.isInterleaved(op.getResult())) {
    first = arith::MulIOp::create(builder, op.getLoc(), first, number(count));
    distance = 1;
  }
  SmallVector<Value> built{first};
  for (int64_t piece = 1; piece < count; ++piece)
    built.push_back(arith::AddIOp::create(builder, op.getLoc(), first,
                                          number(piece * distance)));
  return built;
}

SmallVector<Value> RowSplitter::buildColumnwise(Operation *op, int64_t count) {
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
    return buildBroadcast(broadcast, count);
  if (auto iota = dyn_cast<tile::IotaOp>(op))
    return buildIota(iota, count);
  // Scalars, such as a select's condition, serve all pieces.
  SmallVector<SmallVector<Value>> operands;
  for (Value operand : op->getOperands())
    operands.push_back(hasRows(operand) ? getPieces(operand, count)
                                        : SmallVector<Value>(count, operand));
  SmallVector<Value> built;
  for (int64_t piece = 0; piece < count; ++piece) {
    OperationState state(op->getLoc(), op->getName());
    for (ArrayRef<Value> operand : operands)
      state.operands.push_back(operand[piece]);
    state.addTypes(getPieceType(op->getResult(0), count));
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
  if (auto returnOp = dyn_cast<func::ReturnOp>(op))
    return rewrite(returnOp);
  if (isColumnwise(op))
    rewriteColumnwise(op);
}

void RowSplitter::run() {
  SmallVector<Operation *> ops =
      llvm::map_to_vector(block, [](Operation &op) { return &op; });
  splitArguments();
  llvm::for_each(ops, [&](Operation *op) { rewrite(op); });
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

struct SplitRowsPass : public bastile::impl::SplitRowsBase<SplitRowsPass> {
  void runOnOperation() override {
    // What is not one block is no kernel's source, as 'fuse' reports.
    func::FuncOp func = getOperation();
    if (!func.getBody().hasOneBlock())
      return markAllAnalysesPreserved();
    Block &block = func.getBody().front();
    if (llvm::none_of(block, [](Operation &op) { return isInterleaved(&op); }))
      return markAllAnalysesPreserved();
    SplitAnalysis analysis(block);
    if (failed(analysis.run()))
      return signalPassFailure();
    RowSplitter(block, analysis).run();
  }
};

} // namespace
