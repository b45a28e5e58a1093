//===- Contract.h - How sums of products are rounded once -------*- C++ -*-===//
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

/// Contracts each sum or difference that takes a product to one multiply-add,
/// which rounds once, except for those whose operands are to be rounded
/// (`passes/analysis/ExactDifferences.h`).
///
/// Whether a sum is contracted depends on its operands alone, so that a value
/// that a loop, or another kernel, computes again has the same bits. LLVM's own
/// contraction looks at the product's other uses, and ptxas's at the
/// instructions in reach; neither finds anything left to contract after this
/// one.
///
/// Products of 16 bits are computed in float32 and rounded: the product itself
/// has to be rounded, so no contraction may skip that.
void contract(llvm::Module &module);

} // namespace bastile

#endif // BASTILE_LIB_CODEGEN_CONTRACT_H
