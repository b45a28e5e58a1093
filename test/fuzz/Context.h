//===- Context.h - The MLIR context that inputs share -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEST_FUZZ_CONTEXT_H
#define BASTILE_TEST_FUZZ_CONTEXT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/SourceMgr.h"

namespace bastile::fuzz {

/// The context of the next input, with all dialects and translations, without
/// threads. It is replaced after some hundred inputs: types and attributes live
/// as long as their context, so that one context for all inputs would take all
/// memory, and a new one for each input most of the time. Objects of the last
/// input in it must be gone.
mlir::MLIRContext &getContext();

/// Parses `source` as tile-opt does; null if it is no module.
mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::SourceMgr &source,
                                        mlir::MLIRContext &context);

/// Whether `text` is a module that the dialects accept.
bool isModule(llvm::StringRef text);

} // namespace bastile::fuzz

#endif // BASTILE_TEST_FUZZ_CONTEXT_H
