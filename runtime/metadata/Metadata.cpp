//===- Metadata.cpp - Finding metadata ------------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/Metadata.h"
#include "bastile/runtime/Files.h"
#include "runtime/Text.h"
#include "runtime/metadata/MetadataReader.h"

#include <algorithm>

using namespace bastile::runtime;

static constexpr std::string_view beginLine = "// bastile-metadata-begin";
static constexpr std::string_view endLine = "// bastile-metadata-end";

/// Splits the first line off `text`, without its line end.
static std::string_view takeLine(std::string_view &text) {
  size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (!line.empty() && line.back() == '\r')
    line.remove_suffix(1);
  return line;
}

/// The document in the comment block of a PTX text.
static Expected<std::string> extractFromPtx(std::string_view text) {
  bool inside = false;
  std::string document;
  while (!text.empty()) {
    std::string_view line = takeLine(text);
    if (!inside) {
      inside = line == beginLine;
      continue;
    }
    if (line == endLine)
      return document;
    if (line.substr(0, 2) != "//")
      return makeError("metadata: a line between '", beginLine, "' and '",
                       endLine, "' is not a comment: '", line, "'");
    document += line.substr(2);
    document += '\n';
  }
  if (inside)
    return makeError("metadata: no line '", endLine, "'");
  return makeError("metadata: neither JSON nor a text with a line '", beginLine,
                   "'");
}

Expected<Metadata> bastile::runtime::parseMetadata(std::string_view text) {
  size_t start = text.find_first_not_of(" \t\r\n");
  if (start != std::string_view::npos && text[start] == '{')
    return readMetadataDocument(text);
  Expected<std::string> document = extractFromPtx(text);
  if (!document)
    return document.takeError();
  return readMetadataDocument(*document);
}

static bool endsWith(const std::string &text, std::string_view suffix) {
  return text.size() >= suffix.size() &&
         text.compare(text.size() - suffix.size(), suffix.size(), suffix) == 0;
}

Expected<Metadata> bastile::runtime::loadMetadata(const std::string &path) {
  bool inside = endsWith(path, ".ptx") || endsWith(path, ".json");
  std::string file = inside ? path : path + ".json";
  Expected<std::string> contents = readFile(file);
  if (!contents)
    return contents.takeError();
  Expected<Metadata> metadata = parseMetadata(*contents);
  if (!metadata)
    return makeError(file, ": ", metadata.takeError().message());
  return metadata;
}

/// What `function` says of `operand`, which is no input.
static const BufferSpec &getBuffer(const Function &function,
                                   const Operand &operand) {
  return operand.kind == Operand::Kind::Output
             ? function.outputs[operand.index]
             : function.temporaries[operand.index];
}

bool Function::isAlwaysOne(const Operand &operand, unsigned dimension) const {
  return fixedSize(operand, dimension) == 1;
}

size_t Function::rank(const Operand &operand) const {
  const Operand &found = whole(operand);
  return found.kind == Operand::Kind::Input
             ? inputs[found.index].shape.size()
             : getBuffer(*this, found).shape.size();
}

ElementType Function::type(const Operand &operand) const {
  const Operand &found = whole(operand);
  return found.kind == Operand::Kind::Input ? inputs[found.index].type
                                            : getBuffer(*this, found).type;
}

std::optional<int64_t> Function::fixedSize(const Operand &operand,
                                           unsigned dimension) const {
  if (operand.kind == Operand::Kind::Piece) {
    const PieceSpec &piece = pieces[operand.index];
    std::optional<int64_t> size = fixedSize(piece.whole, dimension);
    if (size && dimension == piece.dimension)
      *size /= piece.count;
    return size;
  }
  if (operand.kind == Operand::Kind::Input)
    return inputs[operand.index].shape[dimension];
  const Expression &size = getBuffer(*this, operand).shape[dimension];
  if (size.kind != Expression::Kind::Constant)
    return std::nullopt;
  return size.value;
}

const Function *Metadata::find(std::string_view name) const {
  auto found = std::find_if(
      functions.begin(), functions.end(),
      [&](const Function &function) { return function.name == name; });
  return found == functions.end() ? nullptr : &*found;
}
