//===- Scratch.h - Shared memory of one op ----------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PIECES_SCRATCH_H
#define BASTILE_PASSES_PIECES_SCRATCH_H

#include "mlir/Transforms/DialectConversion.h"

namespace bastile {

/// Declares shared memory for `elements` numbers of `type` that only `op` uses,
/// and returns its address.
mlir::Value createScratch(mlir::ConversionPatternRewriter &rewriter,
                          mlir::Operation *op, mlir::Type type,
                          int64_t elements);

/// The address of `bytes` bytes of shared memory that several ops of a kernel
/// use in turn: each op first waits for the readers of the op before. Only ops
/// that name the same memory share it.
mlir::Value getCommonScratch(mlir::ConversionPatternRewriter &rewriter,
                             mlir::Operation *op, int64_t bytes,
                             llvm::StringRef memory = "common");

/// The address of the number at `index`.
mlir::Value getScratchAddress(mlir::OpBuilder &builder, mlir::Location loc,
                              mlir::Value scratch, mlir::Type type,
                              mlir::Value index);

/// `address` in the shared memory of block `block`, an i32, of the cluster.
mlir::Value mapToBlock(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value address, mlir::Value block);

/// Counts, in a variable that LLVM keeps in a register, how often the program
/// has come to `op`. Returns the number of times before this one, as an i32.
mlir::Value countVisits(mlir::ConversionPatternRewriter &rewriter,
                        mlir::Operation *op);

/// Waits for the readers of an earlier iteration, if `op` is in a loop: a
/// thread may come to `op` again while another still reads. To be called before
/// writing.
void waitForReaders(mlir::OpBuilder &builder, mlir::Operation *op);

} // namespace bastile

#endif // BASTILE_PASSES_PIECES_SCRATCH_H
