//===- Dimensions.h - Which dimensions of values are one --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Values have a dimension in common where ops carry it from one to the other:
// the rows of a sum are those of its operands, the columns of a row vector
// those of the rows that it is repeated for. Dimensions that only have the same
// size are not the same: a square weight has two.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_DIMENSIONS_H
#define BASTILE_DIALECT_DIMENSIONS_H

#include "dialect/Tile.h"
#include "llvm/ADT/IntEqClasses.h"

namespace bastile {

/// The dimensions of the values of a block of ops on tensors.
class ValueDimensions {
public:
  /// The number of a dimension, which means nothing beyond this block.
  using Dimension = unsigned;

  explicit ValueDimensions(mlir::Block &block);

  /// The dimension of `value`, a tensor of the block, at `place`; none where it
  /// has the static size 1, as there is nothing to go along.
  std::optional<Dimension> get(mlir::Value value, unsigned place) const;
  /// The dimension of `value` along its rows.
  std::optional<Dimension> getColumns(mlir::Value value) const;

  /// Whether `coarse` has one element for each group of neighbours of `fine`,
  /// as the statistics of a row's groups have.
  bool isOfGroups(Dimension coarse, Dimension fine) const;

private:
  void addValue(mlir::Value value);
  void joinNamed(mlir::Block &block);
  void join(mlir::Value lhs, unsigned left, mlir::Value rhs, unsigned right);
  void joinLeading(mlir::Value lhs, mlir::Value rhs);
  void joinColumns(mlir::Value lhs, mlir::Value rhs);
  void addGroups(mlir::Value statistics, mlir::Value rows);
  void joinGroups();
  void visit(mlir::Operation &op);
  void visitBroadcast(tile::BroadcastOp broadcast);
  void visitPieces(mlir::Value whole, mlir::ValueRange pieces);

  /// By value, the number of its first place; the others follow.
  llvm::DenseMap<mlir::Value, unsigned> places;
  unsigned numPlaces = 0;
  /// The dimension of each place.
  llvm::IntEqClasses dimensions;
  /// The place of statistics, and that of the columns that each stands for a
  /// group of `size` of.
  struct Groups {
    unsigned statistics, columns;
    int64_t size;
  };
  llvm::SmallVector<Groups> groups;
};

} // namespace bastile

#endif // BASTILE_DIALECT_DIMENSIONS_H
