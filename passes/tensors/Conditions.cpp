//===- Conditions.cpp - What no kernel leaves for another -----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tensors/Conditions.h"

#include "dialect/KernelSpace.h"
#include "dialect/Rows.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/CastInterfaces.h"
#include "passes/analysis/Rounds.h"
#include "passes/analysis/StreamedFactors.h"
#include "passes/tensors/FunctionVerifier.h"

using namespace mlir;
using namespace bastile;

static bool canBeStored(Value value) {
  return !isa<RankedTensorType>(value.getType()) ||
         isOperandType(getElementTypeOrSelf(value.getType()));
}

bool bastile::canBeStored(Operation *op) {
  return llvm::all_of(op->getResults(),
                      [](Value result) { return ::canBeStored(result); });
}

namespace {

/// Computes values again on the rows of an op's result, in place of repeating
/// or choosing rows of them.
class RowMover {
public:
  RowMover(OpBuilder &builder, Operation *op)
      : builder(builder), op(op),
        result(cast<RankedTensorType>(op->getResult(0).getType())) {}

  void run() {
    builder.setInsertionPoint(op);
    Value moved = move(op->getOperand(0));
    // A condition for each row, or for each group, is repeated along the row as
    // before.
    if (moved.getType() != result)
      moved = tile::BroadcastOp::create(builder, op->getLoc(), result, moved,
                                        moved);
    op->replaceAllUsesWith(ValueRange(moved));
    op->erase();
  }

private:
  /// The type of `value` with the rows of the op's result.
  RankedTensorType getMovedType(Value value) const {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(result.getShape());
    shape.back() = type.getShape().back();
    return RankedTensorType::get(shape, type.getElementType());
  }

  /// The operand that has the leading sizes of the op's result, if there is
  /// one.
  Value getLike() const {
    OpOperand *like = getSizeOperand(op);
    return like ? like->get() : Value();
  }

  /// The operand of a cast is moved in place of its result: no kernel has to
  /// leave the result in memory.
  static bool isComputedAgain(Value value) {
    Operation *producer = value.getDefiningOp();
    return producer && OpTrait::hasElementwiseMappableTraits(producer) &&
           (!::canBeStored(value) || isa<CastOpInterface>(producer));
  }

  Value move(Value value) {
    if (Value known = moved.lookup(value))
      return known;
    Value built = build(value);
    moved[value] = built;
    return built;
  }

  Value build(Value value) {
    RankedTensorType type = getMovedType(value);
    if (isComputedAgain(value))
      return buildElementwise(value.getDefiningOp(), type);
    // A value that is the same for all rows needs only their sizes.
    SplatElementsAttr splat;
    if (getLike() && matchPattern(value, m_Constant(&splat))) {
      Value scalar = arith::ConstantOp::create(
          builder, op->getLoc(),
          cast<TypedAttr>(splat.getSplatValue<Attribute>()));
      return repeat(scalar, type, getLike());
    }
    auto broadcast = value.getDefiningOp<tile::BroadcastOp>();
    if (broadcast && isRowTensor(broadcast.getSource()) &&
        !::canBeStored(value)) {
      Value source = move(broadcast.getSource());
      return repeat(source, type, source);
    }
    if (broadcast && !isRowTensor(broadcast.getSource()) && getLike())
      return repeat(broadcast.getSource(), type, getLike());
    IRMapping mapping;
    mapping.map(op->getOperand(0), value);
    Operation *clone = builder.clone(*op, mapping);
    clone->getResult(0).setType(type);
    return clone->getResult(0);
  }

  Value repeat(Value source, RankedTensorType type, Value like) {
    return builder.createOrFold<tile::BroadcastOp>(op->getLoc(), type, source,
                                                   like);
  }

  Value buildElementwise(Operation *producer, RankedTensorType type) {
    OperationState state(producer->getLoc(), producer->getName());
    for (Value operand : producer->getOperands())
      state.operands.push_back(
          isa<RankedTensorType>(operand.getType()) ? move(operand) : operand);
    state.addTypes(type);
    state.addAttributes(producer->getAttrs());
    return builder.create(state)->getResult(0);
  }

  OpBuilder &builder;
  Operation *op;
  RankedTensorType result;
  DenseMap<Value, Value> moved;
};

} // namespace

/// Whether the rows of the result of `op` are not those of its operand.
static bool movesRows(Operation *op) {
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
    return broadcast.repeatsRows();
  return isa<tile::PackBandsOp, tile::RepeatBandsOp>(op);
}

void bastile::moveConditionsBehindRows(func::FuncOp func) {
  OpBuilder builder(func.getContext());
  SmallVector<Operation *> movers;
  for (Operation &op : func.front())
    if (movesRows(&op) && !canBeStored(&op))
      movers.push_back(&op);
  for (Operation *op : movers)
    RowMover(builder, op).run();
  if (movers.empty())
    return;
  eraseDeadOps(func.front());
}

void bastile::chooseConditions(func::FuncOp func) {
  SmallVector<arith::AndIOp> pairs;
  for (auto op : func.front().getOps<arith::AndIOp>())
    if (op->hasAttr(tile::TileDialect::kEitherAttrName))
      pairs.push_back(op);
  if (pairs.empty())
    return;
  const Rounds rounds(func);
  const StreamedFactors streamed(func, rounds);
  auto isTransposed = [&](Operation *op) {
    return llvm::any_of(streamed.getProducts(), [&](const auto &product) {
      return sumsOverRows(cast<tile::DotOp>(product.first)) &&
             product.second.contains(op);
    });
  };
  SmallVector<bool> chosen = llvm::map_to_vector(
      pairs, [&](arith::AndIOp op) { return isTransposed(op); });
  for (auto [op, takesSecond] : llvm::zip(pairs, chosen)) {
    op.replaceAllUsesWith(op->getOperand(takesSecond ? 1 : 0));
    op.erase();
  }
  eraseDeadOps(func.front());
}
