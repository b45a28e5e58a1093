//===- Record.h - The values of a function, op by op ------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_REFERENCE_RECORD_H
#define BASTILE_DIALECT_REFERENCE_RECORD_H

#include "dialect/reference/Evaluate.h"
#include "dialect/reference/Operations.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace bastile::reference {

/// A copy of `func` without model ops. Fails, with a diagnostic, if the
/// function has more than one block.
llvm::FailureOr<mlir::OwningOpRef<mlir::func::FuncOp>>
decompose(mlir::func::FuncOp func);

/// One run of a decomposed function, and its differentiation.
class Record {
public:
  /// `keepsAll` keeps all values, for `goBack`.
  Record(mlir::func::FuncOp func, bool keepsAll)
      : func(func), keepsAll(keepsAll) {}

  /// Computes all values.
  llvm::LogicalResult run(llvm::ArrayRef<Array> inputs);
  llvm::SmallVector<Array> getResults();
  /// Computes the gradients of the arguments.
  llvm::LogicalResult goBack(llvm::ArrayRef<std::optional<Array>> seeds);
  llvm::SmallVector<std::optional<Array>> getGradients();

private:
  llvm::LogicalResult evaluate(mlir::Operation &op);
  llvm::LogicalResult propagate(mlir::Operation &op);
  llvm::LogicalResult checkMemory(mlir::Operation *op);
  void dropUnused(mlir::Operation &op);
  void findDependencies();
  void addGradient(mlir::Value value, Array gradient);
  llvm::SmallVector<const Array *> getOperands(mlir::Operation &op);

  mlir::func::FuncOp func;
  bool keepsAll;
  llvm::DenseMap<mlir::Value, Array> values, gradients;
  /// The values that depend on an argument, and those through which derivatives
  /// flow.
  llvm::DenseSet<mlir::Value> dependent, active;
  int64_t bytes = 0;
};

} // namespace bastile::reference

#endif // BASTILE_DIALECT_REFERENCE_RECORD_H
