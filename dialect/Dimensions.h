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
  /// For each dimension of a tensor its number elsewhere; none where that is
  /// not known.
  using Numbers = llvm::SmallVector<std::optional<Dimension>>;

  /// `known` has such numbers for the arguments of `block`, and then for what
  /// its terminator returns: where two have a number in common, they are one
  /// dimension, whether the ops of the block show it or not.
  explicit ValueDimensions(mlir::Block &block,
                           llvm::ArrayRef<Numbers> known = {});

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

private:
  void addValue(mlir::Value value);
  void joinKnown(mlir::Block &block, llvm::ArrayRef<Numbers> known);
  void joinNamed(mlir::Block &block);
  void joinNamed(mlir::Value value, mlir::ArrayAttr given);
  void join(mlir::Value lhs, unsigned left, mlir::Value rhs, unsigned right);
  void joinLeading(mlir::Value lhs, mlir::Value rhs);
  void joinColumns(mlir::Value lhs, mlir::Value rhs);
  void joinSameColumns(mlir::Value lhs, mlir::Value rhs);
  void addGroups(mlir::Value statistics, mlir::Value rows);
  void joinParts();
  void joinColumnsOfPieces(mlir::Block &block);
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

/// Calls `visit` with each operand of `op`, no product, and its dimensions
/// along which `op` combines elements.
void visitReductions(
    mlir::Operation &op,
    llvm::function_ref<void(mlir::Value operand, unsigned place)> visit);

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

/// Whether the products of `dot`, on tensors, are added up over a dimension of
/// its batch.
bool sumsOverBatch(tile::DotOp dot);

/// Checks the names that `function` gives to the dimensions of its arguments
/// and results: dimensions of one name have one size.
mlir::LogicalResult verifyDimensionNames(mlir::FunctionOpInterface function);

} // namespace bastile

#endif // BASTILE_DIALECT_DIMENSIONS_H
