//===- RoundFactors.cpp - Factors of products in memory -------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "passes/tensors/RoundFactors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/analysis/StreamedFactors.h"

using namespace mlir;
using namespace bastile;

void bastile::roundFactors(func::FuncOp func) {
  auto isRounded = [](tile::DotOp dot, unsigned index) {
    return getElementTypeOrSelf(dot.getOperand(index).getType()) !=
           dot.getFactorType();
  };
  SmallVector<tile::DotOp> dots;
  for (auto dot : func.front().getOps<tile::DotOp>())
    if (isRounded(dot, 0) || isRounded(dot, 1))
      dots.push_back(dot);
  if (dots.empty())
    return;
  const DenseSet<Operation *> streamed = findStreamedOps(func).products;
  for (tile::DotOp dot : dots)
    for (unsigned index : {0, 1}) {
      if (!isRounded(dot, index) || (index == 0 && streamed.contains(dot)))
        continue;
      OpOperand &factor = dot->getOpOperand(index);
      OpBuilder builder(dot);
      auto type = cast<RankedTensorType>(factor.get().getType());
      factor.set(arith::TruncFOp::create(builder, dot.getLoc(),
                                         type.clone(dot.getFactorType()),
                                         factor.get()));
    }
}
