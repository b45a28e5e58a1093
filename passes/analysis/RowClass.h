//===- RowClass.h - Which rows ops compute and read -------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ANALYSIS_ROWCLASS_H
#define BASTILE_PASSES_ANALYSIS_ROWCLASS_H

#include "dialect/Dimensions.h"
#include "dialect/Tile.h"

namespace bastile {

/// Whether `operand` has a row for each band, which is read from memory.
bool readsBands(mlir::OpOperand &operand);

/// Whether `operand` has a row for each band, which another kernel has to leave
/// in memory: no program computes the rows of several bands.
bool waitsForBands(mlir::OpOperand &operand);

/// Whether `op` combines all rows to a vector, which ends a kernel.
bool combinesAllRows(mlir::Operation *op);

/// Whether `op` combines rows over some leading dimensions to fewer rows.
bool combinesSomeRows(mlir::Operation *op);

/// Whether the rows of `operand` are not the rows that its owner computes, but
/// fewer rows, each read for several, or more rows, to be combined.
bool readsOtherRows(mlir::OpOperand &operand);

/// Whether `op` computes nothing: a piece of what is in memory is an address.
/// All rows that are taken apart are in memory (FunctionVerifier.cpp).
bool isPieceInMemory(mlir::Operation *op);

/// The tensor in memory that `value` is a piece of, as a launch can take it:
/// its elements are neighbours. Null for other values.
mlir::Value getWholeInMemory(mlir::Value value);

/// Whether `op` repeats a number or a vector for each row.
bool repeatsVector(mlir::Operation *op);

/// Whether `op` can be computed, element by element, on the one row that is
/// left where a program combines rows over some dimensions.
bool fitsCombinedRow(mlir::Operation *op);

/// The rows of a kernel of some ops.
struct RowClass {
  /// The dimension along the rows; none as long as there are only statistics.
  std::optional<ValueDimensions::Dimension> columns;
  /// Those along the rows of other products of the kernel, which have as many
  /// columns: of streamed factors (StreamedFactors.h).
  llvm::SmallVector<ValueDimensions::Dimension, 1> otherColumns;
  /// Whether the ops along that dimension can be computed on statistics of
  /// groups, too, beside the columns that the groups are of.
  bool fitGroups = true;
  /// The rows of a band where bands are reduced, otherwise 0, and whether
  /// anything is reduced that the tile of a band does not hold.
  int64_t band = 0;
  bool reducesMore = false;
  /// Whether all rows are combined, and whether rows have a length that only a
  /// call knows. A kernel of such rows goes along their columns, and leaves no
  /// partial results of programs.
  bool combines = false, hasAnyLength = false;
  /// Whether a product is among the ops. Its kernel has only ops that may
  /// follow it, on tensors of its shape, and at most one more product, which
  /// reads the same left factor.
  bool multiplies = false;
  bool fitsProduct = true;
  /// The products of whole factors in memory.
  llvm::SmallVector<tile::DotOp, 2> dots;
  /// Whether an op computes with rows; others repeat numbers and vectors.
  bool readsRows = false;
  /// The shape of all results, statistics of its rows aside; none if they
  /// differ.
  std::optional<llvm::ArrayRef<int64_t>> shape;

  static RowClass get(mlir::Operation *op, const ValueDimensions &dimensions);

  /// Whether one kernel can compute the rows of both classes.
  bool fits(const RowClass &other, const ValueDimensions &dimensions) const;
  void merge(const RowClass &other, const ValueDimensions &dimensions);

private:
  /// Whether a kernel of this class can have the ops of the other one, too, as
  /// far as this class has a product.
  bool fitsBehindProduct(const RowClass &other) const {
    return !multiplies ||
           (other.fitsProduct && shape &&
            (other.shape == shape || other.areStatisticsOf(*this)) &&
            (!other.multiplies || sharesLeftFactor(other)));
  }
  /// Whether this class has nothing but numbers of the other one's rows, and
  /// computes them element by element.
  bool areStatisticsOf(const RowClass &other) const;
  bool sharesLeftFactor(const RowClass &other) const;
  /// Whether both go along the same columns, as far as they have some.
  bool haveCommonColumns(const RowClass &other) const;
  /// Whether the rows of this class are group statistics of the other's.
  bool areGroupsOf(const RowClass &other,
                   const ValueDimensions &dimensions) const {
    return fitGroups && columns && other.columns &&
           dimensions.isOfGroups(*columns, *other.columns);
  }
  /// Whether a kernel of this class may go along the columns of the other one.
  bool fitsLength(const RowClass &other) const {
    return !combines || !other.hasAnyLength;
  }
  /// A program that holds a band goes on neither along its rows nor to more
  /// rows.
  bool fitsBands(const RowClass &other) const {
    return !band || (!other.reducesMore && (!other.band || other.band == band));
  }
};

} // namespace bastile

#endif // BASTILE_PASSES_ANALYSIS_ROWCLASS_H
