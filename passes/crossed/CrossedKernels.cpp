//===- CrossedKernels.cpp - Kernels that compute one factor ---------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/crossed/CrossedKernels.h"

#include "dialect/KernelSpace.h"
#include "dialect/Rows.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace bastile;

namespace {

/// Compares values of the kernels of two launches.
class KernelComparison {
public:
  KernelComparison(tile::LaunchOp lhs, tile::LaunchOp rhs)
      : lhs(lhs), rhs(rhs) {}

  /// Whether `left`, of the kernel of `lhs`, is `right`, of that of `rhs`: an
  /// argument for which both launches have the same input, or the result of the
  /// same op on the same values.
  bool isSame(Value left, Value right);

private:
  bool isSameOp(Operation *left, Operation *right);

  tile::LaunchOp lhs, rhs;
  DenseMap<std::pair<Value, Value>, bool> known;
};

} // namespace

bool KernelComparison::isSameOp(Operation *left, Operation *right) {
  if (left->getName() != right->getName() ||
      left->getAttrDictionary() != right->getAttrDictionary() ||
      left->getResultTypes() != right->getResultTypes())
    return false;
  ValueRange ofLeft = getValueOperands(left), ofRight = getValueOperands(right);
  return ofLeft.size() == ofRight.size() &&
         llvm::all_of(llvm::zip(ofLeft, ofRight), [&](auto pair) {
           return isSame(std::get<0>(pair), std::get<1>(pair));
         });
}

bool KernelComparison::isSame(Value left, Value right) {
  auto argument = dyn_cast<BlockArgument>(left),
       other = dyn_cast<BlockArgument>(right);
  if (argument || other)
    return argument && other &&
           lhs.getInputs()[argument.getArgNumber()] ==
               rhs.getInputs()[other.getArgNumber()];
  auto [it, isNew] = known.try_emplace({left, right}, false);
  if (!isNew)
    return it->second;
  const bool same = isSameOp(left.getDefiningOp(), right.getDefiningOp()) &&
                    cast<OpResult>(left).getResultNumber() ==
                        cast<OpResult>(right).getResultNumber();
  return known[{left, right}] = same;
}

/// Whether some result of a kernel of `launch` takes the memory of an operand.
static bool isInPlace(tile::LaunchOp launch, const SymbolTable &symbols) {
  return llvm::any_of(launch.getNames(), [&](StringRef name) {
    auto kernel = symbols.lookup<tile::KernelOp>(name);
    return !kernel ||
           llvm::any_of(llvm::seq(kernel.getNumArguments()),
                        [&](unsigned index) {
                          return bool(kernel.getArgAttr(
                              index, tile::TileDialect::kInPlaceAttrName));
                        });
  });
}

/// The kernel of `launch`, if no other launch runs it and none of its results
/// takes the memory of an operand.
static tile::KernelOp getOwnKernel(tile::LaunchOp launch,
                                   SymbolTable &symbols) {
  if (launch.getKernels().size() != 1)
    return {};
  auto kernel = symbols.lookup<tile::KernelOp>(launch.getFirstName());
  if (!kernel || !isOverDimensions(kernel))
    return {};
  auto uses = SymbolTable::getSymbolUses(kernel, symbols.getOp());
  if (!uses || std::distance(uses->begin(), uses->end()) != 1)
    return {};
  return isInPlace(launch, symbols) ? tile::KernelOp() : kernel;
}

/// Whether `launch` may take place where `later` does, which follows it: no op
/// in between, nor `later`, needs what it computes, or writes what it reads.
static bool mayTakePlaceAt(tile::LaunchOp launch, tile::LaunchOp later,
                           const SymbolTable &symbols) {
  if (!launch->isBeforeInBlock(later) ||
      llvm::any_of(launch->getUsers(), [&](Operation *user) {
        return !later->isBeforeInBlock(user);
      }))
    return false;
  for (Operation *op = launch->getNextNode(); op != later;
       op = op->getNextNode())
    if (auto between = dyn_cast<tile::LaunchOp>(op);
        between && isInPlace(between, symbols))
      return false;
  return true;
}

/// The factor of `inner`, an inner product, that has the rows of tiles.
static Value getFactorOfRows(tile::DotOp inner, const KernelSpace &space) {
  return inner.getOperand(space.getRowFactor(inner));
}

/// Whether `kernel` has a result for each matrix of its batch, and adds up
/// those of none.
static bool isOfEachMatrix(tile::KernelOp kernel) {
  const tile::SpaceAttr space = *kernel.getSpace();
  const ArrayAttr result = space.getOfResult(0);
  return llvm::all_of(space.getDimensions(), [&](const auto &dimension) {
    return !dimension.name.getValue().starts_with("b") ||
           llvm::is_contained(result, dimension.name);
  });
}

/// Completes `crossed`, of two launches and their kernels, if these cross.
static bool complete(CrossedKernels &crossed) {
  const KernelSpace rows(crossed.overRows), columns(crossed.overColumns);
  if (!rows.isTransposed() || columns.isTransposed() ||
      columns.getDots().size() != 1 ||
      !KernelSpace::isLeftComputed(columns.getDot()) ||
      !isOfEachMatrix(crossed.overColumns))
    return false;
  crossed.columnsDot = columns.getDot();
  KernelComparison comparison(crossed.overRowsLaunch,
                              crossed.overColumnsLaunch);
  const auto *dot = llvm::find_if(rows.getDots(), [&](tile::DotOp own) {
    return comparison.isSame(own.getA(), crossed.columnsDot.getA());
  });
  if (dot == rows.getDots().end() || crossed.columnsDot.getContract()[1] != 0)
    return false;
  crossed.rowsDot = *dot;
  for (auto inner : crossed.overRows.getBody().front().getOps<tile::DotOp>())
    if (rows.isInner(inner) && comparison.isSame(getFactorOfRows(inner, rows),
                                                 crossed.columnsDot.getB())) {
      crossed.innerDot = inner;
      return true;
    }
  return false;
}

SmallVector<CrossedKernels> bastile::findCrossedKernels(
    func::FuncOp func, SymbolTable &symbols,
    llvm::function_ref<bool(const CrossedKernels &)> fit) {
  SmallVector<std::pair<tile::LaunchOp, tile::KernelOp>> all;
  for (auto launch : func.getOps<tile::LaunchOp>())
    if (tile::KernelOp kernel = getOwnKernel(launch, symbols);
        kernel && KernelSpace(kernel).hasComputedLeft())
      all.push_back({launch, kernel});
  SmallVector<CrossedKernels> found;
  DenseSet<Operation *> taken;
  for (auto &[launch, kernel] : all)
    for (auto &[other, otherKernel] : all) {
      CrossedKernels crossed;
      crossed.overRowsLaunch = launch;
      crossed.overRows = kernel;
      crossed.overColumnsLaunch = other;
      crossed.overColumns = otherKernel;
      if (launch != other && !taken.contains(launch) &&
          !taken.contains(other) &&
          (mayTakePlaceAt(launch, other, symbols) ||
           mayTakePlaceAt(other, launch, symbols)) &&
          complete(crossed) && fit(crossed)) {
        taken.insert(launch);
        taken.insert(other);
        found.push_back(crossed);
      }
    }
  return found;
}

bool bastile::returnsSums(const CrossedKernels &crossed) {
  tile::KernelOp kernel = crossed.overColumns;
  Operation *end = kernel.getBody().front().getTerminator();
  return end->getNumOperands() == 1 &&
         end->getOperand(0) == tile::DotOp(crossed.columnsDot).getResult();
}
