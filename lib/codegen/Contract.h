//===- Contract.h - Which products and sums round once ----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_CODEGEN_CONTRACT_H
#define BASTILE_LIB_CODEGEN_CONTRACT_H

namespace llvm {
class Module;
} // namespace llvm

namespace bastile {

/// Contracts each sum that takes a product, or a difference that does, to one
/// multiplication and addition that rounds once.
///
/// Which sums contract depends on nothing but their operands, so that a value
/// that a loop, or another kernel, computes again has the same bits. LLVM's own
/// contraction looks at the product's other uses, and ptxas's at what it finds
/// in reach; neither finds anything behind this one.
///
/// Products of 16 bits are computed in float32 and rounded: the same number,
/// whose own rounding no contraction may leave out.
void contract(llvm::Module &module);

} // namespace bastile

#endif // BASTILE_LIB_CODEGEN_CONTRACT_H
