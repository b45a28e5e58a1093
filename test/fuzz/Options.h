//===- Options.h - The options of an input ----------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEST_FUZZ_OPTIONS_H
#define BASTILE_TEST_FUZZ_OPTIONS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace bastile::fuzz {

/// The start of the first line of an input that names options, as in `//
/// options: --target=host --grad`. They are options of tilec or tile-opt, so
/// that an input that was found can be handed to these.
constexpr llvm::StringLiteral optionsPrefix = "// options:";

/// The options in the first line of `text`; none if it names none.
llvm::SmallVector<llvm::StringRef> getOptions(llvm::StringRef text);

} // namespace bastile::fuzz

#endif // BASTILE_TEST_FUZZ_OPTIONS_H
