//===- ProductSums.h - Row sums of products, by shorter rows ----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// For each row, sum_k p_k (a b^T)_k = sum_d a_d (p b)_d: both add up the same
// products. Where p b is at hand, the right side is a sum over the columns of
// a, and needs neither p nor a b^T. The gradient of softmax(s) v has such a
// sum, of p = softmax(s) and the gradient a of the result, over all columns of
// s; p b is the result, which the forward leaves. So the gradient of s is
// computed element by element, once that sum is known.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TENSORS_PRODUCTSUMS_H
#define BASTILE_PASSES_TENSORS_PRODUCTSUMS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"

namespace bastile {

/// Takes row sums from op `first` of a block on that have the form of the left
/// side by the right side: p is the left factor of one of `products`, which
/// stand ahead of `first`, and numbers that each row has one of may multiply or
/// divide it. Nothing changes if a product waits for another sum of such long
/// rows all the same. Such sums among `values` are replaced there, too.
void shortenProductSums(mlir::Operation *first,
                        const llvm::DenseSet<mlir::Operation *> &products,
                        llvm::MutableArrayRef<mlir::Value> values);

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_PRODUCTSUMS_H
