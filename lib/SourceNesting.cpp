//===- SourceNesting.cpp - How deep a source is nested --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "SourceNesting.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

/// MLIR's parser calls itself for whatever is inside of something else, and has
/// no limit of its own.
static constexpr unsigned maxNesting = 256;

/// Where `text` is first nested deeper than `maxNesting`; null if nowhere.
static const char *findDeepNesting(StringRef text) {
  unsigned depth = 0;
  // A sign is an expression inside of another as well: `- - - x`.
  unsigned signs = 0;
  for (size_t i = 0; i != text.size(); ++i) {
    const StringRef rest = text.drop_front(i);
    if (rest.starts_with("//")) {
      i += std::min(rest.find('\n'), rest.size()) - 1;
      continue;
    }
    if (rest.starts_with("->")) {
      ++i;
      continue;
    }
    switch (rest.front()) {
    case '"':
      // To its end, past what is escaped, or to that of the line.
      for (++i; i != text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        if (text[i] == '\\' && i + 1 != text.size())
          ++i;
      if (i == text.size())
        return nullptr;
      break;
    case '(':
    case '[':
    case '{':
    case '<':
      ++depth;
      break;
    case ')':
    case ']':
    case '}':
    case '>':
      // A comparison has only one half of a pair.
      depth -= depth != 0;
      break;
    default:
      break;
    }
    if (rest.front() == '-')
      ++signs;
    else if (!llvm::isSpace(rest.front()))
      signs = 0;
    if (depth > maxNesting || signs > maxNesting)
      return rest.data();
  }
  return nullptr;
}

LogicalResult bastile::checkNesting(const llvm::SourceMgr &source,
                                    MLIRContext &context) {
  const unsigned file = source.getMainFileID();
  const llvm::MemoryBuffer *buffer = source.getMemoryBuffer(file);
  const char *place = findDeepNesting(buffer->getBuffer());
  if (!place)
    return success();
  auto [line, column] =
      source.getLineAndColumn(llvm::SMLoc::getFromPointer(place), file);
  return emitError(FileLineColLoc::get(&context, buffer->getBufferIdentifier(),
                                       line, column))
         << "nested deeper than " << maxNesting << " levels";
}
