//===- RowMatrices.cpp - Matrices that may share a tile -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/analysis/RowMatrices.h"

#include "passes/analysis/MaskConditions.h"

using namespace mlir;
using namespace bastile;

/// The size of `type` along the last dimension of the batch.
static int64_t getMatrices(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  const int64_t rank = tensor.getRank();
  return rank < 3 ? 1 : tensor.getDimSize(rank - 3);
}

/// Whether the factors of `dot` in memory are the same for all matrices, but
/// for the one that has the rows of a tile, which has some of each.
static bool sharesFactors(tile::DotOp dot, const KernelSpace &space,
                          int64_t matrices) {
  for (unsigned index : {0, 1}) {
    Value factor = dot.getOperand(index);
    if (!isa<BlockArgument>(factor))
      continue;
    const bool hasRows = space.isInner(dot) && index == space.getRowFactor(dot);
    if (getMatrices(factor.getType()) != (hasRows ? matrices : 1))
      return false;
  }
  return true;
}

int64_t bastile::countRowMatrices(tile::KernelOp kernel,
                                  const KernelSpace &space) {
  if (!space.hasComputedLeft() || space.isTransposed())
    return 1;
  const int64_t matrices = getMatrices(space.getDot().getSumType());
  if (ShapedType::isDynamic(matrices))
    return 1;
  Block &body = kernel.getBody().front();
  for (Type result : kernel.getResultTypes()) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(result).getShape();
    if (getMatrices(result) != matrices || shape[shape.size() - 2] == 1)
      return 1;
  }
  for (Operation &op : body.without_terminator()) {
    if (auto dot = dyn_cast<tile::DotOp>(op);
        dot && !sharesFactors(dot, space, matrices))
      return 1;
    // Numbers may be others for each matrix.
    if (auto select = dyn_cast<arith::SelectOp>(op);
        select && space.isStreamed(select.getResult()))
      if (std::optional<Mask> mask = Mask::get(select, space);
          mask && llvm::any_of(mask->conditions, [](const MaskCondition &own) {
            return !own.numbers.empty();
          }))
        return 1;
  }
  return matrices;
}
