//===- RoundFactors.h - Factors of products in memory -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TENSORS_ROUNDFACTORS_H
#define BASTILE_PASSES_TENSORS_ROUNDFACTORS_H

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace bastile {

/// Rounds the float32 factors of products of narrower types, as far as they are
/// not streamed: then they lie in memory in the narrower type. What is rounded
/// by products alone, and is a row of such a type times a number, is that row,
/// and the number a factor of the products.
void roundFactors(mlir::func::FuncOp func);

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_ROUNDFACTORS_H
