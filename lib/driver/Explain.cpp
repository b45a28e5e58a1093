//===- Explain.cpp - What kernels cost ------------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/Explain.h"

#include "dialect/Dimensions.h"
#include "dialect/ElementBytes.h"
#include "dialect/Rows.h"
#include "dialect/Tile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/schedule/ScheduleFields.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>

using namespace mlir;
using namespace bastile;

double KernelCost::getSeconds(int64_t rows, const Target &target) const {
  double bytes = static_cast<double>(bytesPerRow) * rows + bytesShared;
  return bytes / target.memoryBytesPerSecond;
}

/// How many programs a call of `rows` rows launches; each leaves one row of a
/// partial result.
static int64_t countPrograms(tile::RowsAttr schedule, const Target &target,
                             int64_t rows) {
  int64_t groups = llvm::divideCeil(rows, schedule.getRows());
  int64_t most = schedule.getPersistent() * target.multiprocessors /
                 std::max<int64_t>(1, schedule.getCluster());
  return most > 0 ? std::min(groups, most) : groups;
}

/// The number of rows of each tensor that has rows of its own.
using RowCounts = llvm::SmallVector<std::optional<int64_t>>;

/// The cost of a kernel in a call of `rows` rows, and the row counts of its
/// results; `inputs` are those of its operands.
static std::pair<KernelCost, RowCounts> getCost(tile::KernelOp kernel,
                                                int64_t rows,
                                                const Target &target,
                                                const RowCounts &inputs) {
  KernelCost cost;
  RowCounts results;
  cost.name = kernel.getSymName();
  tile::DotOp dot = getDot(kernel);
  if (kernel.getSchedule())
    cost.schedule = printFields(*kernel.getSchedule());
  // Only these go through rows, in sweeps.
  auto schedule = dyn_cast_or_null<tile::RowsAttr>(kernel.getScheduleAttr());
  if (schedule) {
    const KernelShape shape(kernel, KernelSpace(kernel));
    if (isLoop(ScheduleFields(schedule), shape))
      cost.sweeps = schedule.getThreads() > 1 ? shape.numSweeps
                                              : shape.reductionDepth + 1;
  }
  auto addTensor = [&](Type type, std::optional<int64_t> ownRows) {
    auto tensor = cast<RankedTensorType>(type);
    // How long some rows are only a call knows.
    if (ShapedType::isDynamic(tensor.getShape().back()))
      return;
    // A factor may have other rows than the product, such as those of a weight.
    if (dot && tensor.hasStaticShape())
      cost.bytesShared += tensor.getNumElements() * getElementBytes(tensor);
    else if (tensor.getRank() >= 2 && !ownRows)
      cost.bytesPerRow += getRowBytes(tensor);
    else
      cost.bytesShared += ownRows.value_or(1) * getRowBytes(tensor);
  };
  bool hasOwnRows = false;
  for (BlockArgument argument : kernel.getArguments()) {
    // A kernel may take an operand for its sizes only.
    if (!isRead(argument))
      continue;
    addTensor(argument.getType(), inputs[argument.getArgNumber()]);
    hasOwnRows |= inputs[argument.getArgNumber()].has_value();
  }
  Block &body = kernel.getBody().front();
  for (auto [value, type] : llvm::zip_equal(body.getTerminator()->getOperands(),
                                            kernel.getResultTypes())) {
    auto reduce = value.getDefiningOp<tile::ReduceRowsOp>();
    std::optional<int64_t> programs;
    if (reduce && reduce.getPartial() && schedule)
      programs = countPrograms(schedule, target, rows);
    results.push_back(programs);
    addTensor(type, programs);
  }
  if (hasOwnRows)
    return {cost, results};
  for (Operation &op : body) {
    auto type = op.getNumResults() == 1
                    ? dyn_cast<RankedTensorType>(op.getResult(0).getType())
                    : RankedTensorType();
    if (!type || type.getRank() < 2 || isa<tile::BroadcastOp>(op) ||
        ShapedType::isDynamic(type.getShape().back()))
      continue;
    // Each sum of a product multiplies and adds as many times as it is long.
    if (auto product = dyn_cast<tile::DotOp>(op))
      if (int64_t depth = cast<RankedTensorType>(product.getA().getType())
                              .getDimSize(product.getContractedDimension(0));
          !ShapedType::isDynamic(depth)) {
        cost.operationsPerRow += 2 * depth * type.getShape().back();
        continue;
      }
    // A reduction costs an operation for each element that it reads, not for
    // its one result.
    if (auto reduce = dyn_cast<tile::ReduceOp>(op))
      type = reduce.getInput().getType();
    if (ShapedType::isDynamic(type.getShape().back()))
      continue;
    cost.operationsPerRow += type.getShape().back();
  }
  return {cost, results};
}

/// Adds what `other`, the kernel of another row space, costs in the same
/// launch.
static void merge(KernelCost &cost, KernelCost other) {
  cost.bytesPerRow += other.bytesPerRow;
  cost.bytesShared += other.bytesShared;
  cost.operationsPerRow += other.operationsPerRow;
  cost.sweeps = std::max(cost.sweeps, other.sweeps);
  cost.merged.push_back(std::move(other.name));
}

std::vector<KernelCost> bastile::getKernelCosts(ModuleOp scheduled,
                                                ModuleOp tiled,
                                                const Target &target,
                                                int64_t rows) {
  SymbolTable kernels(scheduled), programs(tiled);
  std::vector<KernelCost> costs;
  DenseMap<Value, std::optional<int64_t>> counts;
  tiled.walk([&](tile::LaunchOp launch) {
    auto program = programs.lookup<tile::ProgramOp>(launch.getFirstName());
    auto getCostOf = [&](StringRef name, const RowCounts &inputs) {
      return getCost(kernels.lookup<tile::KernelOp>(name), rows, target,
                     inputs);
    };
    std::optional<ArrayAttr> merged = program.getMerged();
    if (!merged) {
      RowCounts inputs;
      for (Value input : launch.getInputs())
        inputs.push_back(counts.lookup(input));
      auto [cost, results] = getCostOf(program.getSymName(), inputs);
      cost.keptBytes = program.getSharedBytes();
      costs.push_back(std::move(cost));
      for (auto [value, count] : llvm::zip_equal(launch.getResults(), results))
        counts[value] = count;
      return;
    }
    // Kernels with partial results are never merged, so their counts are not
    // needed.
    const RowCounts none(launch.getInputs().size());
    costs.push_back(getCostOf(program.getSymName(), none).first);
    costs.back().keptBytes = program.getSharedBytes();
    // One program of two kernels may have more warps than each of theirs.
    if (isa<tile::LaunchAttr>(program.getSchedule()))
      costs.back().schedule = printFields(program.getSchedule());
    for (auto name : merged->getAsRange<StringAttr>())
      merge(costs.back(), getCostOf(name.getValue(), none).first);
  });
  return costs;
}
