//===- Mutator.h - Mutants of MLIR text -------------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEST_FUZZ_MUTATOR_H
#define BASTILE_TEST_FUZZ_MUTATOR_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstddef>
#include <cstdint>

namespace bastile::fuzz {

/// A mutant of the MLIR text in `data`, written over it (see
/// LLVMFuzzerCustomMutator). Text with bytes changed at random hardly ever
/// parses. This exchanges tokens for others of their kind, in one place or in
/// all, and lines, up to a few times until the text is a module. `options` are
/// lines of options to choose from.
size_t mutateText(uint8_t *data, size_t size, size_t maxSize, unsigned seed,
                  llvm::ArrayRef<llvm::StringRef> options);

/// Replaces lines of one text by lines of another, until the text is a module
/// (see LLVMFuzzerCustomCrossOver).
size_t crossText(llvm::StringRef first, llvm::StringRef second, uint8_t *out,
                 size_t maxSize, unsigned seed);

} // namespace bastile::fuzz

#endif // BASTILE_TEST_FUZZ_MUTATOR_H
