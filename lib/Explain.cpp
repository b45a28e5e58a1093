//===- Explain.cpp - What kernels cost ------------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/Explain.h"

#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/KernelShape.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace bastile;

double KernelCost::getSeconds(int64_t rows, const Target &target) const {
  double bytes = static_cast<double>(bytesPerRow) * rows + bytesShared;
  return bytes / target.memoryBytesPerSecond;
}

/// Bytes of one row of `type`.
static int64_t getRowBytes(RankedTensorType type) {
  return type.getShape().back() * (type.getElementTypeBitWidth() / 8);
}

static KernelCost getCost(tile::KernelOp kernel) {
  KernelCost cost;
  cost.name = kernel.getSymName();
  if (std::optional<tile::ScheduleAttr> schedule = kernel.getSchedule()) {
    std::string text;
    llvm::raw_string_ostream(text) << *schedule;
    StringRef fields(text);
    fields.consume_front("#tile.schedule<");
    fields.consume_back(">");
    cost.schedule = fields;
    KernelShape shape = KernelShape::get(kernel);
    if (shape.numReductions > 0 &&
        schedule->getColumns() < shape.getSpan(schedule->getVector()))
      cost.passes = schedule->getThreads() > 1 ? shape.numWalks
                                               : shape.reductionDepth + 1;
  }
  auto addOperand = [&](Type type) {
    auto tensor = cast<RankedTensorType>(type);
    (tensor.getRank() >= 2 ? cost.bytesPerRow : cost.bytesShared) +=
        getRowBytes(tensor);
  };
  llvm::for_each(kernel.getArgumentTypes(), addOperand);
  llvm::for_each(kernel.getResultTypes(), addOperand);
  for (Operation &op : kernel.getBody().front()) {
    auto type = op.getNumResults() == 1
                    ? dyn_cast<RankedTensorType>(op.getResult(0).getType())
                    : RankedTensorType();
    if (!type || type.getRank() < 2 || isa<tile::BroadcastOp>(op))
      continue;
    // A reduction works on what it reads, not on its one result.
    if (auto reduce = dyn_cast<tile::ReduceOp>(op))
      type = reduce.getInput().getType();
    cost.operationsPerRow += type.getShape().back();
  }
  return cost;
}

/// Adds what `other`, the kernel of another row space, costs in the same
/// launch.
static void merge(KernelCost &cost, KernelCost other) {
  cost.bytesPerRow += other.bytesPerRow;
  cost.bytesShared += other.bytesShared;
  cost.operationsPerRow += other.operationsPerRow;
  cost.passes = std::max(cost.passes, other.passes);
  cost.merged.push_back(std::move(other.name));
}

std::vector<KernelCost> bastile::getKernelCosts(ModuleOp scheduled,
                                                ModuleOp tiled) {
  SymbolTable kernels(scheduled), programs(tiled);
  std::vector<KernelCost> costs;
  tiled.walk([&](tile::LaunchOp launch) {
    // The first variant has the name of the kernel.
    auto program = programs.lookup<tile::KernelOp>(
        cast<FlatSymbolRefAttr>(launch.getKernels()[0]).getValue());
    costs.push_back(
        getCost(kernels.lookup<tile::KernelOp>(program.getSymName())));
    if (auto merged = program->getAttrOfType<ArrayAttr>(
            tile::TileDialect::kMergedAttrName))
      for (auto name : merged.getAsRange<StringAttr>())
        merge(costs.back(),
              getCost(kernels.lookup<tile::KernelOp>(name.getValue())));
  });
  return costs;
}
