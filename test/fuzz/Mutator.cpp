//===- Mutator.cpp - Mutants of MLIR text ---------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "Mutator.h"
#include "Context.h"
#include "Options.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <cstring>
#include <random>
#include <vector>

using namespace bastile;
using llvm::ArrayRef;
using llvm::StringRef;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace {

enum class Kind { Value, Symbol, Type, Number, Op, Word, Other };

struct Token {
  StringRef text;
  Kind kind;
};

} // namespace

/// Tokens that may stand for each other.
static const std::vector<StringRef> groups[] = {
    {"arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.maximumf",
     "arith.minimumf", "arith.maxnumf", "arith.minnumf", "math.powf",
     "math.atan2", "arith.remf", "math.copysign"},
    {"math.exp", "math.exp2", "math.log", "math.log2", "math.sqrt",
     "math.rsqrt", "math.tanh", "math.sin", "math.cos", "math.absf", "math.erf",
     "arith.negf", "math.log1p", "math.expm1", "math.floor",
     "tile.stop_gradient", "tile.silu", "tile.gelu"},
    {"arith.addi", "arith.subi", "arith.muli", "arith.andi", "arith.ori",
     "arith.xori", "arith.maxsi", "arith.minsi", "arith.divsi"},
    {"arith.extf", "arith.truncf", "arith.sitofp", "arith.fptosi",
     "arith.uitofp", "arith.bitcast"},
    {"tile.swiglu", "tile.geglu", "tile.reglu"},
    {"add", "max", "min", "mul"},
    {"ogt", "olt", "oge", "ole", "oeq", "one", "une", "uno", "true"},
};

static constexpr StringRef elementTypes[] = {
    "f32", "bf16", "f16",   "f64",    "i1",      "i8",
    "i32", "i64",  "index", "f8E5M2", "f8E4M3FN"};

static constexpr StringRef numbers[] = {
    "0",    "1",       "2",
    "3",    "4",       "5",
    "7",    "8",       "16",
    "31",   "32",      "33",
    "64",   "96",      "127",
    "128",  "1000",    "2880",
    "8192", "1048576", "2147483647",
    "-1",   "?",       "0.0",
    "1.0",  "1.0e9",   "4611686018427387904"};

//===----------------------------------------------------------------------===//
// Tokens
//===----------------------------------------------------------------------===//

static bool isWordCharacter(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '$';
}

/// The number of characters after a word up to the bracket that closes its
/// first, as in `tensor<?x8xf32>`.
static size_t bracketLength(StringRef text) {
  int depth = 0;
  for (size_t i = 0; i != text.size(); ++i) {
    depth += text[i] == '<';
    depth -= text[i] == '>';
    if (depth == 0)
      return i + 1;
    if (text[i] == '\n')
      break;
  }
  return 0;
}

static Token takeToken(StringRef text) {
  const char first = text.front();
  if (first == '%' || first == '@') {
    size_t size = 1;
    while (size != text.size() && isWordCharacter(text[size]))
      ++size;
    return {text.take_front(size), first == '%' ? Kind::Value : Kind::Symbol};
  }
  if (llvm::isDigit(first)) {
    size_t size = 1;
    while (size != text.size() &&
           (llvm::isDigit(text[size]) || text[size] == '.'))
      ++size;
    return {text.take_front(size), Kind::Number};
  }
  if (!isWordCharacter(first))
    return {text.take_front(1), Kind::Other};
  size_t size = 1;
  while (size != text.size() &&
         (isWordCharacter(text[size]) || text[size] == '.'))
    ++size;
  StringRef word = text.take_front(size);
  if ((word == "tensor" || word == "vector" || word == "memref") &&
      size != text.size() && text[size] == '<')
    if (size_t rest = bracketLength(text.drop_front(size)))
      return {text.take_front(size + rest), Kind::Type};
  if (llvm::is_contained(elementTypes, word))
    return {word, Kind::Type};
  return {word, word.contains('.') ? Kind::Op : Kind::Word};
}

static llvm::SmallVector<Token> lex(StringRef text) {
  llvm::SmallVector<Token> tokens;
  while (!text.empty()) {
    Token token = takeToken(text);
    tokens.push_back(token);
    text = text.drop_front(token.text.size());
  }
  return tokens;
}

//===----------------------------------------------------------------------===//
// Mutations
//===----------------------------------------------------------------------===//

namespace {

class Mutator {
public:
  Mutator(StringRef text, unsigned seed) : text(text.str()), random(seed) {}

  std::string mutate(ArrayRef<StringRef> options) {
    setOptions(options);
    for (size_t count = 1 + below(3); count != 0; --count) {
      switch (below(8)) {
      case 0:
      case 1:
        exchangeToken(/*everywhere=*/false);
        break;
      case 2:
      case 3:
        exchangeToken(/*everywhere=*/true);
        break;
      case 4:
        exchangeInTypes();
        break;
      case 5:
      case 6:
        editLines();
        break;
      case 7:
        editBytes();
        break;
      }
    }
    return std::move(text);
  }

  std::string cross(StringRef other) {
    std::vector<std::string> lines = splitLines();
    llvm::SmallVector<StringRef> otherLines;
    other.split(otherLines, '\n');
    const size_t from = below(otherLines.size());
    const size_t count =
        std::min(otherLines.size() - from, size_t(1) + below(6));
    const size_t to = below(lines.size() + 1);
    for (size_t i = 0; i != count; ++i)
      lines.insert(lines.begin() + to + i, otherLines[from + i].str());
    return llvm::join(lines, "\n");
  }

private:
  size_t below(size_t bound) { return bound == 0 ? 0 : random() % bound; }

