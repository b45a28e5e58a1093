//===- SplitRows.cpp - Compute on pieces of rows that are split -----------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// All values have to be known before one is rewritten: first each class of
// values gets its number of pieces (SplitAnalysis.h), then one walk over the
// function builds the pieces.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Rows.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/analysis/SplitAnalysis.h"

namespace bastile {
#define GEN_PASS_DEF_SPLITROWS
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

namespace {

/// The type of one of `count` pieces of `value`.
RankedTensorType getTypeOfPiece(Value value, int64_t count) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.back() /= count;
  return type.clone(shape);
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
  /// Takes apart rows that are in memory: of arguments, products, and what
  /// follows products whole.
  void splitInMemory(Value value);
  void splitProduct(tile::DotOp dot);
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
  /// The products that are computed as pieces.
  DenseSet<Value> ofPieces;
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
  Operation *op = value.getDefiningOp();
  const bool isWhole = !op || isa<tile::DotOp>(op) || analysis.isWhole(op);
  if (count == 1 || (isWhole && !ofPieces.contains(value)))
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
  if (auto dot = dyn_cast<tile::DotOp>(op))
    splitProduct(dot);
}

/// Pieces of the columns of a product are products of the same left factor with
/// pieces of the right one, where these are: x [gate; up]^T is x gate^T beside
/// x up^T. Pieces of a factor are addresses; those of a product would have to
/// be in memory before another kernel could take them apart.
void RowSplitter::splitProduct(tile::DotOp dot) {
  Value result = dot.getResult();
  if (!analysis.isOfPieces(dot))
    return splitInMemory(result);
  ofPieces.insert(result);
  const int64_t count = analysis.getCount(result);
  SmallVector<Value> products;
  for (int64_t index = 0; index < count; ++index) {
    Value piece = tile::PieceOp::create(
        builder, dot.getLoc(), dot.getB(), dot.getFreeDimension(1), index,
        count, /*interleaved=*/analysis.getStrands(result) > 1);
    products.push_back(tile::DotOp::create(
        builder, dot.getLoc(), getTypeOfPiece(result, count), dot.getA(), piece,
        /*accumulator=*/Value(), dot.getContract()));
  }
  setPieces(result, products);
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
  if (analysis.isWhole(op))
    return splitInMemory(result);
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
  eraseDeadOps(block);
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
