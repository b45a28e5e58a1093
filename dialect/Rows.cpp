//===- Rows.cpp - Rows of values, and the sources of sizes ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/Rows.h"

#include "dialect/ElementBytes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace bastile;

bool bastile::isRowTensor(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() >= 2;
}

bool bastile::isRowReduction(Operation *op) {
  auto reduce = dyn_cast<tile::ReduceOp>(op);
  return reduce && !reduce.isOfGroups();
}

int64_t bastile::getRowBytes(RankedTensorType type) {
  return type.getShape().back() * getElementBytes(type);
}

OpOperand *bastile::getSizeOperand(Operation *op) {
  Value like;
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
    like = broadcast.getLike();
  else if (auto iota = dyn_cast<tile::IotaOp>(op))
    like = iota.getLike();
  else if (auto repeat = dyn_cast<tile::RepeatBandsOp>(op))
    like = repeat.getLike();
  // Ops on tensors have `like` as their last operand.
  return like ? &op->getOpOperands().back() : nullptr;
}

ValueRange bastile::getValueOperands(Operation *op) {
  ValueRange operands = op->getOperands();
  return getSizeOperand(op) ? operands.drop_back() : operands;
}

bool bastile::isRead(BlockArgument argument) {
  return !llvm::all_of(argument.getUses(), [](OpOperand &use) {
    return getSizeOperand(use.getOwner()) == &use;
  });
}

Value bastile::buildRowCount(OpBuilder &builder, Location loc,
                             tile::ProgramOp program, int64_t space) {
  ArrayRef<BlockArgument> sizes = program.getSizes(space);
  if (sizes.empty())
    return arith::ConstantIndexOp::create(builder, loc, 1);
  Value count = sizes.front();
  for (Value size : sizes.drop_front())
    count = arith::MulIOp::create(builder, loc, count, size);
  return count;
}

Value bastile::getSizeRoot(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    // The result has other rows than the operand.
    auto reduce = dyn_cast<tile::ReduceRowsOp>(op);
    if (isa<tile::PackBandsOp, tile::DotOp>(op) ||
        (reduce && reduce.keepsRows()))
      return value;
    if (OpOperand *source = getSizeOperand(op)) {
      value = source->get();
      continue;
    }
    // Rows may be repeated without one: static sizes say how many.
    auto broadcast = dyn_cast<tile::BroadcastOp>(op);
    if (broadcast && broadcast.repeatsRows())
      return value;
    auto source = llvm::find_if(op->getOperands(), isRowTensor);
    if (source == op->operand_end())
      return value;
    value = *source;
  }
  return value;
}

void bastile::replaceSizeSources(
    Block &block, llvm::function_ref<Value(Value, bool)> choose) {
  for (Operation &op : block) {
    OpOperand *source = getSizeOperand(&op);
    if (!source || !isRowTensor(source->get()))
      continue;
    // The columns of a result may have a size that only some values tell.
    auto isStatic = [](Value value) {
      auto type = cast<RankedTensorType>(value.getType());
      return !ShapedType::isDynamic(type.getShape().back());
    };
    const bool needsColumns = !isStatic(op.getResult(0));
    Value chosen = choose(getSizeRoot(source->get()), needsColumns);
    if (chosen && (!needsColumns || !isStatic(chosen)))
      source->set(chosen);
  }
}

void bastile::eraseDeadOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

void bastile::repeatFoldedNumbers(Operation *top) {
  top->walk([](Operation *op) {
    if (!OpTrait::hasElementwiseMappableTraits(op) || op->getNumResults() != 1)
      return;
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    auto like = llvm::find_if(op->getOperands(), isRowTensor);
    SmallVector<OpFoldResult> folded;
    if (!type || type.hasStaticShape() || like == op->operand_end() ||
        failed(op->fold(folded)) || folded.size() != 1)
      return;
    auto splat = dyn_cast_if_present<SplatElementsAttr>(
        dyn_cast<Attribute>(folded.front()));
    if (!splat)
      return;
    OpBuilder builder(op);
    Value number = arith::ConstantOp::create(
        builder, op->getLoc(),
        cast<TypedAttr>(splat.getSplatValue<Attribute>()));
    op->replaceAllUsesWith(
        tile::BroadcastOp::create(builder, op->getLoc(), type, number, *like));
    op->erase();
  });
}
