//===- Ptxas.h - Assembling PTX to a cubin ----------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PTXAS_H
#define BASTILE_PTXAS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace bastile {

/// The resources that one kernel takes, as ptxas reports them.
struct KernelResources {
  std::string entry;
  unsigned registers = 0;
  unsigned barriers = 0;
  unsigned staticSharedBytes = 0;
  unsigned stackBytes = 0;
  unsigned spillStoreBytes = 0;
  unsigned spillLoadBytes = 0;
};

struct Cubin {
  llvm::SmallVector<char, 0> bytes;
  std::vector<KernelResources> kernels;
  /// The text of `ptxas -v`.
  std::string report;
};

/// Runs ptxas, found as $BASTILE_PTXAS or on PATH, on `ptx` for `chip`. Fails
/// with the log of ptxas, or where there is none.
llvm::Expected<Cubin> assembleCubin(llvm::StringRef ptx, llvm::StringRef chip);

} // namespace bastile

#endif // BASTILE_PTXAS_H
