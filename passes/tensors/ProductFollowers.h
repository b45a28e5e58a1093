//===- ProductFollowers.h - What a product's kernel computes ----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The kernel of a product computes ops that follow it element by element, and
// leaves what others need in memory. Ops that only a kernel on rows needs may
// be computed there as well: that kernel reads what the product's kernel
// leaves. Each op belongs where less has to be left.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TENSORS_PRODUCTFOLLOWERS_H
#define BASTILE_PASSES_TENSORS_PRODUCTFOLLOWERS_H

#include "dialect/Dimensions.h"
#include "passes/analysis/Rounds.h"

namespace bastile {

/// The ops of a function that may follow a product, and those of them that
/// kernels on rows compute.
class ProductFollowers {
public:
  ProductFollowers(mlir::func::FuncOp func, const Rounds &rounds,
                   const ValueDimensions &dimensions);

  /// Whether a kernel on rows is to compute `op`, which could follow a product.
  bool isOfRows(mlir::Operation *op) const { return ofRows.contains(op); }
  /// Whether kernels of products store the pieces of `op`, a `tile.join`, where
  /// the joined rows lie: no kernel has the op itself.
  bool isPlace(mlir::Operation *op) const { return places.contains(op); }

private:
  void findFollowers(mlir::Block &block, const ValueDimensions &dimensions);
  bool isPlace(tile::JoinOp join, mlir::func::FuncOp func) const;
  bool stays(mlir::Operation *op) const {
    return followers.contains(op) && !ofRows.contains(op);
  }
  bool isLeft(mlir::Value value, mlir::Operation *reader) const;
  bool belongsToRows(mlir::Operation *op) const;

  const Rounds &rounds;
  /// Products, and the ops that could be computed with them.
  llvm::DenseSet<mlir::Operation *> followers;
  llvm::DenseSet<mlir::Operation *> ofRows;
  llvm::DenseSet<mlir::Operation *> places;
};

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_PRODUCTFOLLOWERS_H
