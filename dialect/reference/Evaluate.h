//===- Evaluate.h - The meaning of functions, computed ----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The executable semantics of functions on tensors: model ops are decomposed,
// as that is their definition, and each primitive, arith and math op is
// computed on dense arrays in float64, one after the other. Nothing here is
// part of the compiler, so that all of the compiler can be compared with it.
//
// The result of an op is rounded here if it has 16 bits or fewer, because
// `truncf` says so or because the op computes in such a type: only so can a
// kernel be held to the roundings of its formula. Results in float32 are not
// rounded, as kernels are free to choose their order, but the roundings are
// counted: each number carries a bound of the error that a kernel may have
// (Number.h). The bound follows the size of the terms through each op. A
// rounding to 16 bits leaves nothing of it, except for a number so near the
// middle between two that a kernel may round to either.
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
/// written, and stays unchanged. An op without meaning, sizes that do not fit
/// and more memory than `kMaxBytes` are reported as diagnostics.
llvm::FailureOr<llvm::SmallVector<Array>>
evaluate(mlir::func::FuncOp func, llvm::ArrayRef<Array> inputs);

/// The results of a function, and gradients of its arguments.
struct Differentiated {
  llvm::SmallVector<Array> results;
  /// The gradient of each argument, rounded only at the end, to the argument's
  /// type; nothing for arguments that no result of floats depends on.
  llvm::SmallVector<std::optional<Array>> gradients;
};

/// Evaluates `func` and computes the gradients of all arguments, given those of
/// the results: `seeds` has an array of the size of each result, or nothing
/// where the gradient is zero. This is reverse mode, op by op, with PyTorch's
/// derivatives; `tile.stop_gradient` passes nothing on.
llvm::FailureOr<Differentiated>
differentiate(mlir::func::FuncOp func, llvm::ArrayRef<Array> inputs,
              llvm::ArrayRef<std::optional<Array>> seeds);

/// Evaluates `func` and differentiates the sum of its first result, of floats,
/// alone.
llvm::FailureOr<Differentiated> differentiateSum(mlir::func::FuncOp func,
                                                 llvm::ArrayRef<Array> inputs);

} // namespace bastile::reference

#endif // BASTILE_DIALECT_REFERENCE_EVALUATE_H
