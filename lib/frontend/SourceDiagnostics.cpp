//===- SourceDiagnostics.cpp - Messages and what they point to ------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/SourceDiagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Unicode.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace bastile;
using llvm::StringRef;

/// Bytes of a line that are printed, about half of them ahead of the place.
static constexpr size_t maxLineBytes = 160;
/// Bytes of a message, which may quote the source.
static constexpr size_t maxMessageBytes = 4000;

static bool isContinuation(char byte) { return (byte & 0xC0) == 0x80; }

/// Takes a character off `text`: its bytes if a terminal can show it, else
/// none.
static StringRef takePrintable(StringRef text) {
  const size_t size = llvm::getNumBytesForUTF8(text.front());
  if (size > text.size())
    return {};
  const auto *bytes = reinterpret_cast<const llvm::UTF8 *>(text.data());
  const llvm::UTF8 *position = bytes;
  llvm::UTF32 character;
  llvm::UTF32 *target = &character;
  if (llvm::ConvertUTF8toUTF32(&position, bytes + size, &target, target + 1,
                               llvm::strictConversion) != llvm::conversionOK ||
      !llvm::sys::unicode::isPrintable(static_cast<int>(character)))
    return {};
  return text.take_front(size);
}

/// `text` as a terminal can show it. Each byte that it cannot show becomes its
/// number, as in \x1b, except the bytes in `kept`.
static std::string escape(StringRef text, StringRef kept) {
  std::string result;
  while (!text.empty()) {
    const char first = text.front();
    StringRef character =
        kept.contains(first) ? text.take_front() : takePrintable(text);
    if (first == '\t' && character.empty()) {
      result += ' ';
    } else if (character.empty()) {
      const auto byte = static_cast<unsigned char>(first);
      result += {'\\', 'x', llvm::hexdigit(byte >> 4, /*LowerCase=*/true),
                 llvm::hexdigit(byte & 15, /*LowerCase=*/true)};
    } else {
      result += character;
    }
    text = text.drop_front(character.empty() ? 1 : character.size());
  }
  return result;
}

/// The whole message if it is short, else its start.
static std::string shorten(StringRef message) {
  size_t size = std::min(message.size(), maxMessageBytes);
  while (size != message.size() && size != 0 && isContinuation(message[size]))
    --size;
  std::string result = escape(message.take_front(size), /*kept=*/"\n");
  if (size != message.size())
    result += "... (" + std::to_string(message.size() - size) + " bytes more)";
  return result;
}

/// The first place in a file that a location has, if any.
static std::optional<FileLineColRange> findPlace(Location location) {
  std::optional<FileLineColRange> place;
  location->walk([&](Location nested) {
    if (auto range = dyn_cast<FileLineColRange>(nested)) {
      place = range;
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return place;
}

static llvm::SourceMgr::DiagKind getKind(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return llvm::SourceMgr::DK_Note;
  case DiagnosticSeverity::Warning:
    return llvm::SourceMgr::DK_Warning;
  case DiagnosticSeverity::Remark:
    return llvm::SourceMgr::DK_Remark;
  case DiagnosticSeverity::Error:
    break;
  }
  return llvm::SourceMgr::DK_Error;
}

SourceDiagnostics::SourceDiagnostics(llvm::SourceMgr &source,
                                     MLIRContext *context,
                                     llvm::raw_ostream &stream)
    : ScopedDiagnosticHandler(context), source(source), stream(stream) {
  setHandler([this](Diagnostic &diagnostic) {
    print(diagnostic.getLocation(), diagnostic.getSeverity(), diagnostic.str(),
          /*showsLine=*/true);
    Location last = diagnostic.getLocation();
    for (Diagnostic &note : diagnostic.getNotes()) {
      // A note at the place of its error prints no line: the line stands there
      // already.
      print(note.getLocation(), note.getSeverity(), note.str(),
            /*showsLine=*/note.getLocation() != last);
      last = note.getLocation();
    }
  });
}

void SourceDiagnostics::print(Location location, DiagnosticSeverity severity,
                              const std::string &message, bool showsLine) {
  std::optional<FileLineColRange> place = findPlace(location);
  std::string where;
  // Line 0 is that of the module around the file, which nobody wrote.
  const unsigned line = place ? place->getStartLine() : 0;
  if (place)
    where = escape(place->getFilename().getValue(), /*kept=*/"");
  if (line != 0)
    where += llvm::formatv(":{0}:{1}", line, place->getStartColumn()).str();
  llvm::SMDiagnostic(where, getKind(severity), shorten(message))
      .print(/*ProgName=*/nullptr, stream);
  if (line == 0 || !showsLine)
    return;
  const llvm::MemoryBuffer *file =
      source.getMemoryBuffer(source.getMainFileID());
  if (file->getBufferIdentifier() == place->getFilename().getValue())
    printLine(line, place->getStartColumn());
}

void SourceDiagnostics::printLine(unsigned line, unsigned column) {
  const unsigned file = source.getMainFileID();
  const char *start =
      source.FindLocForLineAndColumn(file, line, /*ColNo=*/1).getPointer();
  if (!start)
    return;
  StringRef rest(start, source.getMemoryBuffer(file)->getBufferEnd() - start);
  const StringRef text =
      rest.take_until([](char c) { return c == '\n' || c == '\r'; });

  const size_t place =
      std::min<size_t>(column == 0 ? 0 : column - 1, text.size());
  size_t first = 0, size = text.size();
  if (text.size() > maxLineBytes) {
    first = place - std::min(place, maxLineBytes / 2);
    while (first != 0 && isContinuation(text[first]))
      --first;
    size = std::min(maxLineBytes, text.size() - first);
  }
  const StringRef cut = text.substr(first, size);
  const std::string before =
      (first == 0 ? "" : "...") + escape(cut.take_front(place - first), "");
  stream << before << escape(cut.drop_front(place - first), "")
         << (first + size == text.size() ? "" : "...") << '\n';
  stream.indent(std::max(0, llvm::sys::unicode::columnWidthUTF8(before)));
  llvm::WithColor(stream, llvm::raw_ostream::GREEN, /*Bold=*/true) << '^';
  stream << '\n';
}
