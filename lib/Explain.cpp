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
#include <cmath>

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

namespace {
/// How many rows a tensor has: so many for each of the call's, and others.
struct RowCount {
  double perRow = 1;
  int64_t once = 0;
};
} // namespace

/// The rows of a partial result: one for each program.
static RowCount countPrograms(tile::ScheduleAttr schedule,
                              const Target &target) {
  if (schedule.getPersistent() == 0)
    return {1.0 / schedule.getRows(), 0};
  int64_t blocks = schedule.getPersistent() * target.multiprocessors;
  return {0, std::max<int64_t>(
                 1, blocks / std::max<int64_t>(1, schedule.getCluster()))};
}

/// The cost of a kernel whose operands have so many rows; without `inputs`, as
/// many as the call. Fills in those of its results.
static KernelCost getCost(tile::KernelOp kernel, ArrayRef<RowCount> inputs,
                          const Target &target,
                          llvm::SmallVectorImpl<RowCount> &results) {
  KernelCost cost;
  cost.name = kernel.getSymName();
  std::optional<tile::ScheduleAttr> schedule = kernel.getSchedule();
  if (schedule) {
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
  double bytesPerRow = 0, operationsPerRow = 0;
  auto addTensor = [&](Type type, RowCount rows) {
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getRank() < 2)
      rows = {0, 1};
    bytesPerRow += rows.perRow * getRowBytes(tensor);
    cost.bytesShared += rows.once * getRowBytes(tensor);
  };
  RowCount walked;
  for (BlockArgument argument : kernel.getArguments()) {
    RowCount rows =
        inputs.empty() ? RowCount() : inputs[argument.getArgNumber()];
    // An operand may be there for its sizes only.
    if (!isRead(argument))
      continue;
    addTensor(argument.getType(), rows);
    if (rows.perRow != 1)
      walked = rows;
  }
  Block &body = kernel.getBody().front();
  for (auto [value, type] : llvm::zip_equal(body.getTerminator()->getOperands(),
                                            kernel.getResultTypes())) {
    auto reduce = value.getDefiningOp<tile::ReduceRowsOp>();
    results.push_back(reduce && reduce.getPartial() && schedule
                          ? countPrograms(*schedule, target)
                          : RowCount());
    addTensor(type, results.back());
  }
  for (Operation &op : body) {
    auto type = op.getNumResults() == 1
                    ? dyn_cast<RankedTensorType>(op.getResult(0).getType())
                    : RankedTensorType();
    if (!type || type.getRank() < 2 || isa<tile::BroadcastOp>(op))
      continue;
    // A reduction works on what it reads, not on its one result.
    if (auto reduce = dyn_cast<tile::ReduceOp>(op))
      type = reduce.getInput().getType();
    operationsPerRow += walked.perRow * type.getShape().back();
  }
  cost.bytesPerRow = std::llround(bytesPerRow);
  cost.operationsPerRow = std::llround(operationsPerRow);
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
                                                ModuleOp tiled,
                                                const Target &target) {
  SymbolTable kernels(scheduled), programs(tiled);
  std::vector<KernelCost> costs;
  DenseMap<Value, RowCount> counts;
  tiled.walk([&](tile::LaunchOp launch) {
    // The first variant has the name of the kernel.
    auto program = programs.lookup<tile::KernelOp>(
        cast<FlatSymbolRefAttr>(launch.getKernels()[0]).getValue());
    auto merged =
        program->getAttrOfType<ArrayAttr>(tile::TileDialect::kMergedAttrName);
    llvm::SmallVector<RowCount> inputs, results;
    // Kernels that combine what programs left are never merged.
    if (!merged)
      for (Value input : launch.getInputs())
        inputs.push_back(counts.lookup(input));
    costs.push_back(
        getCost(kernels.lookup<tile::KernelOp>(program.getSymName()), inputs,
                target, results));
    if (!merged) {
      for (auto [value, rows] : llvm::zip_equal(launch.getResults(), results))
        counts[value] = rows;
      return;
    }
    for (auto name : merged.getAsRange<StringAttr>())
      merge(costs.back(),
            getCost(kernels.lookup<tile::KernelOp>(name.getValue()), {}, target,
                    results));
  });
  return costs;
}
