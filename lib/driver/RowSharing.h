//===- RowSharing.h - What becomes of rows that are parted ------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Rows may be dealt out to several calls of a function, as processes do that
// each hold some of a tensor's rows. What a call returns is then some of the
// rows of the result, or its share of what combines them all.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_DRIVER_ROWSHARING_H
#define BASTILE_LIB_DRIVER_ROWSHARING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/JSON.h"

namespace bastile {

/// What to do with each result of `func`, a function of primitives on whole
/// tensors, where each call has some of the rows: "rows" for those of the call,
/// "same" for what all calls agree on, "add", "max" or "min" for what combines
/// the calls' results. Null where calls would have to know of each other.
llvm::json::Value describeRowSharing(mlir::func::FuncOp func);

} // namespace bastile

#endif // BASTILE_LIB_DRIVER_ROWSHARING_H
