//===- Options.h - What an input says of how it is to be run ----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_TEST_FUZZ_OPTIONS_H
#define BASTILE_TEST_FUZZ_OPTIONS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace bastile::fuzz {

/// What the first line of an input starts with if it names options, as in
/// `// options: --target=host --grad`. They are those of tilec or tile-opt, so
/// that an input that was found can be handed to them.
constexpr llvm::StringLiteral optionsPrefix = "// options:";

/// The options in the first line of `text`; none if it names none.
llvm::SmallVector<llvm::StringRef> getOptions(llvm::StringRef text);

} // namespace bastile::fuzz

#endif // BASTILE_TEST_FUZZ_OPTIONS_H
