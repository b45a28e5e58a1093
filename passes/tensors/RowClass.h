//===- RowClass.h - Which rows ops compute and read -------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TENSORS_ROWCLASS_H
#define BASTILE_PASSES_TENSORS_ROWCLASS_H

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

/// Whether `op` computes nothing: a piece of an argument is an address.
bool isPieceOfArgument(mlir::Operation *op);

/// Whether `op` repeats a number or a vector for each row.
bool repeatsVector(mlir::Operation *op);

/// Whether `op` can be computed, element by element, on the one row that is
/// left where a program combines rows over some dimensions.
bool fitsCombinedRow(mlir::Operation *op);

/// The rows of a kernel of some ops.
struct RowClass {
  /// The length of the rows; 1 as long as there are only statistics.
  int64_t length = 1;
  /// The lengths of group statistics among the values.
  llvm::SmallVector<int64_t, 1> groups;
  /// Whether rows of this length may turn out to be group statistics.
  bool mayBeGroups = true;
  /// The rows of a band where bands are reduced, otherwise 0, and whether
  /// anything is reduced that the tile of a band does not hold.
  int64_t band = 0;
  bool reducesMore = false;

  static RowClass get(mlir::Operation *op);

  /// Whether the rows of this class are group statistics of the other's.
  bool areGroupsOf(const RowClass &other) const {
    return mayBeGroups && llvm::is_contained(other.groups, length);
  }
  /// A program that holds a band goes on neither along its rows nor to more
  /// rows.
  bool fitsBands(const RowClass &other) const {
    return !band || (!other.reducesMore && (!other.band || other.band == band));
  }
  bool fits(const RowClass &other) const {
    if (!fitsBands(other) || !other.fitsBands(*this))
      return false;
    return length == other.length || length == 1 || other.length == 1 ||
           areGroupsOf(other) || other.areGroupsOf(*this);
  }
  void merge(const RowClass &other) {
    if (other.length == length)
      mayBeGroups &= other.mayBeGroups;
    else if (other.length > length)
      mayBeGroups = other.mayBeGroups;
    length = std::max(length, other.length);
    band = std::max(band, other.band);
    reducesMore |= other.reducesMore;
    for (int64_t group : other.groups)
      if (!llvm::is_contained(groups, group))
        groups.push_back(group);
  }
};

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_ROWCLASS_H
