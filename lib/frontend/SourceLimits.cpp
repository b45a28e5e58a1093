//===- SourceLimits.cpp - What the parser has no limit for ----------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/SourceLimits.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

/// MLIR's parser calls itself for each nested construct, and has no limit of
/// its own.
static constexpr unsigned maxNesting = 256;
/// MLIR's parser takes memory for as many results of an op as `%0#number` asks
/// for.
static constexpr unsigned maxResultDigits = 5;

namespace {

/// The limit that a source exceeds, and where; null if it exceeds none.
struct Excess {
  const char *place = nullptr;
  std::string message;
};

} // namespace

/// The digits of the number of a result in `rest`, as in `%0#1`.
static size_t countResultDigits(StringRef rest) {
  return rest.consume_front("#") ? rest.take_while(llvm::isDigit).size() : 0;
}

/// What follows spaces and comments in `rest`.
static StringRef skipSpaces(StringRef rest) {
  rest = rest.ltrim();
  while (rest.starts_with("//"))
    rest = rest.drop_until([](char c) { return c == '\n'; }).ltrim();
  return rest;
}

/// Whether `rest` begins with an array whose elements are of type `index`, or
/// of one that is only named, as in `array<!type: 1>`. MLIR's parser ends the
/// process at elements of type `index`.
static bool isArrayOfIndex(StringRef rest) {
  if (!rest.consume_front("array"))
    return false;
  rest = skipSpaces(rest);
  if (!rest.consume_front("<"))
    return false;
  rest = skipSpaces(rest);
  return rest.starts_with("!") || rest.starts_with("index");
}

static Excess findExcess(StringRef text) {
  unsigned depth = 0;
  // Each sign nests an expression as well: `- - - x`.
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
      // Skips a string, with its escaped characters, to its end or to that of
      // the line.
      for (++i; i != text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        if (text[i] == '\\' && i + 1 != text.size())
          ++i;
      if (i == text.size())
        return {};
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
      // The `>` of a comparison closes nothing.
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
      return {rest.data(),
              "nested deeper than " + std::to_string(maxNesting) + " levels"};
    if (isArrayOfIndex(rest))
      return {rest.data(),
              "the elements of an 'array' are of a type such as i64 or f32, "
              "written out"};
    if (countResultDigits(rest) > maxResultDigits)
      return {rest.data(), "no op has as many results"};
  }
  return {};
}

LogicalResult bastile::checkLimits(const llvm::SourceMgr &source,
                                   MLIRContext &context) {
  const unsigned file = source.getMainFileID();
  const llvm::MemoryBuffer *buffer = source.getMemoryBuffer(file);
  const Excess excess = findExcess(buffer->getBuffer());
  if (!excess.place)
    return success();
  auto [line, column] =
      source.getLineAndColumn(llvm::SMLoc::getFromPointer(excess.place), file);
  return emitError(FileLineColLoc::get(&context, buffer->getBufferIdentifier(),
                                       line, column))
         << excess.message;
}
