//===- RoundFactors.cpp - Factors of products in memory -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tensors/RoundFactors.h"

#include "dialect/Expression.h"
#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/analysis/Constants.h"
#include "passes/analysis/StreamedFactors.h"
#include <cmath>

using namespace mlir;
using namespace bastile;

/// Whether `value` repeats one number for each row of a tensor, or for all.
static bool repeatsStatistic(Value value) {
  auto broadcast = value.getDefiningOp<tile::BroadcastOp>();
  if (!broadcast || broadcast.repeatsRows())
    return false;
  auto source = dyn_cast<RankedTensorType>(broadcast.getSource().getType());
  return source && source.getRank() == broadcast.getType().getRank() &&
         source.getShape().back() == 1;
}

/// Whether `dot` multiplies `left` along its rows, which are those of its
/// result, and rounds it to the type `element`.
static bool roundsRows(tile::DotOp dot, Value left, Type element) {
  return dot.getA() == left && dot.getB() != left &&
         dot.getFactorType() == element && dot.getContract()[0] == 1 &&
         cast<RankedTensorType>(left.getType()).getShape().drop_back() ==
             dot.getSumType().getShape().drop_back();
}

/// Takes factors of rows out of left factors that are rounded by their products
/// alone: (s x) W = s (x W), where x needs no rounding and is in memory as it
/// is.
static void moveRowFactors(func::FuncOp func) {
  for (Operation &op : llvm::make_early_inc_range(func.front())) {
    if (!isa<arith::MulFOp, arith::DivFOp>(op) || op.use_empty())
      continue;
    Value left = op.getResult(0);
    const unsigned scale = repeatsStatistic(op.getOperand(1)) ? 1 : 0;
    auto wide = op.getOperand(1 - scale).getDefiningOp<arith::ExtFOp>();
    if (!wide || !repeatsStatistic(op.getOperand(scale)) ||
        (isa<arith::DivFOp>(op) && scale == 0))
      continue;
    Type element = getElementTypeOrSelf(wide.getIn().getType());
    if (!llvm::all_of(op.getUsers(), [&](Operation *user) {
          auto dot = dyn_cast<tile::DotOp>(user);
          return dot && roundsRows(dot, left, element);
        }))
      continue;
    auto repeated = op.getOperand(scale).getDefiningOp<tile::BroadcastOp>();
    for (Operation *user : llvm::make_early_inc_range(op.getUsers())) {
      auto dot = cast<tile::DotOp>(user);
      dot.getAMutable().assign(wide.getIn());
      OpBuilder builder(dot->getContext());
      builder.setInsertionPointAfter(dot);
      Value factor =
          tile::BroadcastOp::create(builder, op.getLoc(), dot.getSumType(),
                                    repeated.getSource(), dot.getResult());
      Operation *scaled = builder.clone(op);
      scaled->setOperand(scale, factor);
      scaled->setOperand(1 - scale, dot.getResult());
      scaled->getResult(0).setType(dot.getType());
      dot.getResult().replaceUsesWithIf(
          scaled->getResult(0), [&](OpOperand &use) {
            return use.getOwner() != scaled &&
                   use.getOwner() != factor.getDefiningOp();
          });
    }
    op.erase();
  }
}

/// The products that read `factor`, with sums of float32; none if it has other
/// readers.
static SmallVector<tile::DotOp> getProductsOf(Value factor) {
  SmallVector<tile::DotOp> dots;
  for (OpOperand &use : factor.getUses()) {
    auto dot = dyn_cast<tile::DotOp>(use.getOwner());
    if (dot && dot.getA() != dot.getB() &&
        dot.getSumType().getElementType().isF32())
      dots.push_back(dot);
    else if (getSizeOperand(use.getOwner()) != &use)
      return {};
  }
  return dots;
}

static void scaleProduct(tile::DotOp dot, double scale,
                         MutableArrayRef<Value> values) {
  SmallVector<OpOperand *> uses =
      llvm::map_to_vector(dot->getUses(), [](OpOperand &use) { return &use; });
  ImplicitLocOpBuilder builder(dot.getLoc(), dot);
  builder.setInsertionPointAfter(dot);
  Value product = (tile::Expr(builder, dot.getResult()) * scale).getValue();
  for (OpOperand *use : uses)
    use->set(product);
  llvm::replace(values, dot.getResult(), product);
}

