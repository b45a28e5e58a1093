//===- Report.h - Results as a table or as JSON --------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TOOLS_TILERUN_REPORT_H
#define BASTILE_TOOLS_TILERUN_REPORT_H

#include "Trial.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace bastile::run {

/// Prints one line for each result, and one more for each output that failed.
void printTable(llvm::ArrayRef<TrialResult> results, llvm::StringRef target,
                llvm::raw_ostream &os);

/// Prints one object; numbers that JSON cannot write are strings.
void printJson(llvm::ArrayRef<TrialResult> results, llvm::StringRef target,
               llvm::raw_ostream &os);

} // namespace bastile::run

#endif // BASTILE_TOOLS_TILERUN_REPORT_H
