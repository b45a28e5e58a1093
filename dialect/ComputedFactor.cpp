//===- ComputedFactor.cpp - What a left factor is computed of -------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "dialect/KernelSpace.h"

#include "dialect/Dimensions.h"
#include "dialect/Rows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace bastile;

namespace {

/// Finds the ops of one factor.
class FactorFinder {
public:
  explicit FactorFinder(tile::DotOp dot) : dot(dot) {}

  llvm::SetVector<Operation *> find();

private:
  /// Which reductions a statistic takes: those of the factor's rows, none, or
  /// others only.
  enum class Source { Own, None, Other };

  void findConstants();
  void addOperands(Operation *op);
  void addUsers(Operation *op);
  void findStatistics();
  Source getSource(Operation *op) const;

  tile::DotOp dot;
  /// The ops that follow from constants alone.
  DenseSet<Operation *> constants;
  /// The ops with elements for each column, and reductions of such.
  llvm::SetVector<Operation *> columned;
  /// The ops that compute a number for each row, or for all.
  llvm::SetVector<Operation *> statistics;
  DenseMap<Operation *, Source> sources;
};

} // namespace

void FactorFinder::addOperands(Operation *op) {
  for (Value operand : getValueOperands(op))
    if (Operation *producer = operand.getDefiningOp())
      (KernelSpace::hasColumns(operand) ? columned : statistics)
          .insert(producer);
}

void FactorFinder::findConstants() {
  for (Operation &op : dot->getBlock()->without_terminator())
    if (mayFollowDot(&op) &&
        llvm::all_of(getValueOperands(&op), [&](Value operand) {
          return constants.contains(operand.getDefiningOp());
        }))
      constants.insert(&op);
}

/// Other rows may share constants with those of the factor: what is computed of
/// more than constants does not belong to the factor for their sake.
void FactorFinder::addUsers(Operation *op) {
  if (isa<arith::ConstantOp>(op))
    return;
  for (Value result : op->getResults())
    for (OpOperand &use : result.getUses())
      if (Operation *user = use.getOwner();
          KernelSpace::hasColumns(result) && getSizeOperand(user) != &use &&
          (mayFollowDot(user) || isRowReduction(user)) &&
          (!constants.contains(op) || constants.contains(user)))
        columned.insert(user);
}

FactorFinder::Source FactorFinder::getSource(Operation *op) const {
  if (llvm::any_of(getValueOperands(op), KernelSpace::hasColumns)) {
    const bool isOwn = columned.contains(op) ||
                       (isRowReduction(op) &&
                        columned.contains(op->getOperand(0).getDefiningOp()));
    return isOwn ? Source::Own : Source::Other;
  }
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  auto left = cast<RankedTensorType>(tile::DotOp(dot).getA().getType());
  if (!mayFollowDot(op) && !isa<tile::IotaOp>(op))
    return Source::Other;
  if (type && type.getRank() > 1 &&
      type.getShape().drop_back() != left.getShape().drop_back())
    return Source::Other;
  Source source = Source::None;
  for (Value operand : getValueOperands(op)) {
    auto it = sources.find(operand.getDefiningOp());
    if (it == sources.end() || it->second == Source::None)
      continue;
    if (it->second == Source::Own)
      return Source::Own;
    source = Source::Other;
  }
  return source;
}

/// Adds to `columned` the statistics that the factor's own kernel computes.
void FactorFinder::findStatistics() {
  const SmallVector<Operation *> read(statistics.getArrayRef());
  for (size_t next = 0; next < statistics.size(); ++next)
    if (llvm::none_of(getValueOperands(statistics[next]),
                      KernelSpace::hasColumns))
      addOperands(statistics[next]);
  SmallVector<Operation *> sorted(statistics.getArrayRef());
  llvm::sort(sorted, [](Operation *lhs, Operation *rhs) {
    return lhs->isBeforeInBlock(rhs);
  });
  for (Operation *op : sorted)
    sources[op] = getSource(op);
  SmallVector<Operation *> pending(read);
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    if (sources.lookup(op) == Source::Other || !columned.insert(op))
      continue;
    for (Value operand : getValueOperands(op))
      if (Operation *producer = operand.getDefiningOp();
          producer && !KernelSpace::hasColumns(operand))
        pending.push_back(producer);
  }
}

llvm::SetVector<Operation *> FactorFinder::find() {
  Operation *factor = dot.getA().getDefiningOp();
  if (!factor)
    return {};
  columned.insert(factor);
  // Of a factor that is summed over its rows, those that read its ops are not
  // computed with it.
  const bool addsUsers = !sumsOverRows(dot);
  if (addsUsers)
    findConstants();
  for (size_t next = 0; next < columned.size(); ++next) {
    if (!isa<tile::DotOp>(columned[next]))
      addOperands(columned[next]);
    if (addsUsers)
      addUsers(columned[next]);
  }
  findStatistics();
  return std::move(columned);
}

llvm::SetVector<Operation *> bastile::getComputedFactor(tile::DotOp dot) {
  return FactorFinder(dot).find();
}
