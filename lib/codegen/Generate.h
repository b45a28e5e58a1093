//===- Generate.h - Code of a whole module at once --------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_CODEGEN_GENERATE_H
#define BASTILE_LIB_CODEGEN_GENERATE_H

#include "bastile/Target.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include <string>

namespace mlir {
class ModuleOp;
} // namespace mlir

namespace bastile {

/// Writes an optimized module, whose contents it may consume.
using EmitFn = llvm::function_ref<llvm::Expected<std::string>(
    llvm::Module &, llvm::TargetMachine &)>;

/// Whether products of warps in `module` have elements of 8 bits.
bool multipliesF8(const llvm::Module &module);

/// Translates a module of the LLVM and NVVM dialects and optimizes it, for
/// `emit` to write it.
llvm::Expected<std::string> generate(mlir::ModuleOp module,
                                     const Target &target, EmitFn emit);

} // namespace bastile

#endif // BASTILE_LIB_CODEGEN_GENERATE_H