  /// Another token of the same kind as `token`.
  std::string findOther(const Token &token, ArrayRef<Token> tokens) {
    for (const std::vector<StringRef> &group : groups)
      if (llvm::is_contained(group, token.text) && below(4) != 0)
        return group[below(group.size())].str();
    if (token.kind == Kind::Number && below(2) == 0)
      return numbers[below(std::size(numbers))].str();
    if (token.kind == Kind::Type && token.text.size() < 9 && below(2) == 0)
      return elementTypes[below(std::size(elementTypes))].str();
    llvm::SmallVector<StringRef> others;
    for (const Token &other : tokens)
      if (other.kind == token.kind && other.text != token.text)
        others.push_back(other.text);
    return others.empty() ? token.text.str()
                          : others[below(others.size())].str();
  }

  void exchangeToken(bool everywhere) {
    auto tokens = lex(text);
    llvm::SmallVector<size_t> places;
    for (auto [index, token] : llvm::enumerate(tokens))
      if (token.kind != Kind::Other)
        places.push_back(index);
    if (places.empty())
      return;
    const size_t place = places[below(places.size())];
    const std::string other = findOther(tokens[place], tokens);
    std::string result;
    for (auto [index, token] : llvm::enumerate(tokens)) {
      const bool isMeant =
          everywhere ? token.text == tokens[place].text : index == place;
      result += isMeant ? other : token.text.str();
    }
    text = std::move(result);
  }

  /// Exchanges a size or an element type in all types, so that types that
  /// fitted together still do.
  void exchangeInTypes() {
    llvm::SmallVector<StringRef> parts;
    auto tokens = lex(text);
    for (const Token &token : tokens)
      if (token.kind == Kind::Type)
        for (StringRef part : splitType(token.text))
          if (part.size() > 1 || llvm::isDigit(part.front()))
            parts.push_back(part);
    if (parts.empty())
      return;
    const std::string old = parts[below(parts.size())].str();
    const std::string other =
        llvm::isDigit(old.front())
            ? numbers[below(std::size(numbers))].str()
            : elementTypes[below(std::size(elementTypes))].str();
    std::string result;
    for (const Token &token : tokens) {
      if (token.kind != Kind::Type) {
        result += token.text;
        continue;
      }
      for (StringRef part : splitType(token.text))
        result += part == old ? StringRef(other) : part;
    }
    text = std::move(result);
  }

  /// Splits `tensor<?x8xf32>` into its parts: `tensor`, `<`, `?`, `x`, `8`,
  /// `x`, `f32`...
  static llvm::SmallVector<StringRef> splitType(StringRef type) {
    llvm::SmallVector<StringRef> parts;
    while (!type.empty()) {
      size_t size = 1;
      auto grow = [&](auto &&belongs) {
        while (size != type.size() && belongs(type[size]))
          ++size;
      };
      if (llvm::isDigit(type.front()))
        grow(llvm::isDigit);
      else if (type.front() != 'x' && llvm::isAlpha(type.front()))
        grow(isWordCharacter);
      parts.push_back(type.take_front(size));
      type = type.drop_front(size);
    }
    return parts;
  }

  std::vector<std::string> splitLines() const {
    llvm::SmallVector<StringRef> lines;
    StringRef(text).split(lines, '\n');
    return {lines.begin(), lines.end()};
  }

  void editLines() {
    std::vector<std::string> lines = splitLines();
    const size_t line = below(lines.size()), other = below(lines.size());
    switch (below(3)) {
    case 0:
      lines.erase(lines.begin() + line);
      break;
    case 1:
      lines.insert(lines.begin() + other, std::string(lines[line]));
      break;
    case 2:
      std::swap(lines[line], lines[other]);
      break;
    }
    text = llvm::join(lines, "\n");
  }

  void editBytes() {
    const size_t size = text.size(), room = size + 16;
    text.resize(room);
    text.resize(
        LLVMFuzzerMutate(reinterpret_cast<uint8_t *>(text.data()), size, room));
  }

  /// Gives options to a text that has none, and now and then other ones to any.
  void setOptions(ArrayRef<StringRef> options) {
    const bool hasOptions = StringRef(text).starts_with(fuzz::optionsPrefix);
    if (options.empty() || (hasOptions && below(8) != 0))
      return;
    StringRef rest = text;
    if (hasOptions)
      rest = rest.split('\n').second;
    text = (fuzz::optionsPrefix + " " + options[below(options.size())] + "\n" +
            rest)
               .str();
  }

  std::string text;
  std::minstd_rand random;
};

} // namespace

static size_t write(const std::string &text, uint8_t *out, size_t maxSize) {
  const size_t size = std::min(text.size(), maxSize);
  std::memcpy(out, text.data(), size);
  return size;
}

/// The mutant of one of a few seeds: the first that is a module or, if none is,
/// the last.
static std::string
findModule(unsigned seed,
           llvm::function_ref<std::string(unsigned)> makeMutant) {
  constexpr int attempts = 8;
  std::minstd_rand seeds(seed);
  std::string mutant;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    mutant = makeMutant(seeds());
    if (fuzz::isModule(mutant))
      break;
  }
  return mutant;
}

size_t fuzz::mutateText(uint8_t *data, size_t size, size_t maxSize,
                        unsigned seed, ArrayRef<StringRef> options) {
  StringRef text(reinterpret_cast<const char *>(data), size);
  return write(findModule(seed,
                          [&](unsigned seed) {
                            return Mutator(text, seed).mutate(options);
                          }),
               data, maxSize);
}

size_t fuzz::crossText(StringRef first, StringRef second, uint8_t *out,
                       size_t maxSize, unsigned seed) {
  return write(findModule(seed,
                          [&](unsigned seed) {
                            return Mutator(first, seed).cross(second);
                          }),
               out, maxSize);
}
