//===- OperandPlaces.h - Which tensors launches take ------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_DRIVER_OPERANDPLACES_H
#define BASTILE_LIB_DRIVER_OPERANDPLACES_H

#include "dialect/Tile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/JSON.h"

namespace bastile {

/// The tensors in memory of a function: its inputs and outputs, temporaries,
/// and pieces of these.
class OperandPlaces {
public:
  explicit OperandPlaces(mlir::func::FuncOp func);

  /// Gives `value` the next number of an output, and returns that.
  unsigned addOutput(mlir::Value value);
  /// Gives `value` the next number of a temporary. Returns false if it lies
  /// elsewhere: in an output, or as a piece of another tensor.
  bool addTemporary(mlir::Value value);

  /// Which tensor `value`, an operand or a result of a launch, is.
  llvm::json::Object describe(mlir::Value value);
  /// The descriptions of the pieces so far, in the order of their numbers.
  llvm::json::Array takePieces() { return std::move(pieceList); }

private:
  int64_t describePiece(mlir::Value value, llvm::json::Object whole,
                        int64_t dimension, int64_t index, int64_t count,
                        bool isInterleaved);

  llvm::DenseMap<mlir::Value, int64_t> outputs, temporaries, pieces;
  llvm::json::Array pieceList;
  /// The results of launches that are pieces of one tensor, and its `join`.
  llvm::DenseMap<mlir::Value, tile::JoinOp> joined;
};

} // namespace bastile

#endif // BASTILE_LIB_DRIVER_OPERANDPLACES_H
