//===- KernelSpace.h - The dimensions that a kernel goes along --*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A kernel that multiplies, or whose rows have a length that only a call knows,
// goes along named dimensions: those of a batch, m along rows, n along columns,
// and k, which its products and reductions sum over, a part at a time. What has
// an element for each k is *streamed*: it is computed inside of the loop over k
// and never lies in memory as a whole.
//
//   product         y[m, n] += a[m, k] b[n, k]
//   row reductions  s[m]    += x[m, k]           x is streamed
//   attention       p[m, k]  = f(q[m, :] . key[k, :])       p is streamed,
//                   o[m, n] += p[m, k] v[k, n]      the first product is inner
//   its gradients   o[m, n] += p[k, m] v[k, n]      the factor is transposed
//
// A transposed factor has its rows along k and its columns along m: what each
// of its rows has one of, such as a maximum, is streamed as well.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_KERNELSPACE_H
#define BASTILE_DIALECT_KERNELSPACE_H

#include "dialect/Tile.h"
#include "llvm/ADT/SetVector.h"

namespace bastile {

/// Whether `kernel` goes along named dimensions, not along rows of one static
/// length.
bool isOverDimensions(tile::KernelOp kernel);

/// Whether `dot` sums over the rows of its left factor, whose columns are the
/// rows of the product.
bool sumsOverRows(tile::DotOp dot);

/// The ops that the left factor of `dot` is computed of. They stop at the
/// factors of products, which lie in memory, and at row statistics that take
/// reductions of other rows. Of a factor that is summed along its rows, the ops
/// that compute or reduce other rows of them are among the ops as well.
llvm::SetVector<mlir::Operation *> getComputedFactor(tile::DotOp dot);

/// What a kernel over named dimensions computes where.
class KernelSpace {
public:
  explicit KernelSpace(tile::KernelOp kernel);

  /// The products whose sums are complete behind the loop over k. All of them
  /// have the same shape.
  llvm::ArrayRef<tile::DotOp> getDots() const { return dots; }
  /// The first of them; null if the kernel only reduces.
  tile::DotOp getDot() const { return dots.empty() ? tile::DotOp() : dots[0]; }
  /// Whether the result of `dot` is streamed: it has k for its columns.
  bool isInner(tile::DotOp dot) const { return streamed.contains(dot); }
  /// Whether `dot` multiplies what the kernel computes.
  static bool isLeftComputed(tile::DotOp dot) {
    return !mlir::isa<mlir::BlockArgument>(dot.getA());
  }

  /// Whether computed left factors are transposed.
  bool isTransposed() const { return transposed; }
  /// Whether `op` computes a part of a left factor, or follows from one.
  bool isOfFactor(mlir::Operation *op) const { return streamed.contains(op); }
  /// Whether `value`, of an op, has an element for each k.
  bool isStreamed(mlir::Value value) const {
    return hasStreamed(value) && mlir::isa<mlir::OpResult>(value) &&
           isOfFactor(value.getDefiningOp());
  }
  /// Whether `value`, of a left factor, has an element for each k.
  bool hasStreamed(mlir::Value value) const;
  /// Whether the owner of `use` reads an element of it for each k.
  bool readsStream(mlir::OpOperand &use) const;
  /// Whether `op` reduces along k: its result is there behind the loop.
  bool reducesStream(mlir::Operation *op) const;

  /// Whether `value` has more than one column.
  static bool hasColumns(mlir::Value value);

private:
  llvm::SmallVector<tile::DotOp> dots;
  /// The ops whose results are streamed or follow from what is.
  llvm::DenseSet<mlir::Operation *> streamed;
  bool transposed = false;
};

/// Checks that `kernel`, over named dimensions, computes what one program can.
mlir::LogicalResult verifySpace(tile::KernelOp kernel);

} // namespace bastile

#endif // BASTILE_DIALECT_KERNELSPACE_H
