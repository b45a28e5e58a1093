//===- Rounds.h - When the ops of a function run ----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ANALYSIS_ROUNDS_H
#define BASTILE_PASSES_ANALYSIS_ROUNDS_H

#include "dialect/Tile.h"

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace bastile {

/// The combinations of rows to fewer rows that an op on rows waits for: how
/// many, one after the other, and the last of them, if the op follows it
/// element by element and waits for nothing else.
struct CombinedRows {
  int64_t depth = 0;
  mlir::Operation *reduce = nullptr;

  bool operator==(const CombinedRows &other) const {
    return depth == other.depth && reduce == other.reduce;
  }
};

/// What the ops of a function wait for. A round may read what earlier rounds
/// combine.
class Rounds {
public:
  explicit Rounds(mlir::func::FuncOp func);

  /// Whether `value` is a row vector that depends on all rows of something.
  bool isCombined(mlir::Value value) const {
    return combinedValues.contains(value);
  }
  /// Whether `op` computes rows, or combines all rows to a vector.
  bool isRowOp(mlir::Operation *op) const { return rounds.contains(op); }
  /// The round in which an op on rows runs.
  int64_t get(mlir::Operation *op) const { return rounds.lookup(op); }
  /// The combinations that an op on rows waits for; all ops of a kernel wait
  /// for the same.
  CombinedRows getCombinedRows(mlir::Operation *op) const {
    return combinedRows.lookup(op);
  }

private:
  void findCombinedRows(mlir::Block &block);
  void findRounds(mlir::Block &block);

  llvm::DenseSet<mlir::Value> combinedValues;
  llvm::DenseMap<mlir::Operation *, int64_t> rounds;
  llvm::DenseMap<mlir::Operation *, CombinedRows> combinedRows;
};

} // namespace bastile

#endif // BASTILE_PASSES_ANALYSIS_ROUNDS_H
