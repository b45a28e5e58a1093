//===- RowSharing.h - How calls that share rows combine results -*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The rows of a tensor may be dealt out to several calls of a function, as when
// several processes each hold some of them. A call then returns some of the
// rows of a result, or its share of a combination of all rows.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_DRIVER_ROWSHARING_H
#define BASTILE_LIB_DRIVER_ROWSHARING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/JSON.h"

namespace bastile {

/// How the results of several calls, each with some of the rows, make up each
/// result of `func`, a function of primitives on whole tensors: "rows" puts the
/// rows together; "same" takes any call's result, as all agree; "add", "max"
/// and "min" combine the calls' results. Null where a call would need the rows
/// of others.
llvm::json::Value describeRowSharing(mlir::func::FuncOp func);

} // namespace bastile

#endif // BASTILE_LIB_DRIVER_ROWSHARING_H
