//===- Source.h - From .mlir text to a module -------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_SOURCE_H
#define BASTILE_SOURCE_H

#include "bastile/SourceDiagnostics.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include <memory>

namespace bastile {

/// Parses `source` and keeps the names that its functions give their arguments,
/// so that messages and metadata can use them. Null after a diagnostic.
mlir::OwningOpRef<mlir::ModuleOp> parseSource(llvm::SourceMgr &source,
                                              mlir::MLIRContext &context);

/// A source file with a context of its own, in which all dialects are
/// registered and errors are reported with the lines of the file.
class SourceFile {
public:
  /// Opens `path`; "-" is the standard input. Fails if it cannot be read.
  static llvm::Expected<std::unique_ptr<SourceFile>> open(llvm::StringRef path);

  /// Parses the file as `parseSource` does. The module must not outlive this
  /// object.
  mlir::OwningOpRef<mlir::ModuleOp> parse() {
    return parseSource(source, context);
  }

private:
  explicit SourceFile(std::unique_ptr<llvm::MemoryBuffer> contents);

  llvm::SourceMgr source;
  mlir::MLIRContext context;
  SourceDiagnostics diagnostics;
};

} // namespace bastile

#endif // BASTILE_SOURCE_H
