//===- RoundFactors.h - Factors of products in memory -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TENSORS_ROUNDFACTORS_H
#define BASTILE_PASSES_TENSORS_ROUNDFACTORS_H

#include "mlir/IR/Operation.h"

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace bastile {

/// Rounds the float32 factors of products of narrower types, as far as they are
/// not streamed: then they lie in memory in the narrower type. What is rounded
/// by products alone, and is a row of such a type times a number, is that row,
/// and the number a factor of the products.
void roundFactors(mlir::func::FuncOp func);

/// Takes constants out of what is rounded to bf16 for products alone, from op
/// `first` of a block on: (c x) W = c (x W), and the sums are fewer than the
/// elements of x. Values of f16, whose range is smaller, may need the constant.
/// Such products among `values` are replaced there, too.
void moveScales(mlir::Operation *first,
                llvm::MutableArrayRef<mlir::Value> values);

/// Gives a source of sizes to tensors of a constant shape that repeat a number
/// or a vector, where products multiply them or what is computed of them: the
/// kernel that computes them has no other operand with their rows.
void giveFactorsSizes(mlir::func::FuncOp func);

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_ROUNDFACTORS_H
