//===- SplitAnalysis.h - How many pieces rows have --------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Values whose columns correspond, such as the operands and the result of an
// addition, are split in the same way.
//
// A kernel computes on rows of one length. Rows that meet in a split or a join,
// even by way of others, are therefore all cut into pieces of one length. A row
// is first cut into contiguous parts, and each part into strands, the
// interleaved pieces. So each row first gets the fewest strands with which all
// that is interleaved in it, or in its pieces, comes out whole, and then the
// pieces of all rows get the greatest length that fits.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ANALYSIS_SPLITANALYSIS_H
#define BASTILE_PASSES_ANALYSIS_SPLITANALYSIS_H

#include "dialect/Tile.h"
#include "llvm/ADT/IntEqClasses.h"

namespace bastile {

/// Whether `value` has rows of a known length.
bool hasRows(mlir::Value value);

/// Whether all columns of `value` are equal by construction. Such a value has
/// any number of pieces and does not tie the values it meets to each other,
/// which matters where CSE has merged several such values.
bool isUniform(mlir::Value value);

/// Whether `op` computes each column of its result from the same column of its
/// operands.
bool isColumnwise(mlir::Operation *op);

/// How many neighbouring pieces of a split or a join are interleaved with each
/// other; nothing for other ops.
std::optional<int64_t> getStrands(mlir::Operation *op);

/// The number of pieces of each value of a function, and their strands.
class SplitAnalysis {
public:
  explicit SplitAnalysis(mlir::Block &block) : block(block) {}

  /// Fails with a diagnostic if some value cannot be split as needed.
  llvm::LogicalResult run();

  /// The number of pieces of a value; 1 for values that stay whole.
  int64_t getCount(mlir::Value value) const;
  /// How many neighbouring pieces of a value are interleaved with each other.
  int64_t getStrands(mlir::Value value) const {
    return strands[groups[numbers.lookup(value)]];
  }
  /// Whether products of pieces can take the place of `dot`.
  bool isOfPieces(tile::DotOp dot) const;
  /// Whether `op` computes whole rows behind a product, which its kernel does
  /// before they are taken apart in memory.
  bool isWhole(mlir::Operation *op) const { return wholes.contains(op); }

private:
  void number();
  void relate(mlir::Operation *op);
  llvm::LogicalResult findPieces();
  bool findWholes();
  void keepWhole(tile::DotOp dot);
  bool relateStrands(mlir::Operation *op, bool &changed);
  llvm::LogicalResult reportMisfit(mlir::Operation *op,
                                   llvm::ArrayRef<mlir::Operation *> splits);
  llvm::LogicalResult findStrands(llvm::ArrayRef<mlir::Operation *> splits);
  void findUnits(llvm::ArrayRef<mlir::Operation *> splits);
  llvm::LogicalResult verifyUses(mlir::Operation *op);

  mlir::Block &block;
  /// The ops that compute whole rows behind products (isWhole).
  llvm::DenseSet<mlir::Operation *> wholes;
  /// The number of each value. Uniform values have none, since each of their
  /// uses is split on its own.
  llvm::DenseMap<mlir::Value, unsigned> numbers;
  /// Values whose columns correspond, and the strands of their rows.
  llvm::IntEqClasses groups;
  llvm::SmallVector<int64_t> strands;
  /// Values whose pieces must have one length, and that length.
  llvm::IntEqClasses components;
  llvm::SmallVector<int64_t> units;
  /// The first split or join of each group.
  llvm::DenseMap<unsigned, mlir::Operation *> causes;
};

} // namespace bastile

#endif // BASTILE_PASSES_ANALYSIS_SPLITANALYSIS_H
