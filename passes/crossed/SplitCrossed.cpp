//===- SplitCrossed.cpp - Sums that programs add up, on their own ---------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Which schedules kernels get is for a later pass to say. Here, those that the
// heuristic would choose tell whether a program of both kernels fits.
//
//===----------------------------------------------------------------------===//

#include "passes/Passes.h"

#include "dialect/Rows.h"
#include "dialect/space/SpaceBuilder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/TargetLookup.h"
#include "passes/crossed/CrossedProgram.h"
#include "passes/schedule/KernelSchedule.h"

namespace bastile {
#define GEN_PASS_DEF_SPLITCROSSED
#include "passes/Passes.h.inc"
} // namespace bastile

using namespace mlir;
using namespace bastile;

/// Whether `source` only says which sizes a result has, and has those of the
/// sums of `dot`.
static bool hasSizesOfSums(OpOperand &source, tile::DotOp dot) {
  auto type = dyn_cast<RankedTensorType>(source.get().getType());
  return &source == getSizeOperand(source.getOwner()) && type &&
         type.getShape() == dot.getSumType().getShape();
}

/// The ops that follow the product of the kernel over columns, in the order of
/// the block, if they need nothing but constants besides.
static std::optional<SmallVector<Operation *>>
findFollowing(const CrossedKernels &crossed) {
  tile::KernelOp kernel = crossed.overColumns;
  if (kernel.getNumResults() != 1 ||
      cast<RankedTensorType>(kernel.getResultTypes()[0]).getShape() !=
          tile::DotOp(crossed.columnsDot).getSumType().getShape())
    return std::nullopt;
  Block &body = kernel.getBody().front();
  llvm::DenseSet<Operation *> found;
  SmallVector<Value> pending(body.getTerminator()->getOperands());
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (op == crossed.columnsDot || (op && !found.insert(op).second))
      continue;
    // Numbers of rows and columns go along dimensions that sums alone have not.
    if (!op || isa<tile::DotOp, tile::IotaOp>(op))
      return std::nullopt;
    for (OpOperand &operand : op->getOpOperands())
      if (!hasSizesOfSums(operand, crossed.columnsDot))
        pending.push_back(operand.get());
  }
  SmallVector<Operation *> following;
  for (Operation &op : body)
    if (found.contains(&op))
      following.push_back(&op);
  return following;
}

/// Builds the kernel `name`, which takes the sums of `dot` and computes what
/// `kernel` does of them, which is `following`.
static tile::KernelOp buildKernel(tile::KernelOp kernel, tile::DotOp dot,
                                  ArrayRef<Operation *> following,
                                  StringRef name) {
  OpBuilder builder(kernel->getContext());
  builder.setInsertionPointAfter(kernel);
  auto own = tile::KernelOp::create(
      builder, kernel.getLoc(), name,
      builder.getFunctionType(dot.getSumType(), kernel.getResultTypes()));
  Block *body = builder.createBlock(&own.getBody());
  Value sums = body->addArgument(dot.getSumType(), dot.getLoc());
  IRMapping mapping;
  mapping.map(dot.getResult(), sums);
  for (Operation *op : following) {
    Operation *clone = builder.clone(*op, mapping);
    for (OpOperand &operand : op->getOpOperands())
      if (hasSizesOfSums(operand, dot))
        clone->setOperand(operand.getOperandNumber(), sums);
  }
  Value result = kernel.getBody().front().getTerminator()->getOperand(0);
  tile::ReturnOp::create(builder, kernel.getLoc(), mapping.lookup(result));
  own.setResAttrsAttr(kernel.getResAttrsAttr());
  return own;
}

/// Lets the kernel over columns return the float32 sums of its product, and
/// another kernel compute what is `following` them.
static LogicalResult splitFollowing(const CrossedKernels &crossed,
                                    ArrayRef<Operation *> following,
                                    SymbolTable &symbols) {
  tile::KernelOp kernel = crossed.overColumns;
  tile::DotOp dot = crossed.columnsDot;
  tile::KernelOp own =
      buildKernel(kernel, dot, following, (kernel.getSymName() + "_end").str());
  symbols.insert(own);
  kernel.getBody().front().getTerminator()->setOperand(0, dot);
  // What leads to the product may share constants with what follows it.
  for (Operation *op : llvm::reverse(following))
    if (op->use_empty())
      op->erase();
  kernel.setType(FunctionType::get(kernel.getContext(),
                                   kernel.getArgumentTypes(),
                                   TypeRange(dot.getSumType())));
  if (failed(updateSpace(kernel)) || failed(updateSpace(own)))
    return failure();

  tile::LaunchOp launch = crossed.overColumnsLaunch;
  OpBuilder builder(launch);
  auto ofSums = tile::LaunchOp::create(builder, launch.getLoc(),
                                       TypeRange(dot.getSumType()),
                                       launch.getKernels(), launch.getInputs());
  // One launch of both kernels will take the place of the later one.
  if (launch->isBeforeInBlock(crossed.overRowsLaunch))
    builder.setInsertionPointAfter(crossed.overRowsLaunch);
  auto ofFollowing = tile::LaunchOp::create(
      builder, launch.getLoc(), launch.getResultTypes(),
      builder.getArrayAttr(FlatSymbolRefAttr::get(own.getSymNameAttr())),
      ofSums.getResults());
  launch->replaceAllUsesWith(ofFollowing);
  launch.erase();
  return success();
}

namespace {
struct SplitCrossedPass
    : public bastile::impl::SplitCrossedBase<SplitCrossedPass> {
  using SplitCrossedBase::SplitCrossedBase;

  void runOnOperation() override {
    const Target *target = lookupTarget(getOperation(), this->target);
    if (!target)
      return signalPassFailure();
    if (target->isHost())
      return;
    if (failed(completeSpaces(getOperation())))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    for (auto func : getOperation().getOps<func::FuncOp>())
      for (const CrossedKernels &crossed :
           findCrossedKernels(func, symbols, [&](const CrossedKernels &found) {
             return fits(found, *target);
           }))
        if (auto following = *findFollowing(crossed);
            !following.empty() &&
            failed(splitFollowing(crossed, following, symbols)))
          return signalPassFailure();
  }

  static bool fits(const CrossedKernels &crossed, const Target &target) {
    if (!findFollowing(crossed))
      return false;
    auto getSchedule = [&](tile::KernelOp kernel) {
      return dyn_cast_or_null<tile::MatmulAttr>(
          ScheduleProbe(kernel, target).complete(getOpenSchedule(kernel)));
    };
    return fitsCrossedProgram(crossed, getSchedule(crossed.overRows),
                              getSchedule(crossed.overColumns), target);
  }
};
} // namespace
