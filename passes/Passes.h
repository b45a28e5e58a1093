//===- Passes.h - The passes ------------------------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_PASSES_H
#define BASTILE_PASSES_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir {
namespace func {
class FuncOp;
} // namespace func
namespace LLVM {
class LLVMDialect;
} // namespace LLVM
class ModuleOp;
} // namespace mlir

namespace bastile {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace bastile

#endif // BASTILE_PASSES_PASSES_H
