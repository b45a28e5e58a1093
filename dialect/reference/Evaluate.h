//===- Evaluate.h - What functions mean -------------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The executable semantics of functions on tensors: model ops are decomposed,
// as that is their definition, and each primitive, arith and math op is
// computed on dense arrays in float64, one after the other. Nothing that
// compiles is used, so that everything that does can be compared with it.
//
// What a function rounds, is rounded here: where the result of an op has 16
// bits or fewer, because `truncf` says so or because it computes in such a
// type. Only so can a kernel be held to where its formula rounds. What is
// computed in float32 is not rounded, as kernels are free to choose its order,
// but counted: each number carries a bound of the error that a kernel may have
// (Number.h). It follows the size of the terms, through each op, and of a
// rounding to 16 bits it leaves nothing, save of a number so near the middle
// between two that a kernel may round to either.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_REFERENCE_EVALUATE_H
#define BASTILE_DIALECT_REFERENCE_EVALUATE_H

#include "dialect/reference/Array.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <optional>

namespace bastile::reference {

/// The most memory that an evaluation takes, in bytes.
inline constexpr int64_t kMaxBytes = int64_t(3) << 30;

/// The results of `func` on `inputs`, arrays of its arguments' element types
/// and of sizes that fit their types. `func` is one block of ops on tensors, as
/// written, and is left as it is. An op without meaning, sizes that do not fit
/// and more memory than `kMaxBytes` are reported as diagnostics.
llvm::FailureOr<llvm::SmallVector<Array>>
evaluate(mlir::func::FuncOp func, llvm::ArrayRef<Array> inputs);

/// Results, and what comes of going back from them.
struct Differentiated {
  llvm::SmallVector<Array> results;
  /// The gradient of each argument, rounded to its type at the end alone;
  /// nothing for arguments that no result of floats depends on.
  llvm::SmallVector<std::optional<Array>> gradients;
};

/// The same, and the gradients with respect to all arguments, given those of
/// the results: `seeds` has an array of the size of each result, or nothing
/// where the gradient is zero. It is reverse mode, op by op, with PyTorch's
/// derivatives; `tile.stop_gradient` passes nothing on.
llvm::FailureOr<Differentiated>
differentiate(mlir::func::FuncOp func, llvm::ArrayRef<Array> inputs,
              llvm::ArrayRef<std::optional<Array>> seeds);

/// The same of the sum of the first result, of floats, alone.
llvm::FailureOr<Differentiated> differentiateSum(mlir::func::FuncOp func,
                                                 llvm::ArrayRef<Array> inputs);

} // namespace bastile::reference

#endif // BASTILE_DIALECT_REFERENCE_EVALUATE_H
