//===- AdvanceAddresses.h - Addresses that go along with loops --*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_CODEGEN_ADVANCEADDRESSES_H
#define BASTILE_LIB_CODEGEN_ADVANCEADDRESSES_H

#include "llvm/IR/PassManager.h"

namespace bastile {

/// Has a loop over rows move the address of each operand from row to row. The
/// product of a row and a stride, both of 64 bits, is four instructions of a
/// GPU and its sum with an address two to five, as many as a short formula has
/// for the elements that a thread holds of a row.
///
/// LLVM's strength reduction does so in innermost loops alone, which loops
/// whose blocks wait for each other are not. Innermost loops stay as they are:
/// addresses of rows that are loaded ahead, which LLVM does not carry along
/// there, have been seen to spill.
class AdvanceAddressesPass : public llvm::PassInfoMixin<AdvanceAddressesPass> {
public:
  static llvm::PreservedAnalyses run(llvm::Function &function,
                                     llvm::FunctionAnalysisManager &manager);
};

} // namespace bastile

#endif // BASTILE_LIB_CODEGEN_ADVANCEADDRESSES_H