void bastile::moveScales(Operation *first, MutableArrayRef<Value> values) {
  for (Operation &op : llvm::make_early_inc_range(
           llvm::make_range(first->getIterator(), first->getBlock()->end()))) {
    auto rounded = dyn_cast<arith::TruncFOp>(op);
    if (!rounded || !getElementTypeOrSelf(rounded.getType()).isBF16())
      continue;
    const SmallVector<tile::DotOp> dots = getProductsOf(rounded);
    auto scaled = getScaled(rounded.getIn().getDefiningOp());
    if (dots.empty() || !scaled || !std::isfinite(scaled->second) ||
        scaled->second == 0)
      continue;
    rounded.getInMutable().assign(scaled->first);
    for (tile::DotOp dot : dots)
      scaleProduct(dot, scaled->second, values);
  }
}

/// `value` of elements of the type `element`, built ahead of `dot`. Rows that
/// are joined are rounded piece by piece, as they are only put together in
/// memory.
static Value getRounded(tile::DotOp dot, Value value, Type element) {
  OpBuilder builder(dot);
  auto truncate = [&](Value of) -> Value {
    auto type = cast<RankedTensorType>(of.getType());
    return arith::TruncFOp::create(builder, dot.getLoc(), type.clone(element),
                                   of);
  };
  auto join = value.getDefiningOp<tile::JoinOp>();
  if (!join)
    return truncate(value);
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<Value> pieces = llvm::map_to_vector(join.getPieces(), truncate);
  return tile::JoinOp::create(builder, dot.getLoc(), type.clone(element),
                              join.getStrands(), pieces);
}

void bastile::roundFactors(func::FuncOp func) {
  auto isRounded = [](tile::DotOp dot, unsigned index) {
    return getElementTypeOrSelf(dot.getOperand(index).getType()) !=
           dot.getFactorType(index);
  };
  SmallVector<tile::DotOp> dots;
  for (auto dot : func.front().getOps<tile::DotOp>())
    if (isRounded(dot, 0) || isRounded(dot, 1))
      dots.push_back(dot);
  if (dots.empty())
    return;
  moveRowFactors(func);
  const DenseSet<Operation *> streamed = findStreamedOps(func).products;
  for (tile::DotOp dot : dots)
    for (unsigned index : {0, 1}) {
      if (!isRounded(dot, index) || (index == 0 && streamed.contains(dot)))
        continue;
      OpOperand &factor = dot->getOpOperand(index);
      Operation *producer = factor.get().getDefiningOp();
      factor.set(getRounded(dot, factor.get(), dot.getFactorType(index)));
      if (isa_and_present<tile::JoinOp>(producer) && producer->use_empty())
        producer->erase();
    }
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// Whether `op` computes rows of numbers and vectors that are repeated, and of
/// the values `repeated`, which are such rows: no operand has sizes for them.
static bool repeatsWithoutSizes(Operation &op,
                                const DenseSet<Value> &repeated) {
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
    return !broadcast.getLike() && !isRowTensor(broadcast.getSource());
  return OpTrait::hasElementwiseMappableTraits(&op) &&
         llvm::any_of(op.getOperands(), isRowTensor) &&
         llvm::all_of(op.getOperands(), [&](Value operand) {
           return !isRowTensor(operand) || repeated.contains(operand);
         });
}

void bastile::giveFactorsSizes(func::FuncOp func) {
  SmallVector<Value> values(func.getArguments());
  DenseSet<Value> repeated;
  auto giveSizes = [&](tile::BroadcastOp broadcast) {
    RankedTensorType type = broadcast.getType();
    const auto *source = llvm::find_if(values, [&](Value value) {
      auto other = dyn_cast<RankedTensorType>(value.getType());
      Operation *producer = value.getDefiningOp();
      return other && other.getRank() == type.getRank() &&
             other.getShape().drop_back() == type.getShape().drop_back() &&
             (!producer || producer->isBeforeInBlock(broadcast));
    });
    if (source != values.end())
      broadcast.getLikeMutable().assign(*source);
  };
  for (Operation &op : func.front().without_terminator()) {
    if (repeatsWithoutSizes(op, repeated)) {
      repeated.insert_range(op.getResults());
      continue;
    }
    if (!isa<tile::PieceOp>(op))
      llvm::append_range(values, op.getResults());
    if (!isa<tile::DotOp>(op))
      continue;
    llvm::SetVector<Value> needed(op.operand_begin(), op.operand_end());
    for (size_t next = 0; next < needed.size(); ++next) {
      if (!repeated.contains(needed[next]))
        continue;
      Operation *producer = needed[next].getDefiningOp();
      if (auto broadcast = dyn_cast<tile::BroadcastOp>(producer))
        giveSizes(broadcast);
      else
        needed.insert(producer->operand_begin(), producer->operand_end());
    }
  }
}
