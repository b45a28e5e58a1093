//===- CrossedKernels.h - Kernels that compute one factor -------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Two kernels of a function cross if both compute the same streamed factor, and
// one sums over its rows, the other over its columns. The gradients of
// attention are such kernels: that of the keys sums the gradients of scores
// over the queries, which are their rows, that of the queries over the keys.
//
//   over rows      dk[m, n] += ds[k, m] q[k, n]       ds is transposed
//   over columns   dq[m, n] += ds[m, k] key[k, n]
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_CROSSED_CROSSEDKERNELS_H
#define BASTILE_PASSES_CROSSED_CROSSEDKERNELS_H

#include "dialect/Tile.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace bastile {

/// A kernel that sums over the rows of a factor, and one that sums over its
/// columns.
struct CrossedKernels {
  tile::LaunchOp overRowsLaunch, overColumnsLaunch;
  tile::KernelOp overRows, overColumns;
  /// The products of the factor, of which the kernel over columns has no other
  /// one.
  tile::DotOp rowsDot, columnsDot;
  /// An inner product of the kernel over rows whose factor with the rows of
  /// tiles is the right factor of `columnsDot`.
  tile::DotOp innerDot;
};

/// Finds kernels that cross, and that `fit`, among those that `func` launches
/// and nothing else does. Nothing that the one computes is read by the other,
/// and none of their results takes the memory of an operand. A kernel is in one
/// pair at most.
llvm::SmallVector<CrossedKernels>
findCrossedKernels(mlir::func::FuncOp func, mlir::SymbolTable &symbols,
                   llvm::function_ref<bool(const CrossedKernels &)> fit);

/// Whether the kernel over columns returns the float32 sums of its product, and
/// nothing else.
bool returnsSums(const CrossedKernels &crossed);

} // namespace bastile

#endif // BASTILE_PASSES_CROSSED_CROSSEDKERNELS_H
