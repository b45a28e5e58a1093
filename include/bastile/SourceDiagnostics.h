//===- SourceDiagnostics.h - Messages and what they point to ----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_SOURCEDIAGNOSTICS_H
#define BASTILE_SOURCEDIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

namespace bastile {

/// Prints the diagnostics of a context, each with the line of the source that
/// it points to, as clang does. MLIR's own handler prints the whole line, but a
/// source may be one line of many megabytes, or no text at all. Of a long line,
/// this one prints the part around the place, and it escapes bytes that a
/// terminal cannot show. It opens no files: a source may claim that its lines
/// come from any.
class SourceDiagnostics : public mlir::ScopedDiagnosticHandler {
public:
  /// All arguments must outlive this object. Lines are those of the main file
  /// of `source`.
  SourceDiagnostics(llvm::SourceMgr &source, mlir::MLIRContext *context,
                    llvm::raw_ostream &stream = llvm::errs());

private:
  void print(mlir::Location location, mlir::DiagnosticSeverity severity,
             const std::string &message, bool showsLine);
  void printLine(unsigned line, unsigned column);

  llvm::SourceMgr &source;
  llvm::raw_ostream &stream;
};

} // namespace bastile

#endif // BASTILE_SOURCEDIAGNOSTICS_H
