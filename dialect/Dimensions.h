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
#include "llvm/ADT/MapVector.h"

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

  /// The first name that arguments and results give to `dimension`; null if
  /// they give none.
  mlir::StringAttr getName(Dimension dimension) const {
    return names.lookup(dimension);
  }
  /// Whether they give `name` to any dimension.
  bool isName(mlir::StringAttr name) const { return named.contains(name); }

private:
  void addValue(mlir::Value value);
  void joinNamed(mlir::Block &block);
  void joinNamed(mlir::Value value, mlir::ArrayAttr given);
  void join(mlir::Value lhs, unsigned left, mlir::Value rhs, unsigned right);
  void joinLeading(mlir::Value lhs, mlir::Value rhs);
  void joinColumns(mlir::Value lhs, mlir::Value rhs);
  void addGroups(mlir::Value statistics, mlir::Value rows);
  void joinParts();
  void visit(mlir::Operation &op);
  void visitBroadcast(tile::BroadcastOp broadcast);
  void visitDot(tile::DotOp dot);
  void visitPiece(tile::PieceOp piece);
  void visitPieces(mlir::Value whole, mlir::ValueRange given, int64_t strands);

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
  /// The place of the columns of `count` pieces, and that of the rows that
  /// consist of them, in which `strands` neighbouring pieces are interleaved.
  struct Pieces {
    unsigned piece, whole;
    int64_t count, strands;
  };
  llvm::SmallVector<Pieces> pieces;
  /// The first place that each name is given to, and afterwards the first name
  /// of each dimension.
  llvm::MapVector<mlir::StringAttr, std::pair<mlir::Value, unsigned>> named;
  llvm::DenseMap<Dimension, mlir::StringAttr> names;
};

/// The dimensions along the rows that a kernel computes. There is one of
/// columns, and others of groups of these columns. So within a kernel, rows of
/// one length have the same columns.
class KernelColumns {
public:
  explicit KernelColumns(tile::KernelOp kernel);

  /// The values that have columns of their own: no statistics, and no tensors
  /// of which only pieces are read or written, or only the sizes, or nothing.
  llvm::ArrayRef<mlir::Value> getValues() const { return values; }
  /// A value that goes along whole rows; null if there is none.
  mlir::Value getWhole() const { return whole; }
  /// Whether the rows of `value` go along all columns: rows of which only
  /// pieces are read or written do so if the pieces do. Where a value is
  /// repeated along columns that nothing in memory has, to be summed, any
  /// columns of that length will do.
  bool isWhole(mlir::Value value) const;
  /// Whether `value` goes along the kernel's columns, or groups of them.
  bool contain(mlir::Value value) const;

private:
  ValueDimensions dimensions;
  llvm::SmallVector<mlir::Value> values;
  /// The dimensions of what is loaded or stored.
  llvm::DenseSet<ValueDimensions::Dimension> inMemory;
  mlir::Value whole;
};

/// The product that `kernel` computes; null if it computes on rows. No kernel
/// has two.
tile::DotOp getDot(tile::KernelOp kernel);

/// Whether `op` may follow a product in its kernel: it computes each element
/// from those at the same place, or repeats them.
bool mayFollowDot(mlir::Operation *op);

/// The size of `type`, a factor or a product, in the dimension of its batch
/// that is `ahead` of the last one: 1 if it lacks the dimension.
int64_t getBatchSize(mlir::RankedTensorType type, int64_t ahead);
/// The size in that dimension of the products of `a` and `b`, which fit: a size
/// of 1 is repeated, and a static one says what a dynamic one is.
int64_t getBatchSize(mlir::RankedTensorType a, mlir::RankedTensorType b,
                     int64_t ahead);

/// Checks the names that `function` gives to the dimensions of its arguments
/// and results: dimensions of one name have one size.
mlir::LogicalResult verifyDimensionNames(mlir::FunctionOpInterface function);

} // namespace bastile

#endif // BASTILE_DIALECT_DIMENSIONS_H
