//===- CodeGen.h - From the LLVM dialect to machine code --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The last steps of the compiler, shared by all targets: LLVM dialect to LLVM
// IR, optimization, and emission as PTX, host assembly or a host object.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_CODEGEN_H
#define BASTILE_CODEGEN_H

#include "bastile/Target.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>
#include <string>

namespace mlir {
class DialectRegistry;
class ModuleOp;
class OpPassManager;
} // namespace mlir

namespace bastile {

/// Registers the interfaces that translate the LLVM and NVVM dialects to LLVM
/// IR.
void registerTranslations(mlir::DialectRegistry &registry);

/// Adds the pass that gives each llvm.func a debug scope, so that the source
/// lines of the `.mlir` file reach the PTX as `.loc` directives.
void addLineInfo(mlir::OpPassManager &passes);

/// Translates a module of the LLVM and NVVM dialects to LLVM IR, which LLVM
/// checks where `verifies` is set. A failure is also reported through the
/// diagnostics of the module's context.
llvm::Expected<std::unique_ptr<llvm::Module>>
translateToLLVM(mlir::ModuleOp module, llvm::LLVMContext &context,
                const Target &target, bool verifies = true);

/// Creates LLVM's machine for `target`; an error where this LLVM has no such
/// back end. With `multipliesF8`, it takes the products of warps that have
/// elements of 8 bits.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(const Target &target, bool multipliesF8 = false);

/// Runs the IR optimizations, and contracts products and sums. `level`, from 0
/// to 3, is for the host; kernels of a GPU always get the one pipeline made for
/// them.
void optimize(llvm::Module &module, llvm::TargetMachine &machine,
              unsigned level = 3);

/// Emits assembly: PTX for a GPU. Consumes the contents of `module`.
llvm::Expected<std::string> emitAssembly(llvm::Module &module,
                                         llvm::TargetMachine &machine);

/// Generates assembly (PTX for a GPU) of a module of the LLVM and NVVM
/// dialects. The kernels of a GPU are compiled by one thread each, as far as
/// there are cores. The threads have ended when it returns, and the module is
/// unchanged.
llvm::Expected<std::string> generateAssembly(mlir::ModuleOp module,
                                             const Target &target);

/// Lowers a module to the LLVM and NVVM dialects.
using LowerFn = llvm::function_ref<llvm::LogicalResult(mlir::ModuleOp)>;

/// Does the same for a GPU and a module that `lower` takes to these dialects.
/// Where the module consists of functions that refer to nothing in it, each is
/// lowered in a module of its own, while code of those before is generated.
/// LLVM does not check its IR then, which takes as long as some passes: the
/// other function does, by which tools and fuzzers compile the same programs.
/// Consumes the contents of `module`. Where `lower` fails, so does this. The
/// calling thread runs `meanwhile` once all is lowered and code is still
/// generated.
llvm::Expected<std::string> generateAssembly(
    mlir::ModuleOp module, const Target &target, LowerFn lower,
    llvm::function_ref<void()> meanwhile = [] {});

/// Translates a module of the LLVM and NVVM dialects to LLVM IR, and prints
/// that as it is after its optimization.
llvm::Expected<std::string> generateLLVM(mlir::ModuleOp module,
                                         const Target &target);

/// Emits a relocatable object of the host. Consumes the contents of `module`.
llvm::Expected<llvm::SmallVector<char, 0>>
emitObject(llvm::Module &module, llvm::TargetMachine &machine);

/// Takes a module of the LLVM dialect all the way to the bytes of a relocatable
/// object of the host.
llvm::Expected<std::string> generateObject(mlir::ModuleOp module,
                                           const Target &target);

} // namespace bastile

#endif // BASTILE_CODEGEN_H
