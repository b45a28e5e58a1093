//===- Report.h - The table of tilec --explain ------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TOOLS_TILEC_REPORT_H
#define BASTILE_TOOLS_TILEC_REPORT_H

#include "bastile/Compiler.h"

namespace bastile {

/// Prints the costs of each kernel of `module`, as written, for `rows` rows.
/// The resources of its code are shown where ptxas is found.
llvm::LogicalResult printReport(mlir::ModuleOp module,
                                const CompileOptions &options, int64_t rows,
                                llvm::raw_ostream &os);

} // namespace bastile

#endif // BASTILE_TOOLS_TILEC_REPORT_H
