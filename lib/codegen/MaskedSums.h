//===- MaskedSums.h - Sums that leave out what is masked --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_CODEGEN_MASKEDSUMS_H
#define BASTILE_LIB_CODEGEN_MASKEDSUMS_H

namespace llvm {
class Module;
} // namespace llvm

namespace bastile {

/// Has a loop add a term to its sum where a mask holds, instead of adding the
/// term or 0. A GPU does the former by one instruction with a predicate, which
/// also takes a product, as in sum + x * y; the latter takes a selection beside
/// the addition, and the product an instruction of its own.
///
/// LLVM's canonical form is the latter, so this comes behind its passes.
void addWhereMasked(llvm::Module &module);

} // namespace bastile

#endif // BASTILE_LIB_CODEGEN_MASKEDSUMS_H
