//===- EmulatorSymbols.h - What emulated kernels call -----------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_EMULATOR_EMULATORSYMBOLS_H
#define BASTILE_LIB_EMULATOR_EMULATORSYMBOLS_H

#include "bastile/Jit.h"
#include "llvm/ADT/ArrayRef.h"

namespace bastile {

/// The functions that EmulatorCalls.h names, to be given to the JIT.
llvm::ArrayRef<JitSymbol> getEmulatorSymbols();

} // namespace bastile

#endif // BASTILE_LIB_EMULATOR_EMULATORSYMBOLS_H
