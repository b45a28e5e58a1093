//===- AdvanceAddresses.h - Addresses that go along with loops --*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_CODEGEN_ADVANCEADDRESSES_H
#define BASTILE_LIB_CODEGEN_ADVANCEADDRESSES_H

#include "llvm/IR/PassManager.h"

namespace bastile {

/// Makes the addresses of rows cheaper in loops over rows. The product of a row
/// and a stride, both of 64 bits, is four instructions of a GPU and its sum
/// with an address two to five, as many as a short formula has for the elements
/// that a thread holds of a row.
///
/// A loop that loads rows ahead multiplies by distances in bytes, which it
/// finds ahead of its first iteration: the GPU adds an address as part of such
/// a product, in three instructions altogether. To carry addresses along takes
/// more registers there, as loads need both halves of an address in
/// neighbouring ones, and has been seen to spill.
///
/// Other loops carry the address of each operand from row to row where LLVM
/// does not: its strength reduction knows innermost loops alone, which loops
/// whose blocks wait for each other are not.
class AdvanceAddressesPass : public llvm::PassInfoMixin<AdvanceAddressesPass> {
public:
  static llvm::PreservedAnalyses run(llvm::Function &function,
                                     llvm::FunctionAnalysisManager &manager);
};

} // namespace bastile

#endif // BASTILE_LIB_CODEGEN_ADVANCEADDRESSES_H
