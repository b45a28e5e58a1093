//===- MetadataComment.cpp - Metadata within PTX --------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/Compiler.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/FormatVariadic.h"

using llvm::StringRef;
using namespace bastile;

/// Appends JSON with characters beyond ASCII escaped as \uXXXX: an assembler of
/// PTX refuses such characters, in comments as well.
static void appendAscii(std::string &text, StringRef json) {
  if (llvm::isASCII(json)) {
    text += json;
    return;
  }
  llvm::SmallVector<llvm::UTF16, 32> units;
  llvm::convertUTF8ToUTF16String(json, units);
  for (llvm::UTF16 unit : units)
    if (unit < 0x80)
      text += static_cast<char>(unit);
    else
      text += llvm::formatv("\\u{0:x-4}", unit).str();
}

std::string bastile::formatMetadataComment(const llvm::json::Value &metadata) {
  const std::string text = llvm::formatv("{0:1}", metadata).str();
  std::string comment = "// bastile-metadata-begin\n";
  comment.reserve(text.size() + 3 * llvm::count(text, '\n') + 64);
  for (StringRef line : llvm::split(StringRef(text), "\n")) {
    comment += "// ";
    appendAscii(comment, line);
    comment += '\n';
  }
  comment += "// bastile-metadata-end\n";
  return comment;
}
