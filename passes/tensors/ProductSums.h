//===- ProductSums.h - Gradients by numbers of rows -------------*- C++ -*-===//
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
// The weights of a softmax are w = exp(x - m) / l, with a maximum m and a sum l
// of each row. A backward computes them again, for each element of rows that no
// memory holds, where one number y of the row does for both:
//
//   w = exp(x - y ln 2),  y = (m + log l) log2 e,
//
// which a GPU computes as a power of 2 (PowersOf2.h). Where x may be as low as
// numbers are, m is subtracted for itself, and y = log2 l. The gradient a of w,
// and that of l, d / l, which is the same for all of the row, make
//
//   exp(x - m) (a / l + d / l) = w (a + d)
//
// the gradient of x: nothing is divided for each element any more.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TENSORS_PRODUCTSUMS_H
#define BASTILE_PASSES_TENSORS_PRODUCTSUMS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
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

/// The weights w of a function, and the number y of each of their rows.
struct NormalizedPower {
  mlir::Value weights, logarithm;
  /// Whether y is that of the maximum as well.
  bool ofBoth;
};

/// Adds to `func` the y of all weights that factors of products are computed
/// of, which no memory holds. Nothing reads it yet.
llvm::SmallVector<NormalizedPower> addLogarithms(mlir::func::FuncOp func);

/// Computes the copies of `powers` in a backward, and the gradients of their
/// exponents, of y alone. The ops of gradients begin at `first`.
void useLogarithms(llvm::ArrayRef<NormalizedPower> powers,
                   const mlir::IRMapping &copies, mlir::Operation *first);

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_PRODUCTSUMS_H
