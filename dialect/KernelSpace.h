//===- KernelSpace.h - The dimensions that a kernel goes along --*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A kernel has a space of named dimensions (`#tile.space`), and each of its
// values a projection of it. A kernel on rows goes through rows of any leading
// dimensions, along one dimension of columns and groups of these.
//
// A kernel that multiplies, or whose rows have a length that only a call knows,
// goes along those of a batch, m along rows, n along columns, and k, which its
// products and reductions sum over, a part at a time. What has an element for
// each k is *streamed*: it is computed inside of the loop over k and never lies
// in memory as a whole.
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

/// Whether `kernel` goes along m, n and k, not along rows of one static length.
bool isOverDimensions(tile::KernelOp kernel);

/// Whether `dot` sums over the rows of its left factor, whose columns are the
/// rows of the product.
bool sumsOverRows(tile::DotOp dot);

/// The ops that the left factor of `dot` is computed of. They stop at the
/// factors of products, which lie in memory, and at row statistics that take
/// reductions of other rows. Of a factor that is summed along its rows, the ops
/// that compute or reduce other rows of them are among the ops as well.
llvm::SetVector<mlir::Operation *> getComputedFactor(tile::DotOp dot);

/// What a kernel over m, n and k computes for left factors of its products.
class FactorOps {
public:
  /// Those of a kernel whose body is `body`. Without products, all of its ops
  /// compute what is streamed.
  explicit FactorOps(mlir::Block &body);

  /// Whether computed left factors are transposed.
  bool isTransposed() const { return transposed; }
  /// Whether `op` computes a part of a left factor, or follows from one.
  bool contains(mlir::Operation *op) const { return ops.contains(op); }
  /// Whether `value`, of a left factor, has an element for each k.
  bool hasStreamed(mlir::Value value) const;
  /// Whether the owner of `use` reads an element of it for each k.
  bool readsStream(mlir::OpOperand &use) const;
  /// The factor of `dot` that has the rows of its tiles, 0 for the left one.
  /// Tiles of what is transposed have their rows along those of the right one.
  unsigned getRowFactor(tile::DotOp dot) const {
    return contains(dot) && transposed ? 1 : 0;
  }

private:
  llvm::DenseSet<mlir::Operation *> ops;
  bool transposed = false;
};

/// Reads the space of a kernel, which has to have one.
class KernelSpace {
public:
  explicit KernelSpace(tile::KernelOp kernel)
      : KernelSpace(kernel, kernel.getSpaceAttr()) {}
  KernelSpace(tile::KernelOp kernel, tile::SpaceAttr space);

  /// The projection of `value`: of an argument the one in which it is read
  /// first.
  llvm::ArrayRef<mlir::Attribute> getProjection(mlir::Value value) const;
  /// The dimension of `value` along its rows; null if there is none.
  const tile::SpaceDimension *getColumns(mlir::Value value) const;

  /// Whether `value` has more than one column.
  static bool hasColumns(mlir::Value value);

  //===--------------------------------------------------------------------===//
  // Kernels on rows
  //===--------------------------------------------------------------------===//

  /// The kernel's dimension of columns; null if all of its values are numbers
  /// of rows.
  const tile::SpaceDimension *getColumns() const { return columns; }
  /// Whether the rows of `value` go along all columns: rows of which only
  /// pieces are read or written do so if the pieces do.
  bool isWhole(mlir::Value value) const;
  /// How many columns an element of `value` stands for; 1 where it goes along
  /// the columns, or has one number for each row.
  int64_t getGroup(mlir::Value value) const;
  /// How many pieces the rows of `value` consist of; 1 where they go along the
  /// columns themselves. Without columns, each element is a piece.
  int64_t getPieces(mlir::Value value) const;
  /// The sizes of the groups of columns that values have elements for.
  llvm::SmallVector<int64_t> getGroups() const;

  //===--------------------------------------------------------------------===//
  // Kernels over m, n and k
  //===--------------------------------------------------------------------===//

  /// The products whose sums are complete behind the loop over k. All of them
  /// have the same shape.
  llvm::ArrayRef<tile::DotOp> getDots() const { return dots; }
  /// The first of them; null if the kernel only reduces.
  tile::DotOp getDot() const { return dots.empty() ? tile::DotOp() : dots[0]; }
  /// Whether the result of `dot` is streamed: it has k for its columns.
  bool isInner(tile::DotOp dot) const { return factors.contains(dot); }
  /// Whether `dot` multiplies what the kernel computes.
  static bool isLeftComputed(tile::DotOp dot) {
    return !mlir::isa<mlir::BlockArgument>(dot.getA());
  }

  /// The factor of `dot` that has the rows of its tiles, 0 for the left one.
  unsigned getRowFactor(tile::DotOp dot) const {
    return factors.getRowFactor(dot);
  }

  bool hasComputedLeft() const { return llvm::any_of(dots, isLeftComputed); }

  /// Whether computed left factors are transposed.
  bool isTransposed() const { return factors.isTransposed(); }
  /// Whether `op` computes a part of a left factor, or follows from one.
  bool isOfFactor(mlir::Operation *op) const { return factors.contains(op); }
  /// Whether `value`, of an op, has an element for each k.
  bool isStreamed(mlir::Value value) const {
    return hasStreamed(value) && mlir::isa<mlir::OpResult>(value) &&
           isOfFactor(value.getDefiningOp());
  }
  /// Whether `value`, of a left factor, has an element for each k.
  bool hasStreamed(mlir::Value value) const {
    return factors.hasStreamed(value);
  }
  /// Whether the owner of `use` reads an element of it for each k.
  bool readsStream(mlir::OpOperand &use) const {
    return factors.readsStream(use);
  }
  /// Whether `op` reduces along k: its result is there behind the loop.
  bool reducesStream(mlir::Operation *op) const;

private:
  tile::SpaceAttr space;
  const FactorOps factors;
  /// The projections of values that ops compute.
  llvm::DenseMap<mlir::Value, mlir::ArrayAttr> values;
  const tile::SpaceDimension *columns = nullptr;
  llvm::SmallVector<tile::DotOp> dots;
};

/// Checks that `kernel`, over m, n and k, computes in `space` what one program
/// can.
mlir::LogicalResult verifyComputes(tile::KernelOp kernel,
                                   tile::SpaceAttr space);

} // namespace bastile

#endif // BASTILE_DIALECT_KERNELSPACE_H
