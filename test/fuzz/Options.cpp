//===- Options.cpp - The options of an input ------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Options.h"

using namespace bastile;
using llvm::StringRef;

llvm::SmallVector<StringRef> fuzz::getOptions(StringRef text) {
  llvm::SmallVector<StringRef> options;
  StringRef line = text.take_until([](char c) { return c == '\n'; });
  if (line.consume_front(optionsPrefix))
    line.split(options, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  return options;
}
