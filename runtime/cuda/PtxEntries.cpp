//===- PtxEntries.cpp - One kernel out of a PTX text ----------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/PtxEntries.h"

using namespace bastile::runtime;

static bool startsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

/// The name of the entry that `line` begins; empty if it begins none.
static std::string_view getEntry(std::string_view line) {
  constexpr std::string_view keyword = ".visible .entry ";
  if (!startsWith(line, keyword))
    return {};
  line.remove_prefix(keyword.size());
  return line.substr(0, line.find('('));
}

std::optional<std::string>
bastile::runtime::selectPtxEntry(std::string_view ptx, std::string_view entry) {
  std::string result;
  bool skips = false, found = false;
  while (!ptx.empty()) {
    const size_t end = ptx.find('\n');
    const std::string_view line = ptx.substr(0, end);
    ptx.remove_prefix(end == ptx.npos ? ptx.size() : end + 1);
    if (std::string_view name = getEntry(line); !name.empty()) {
      skips = name != entry;
      found |= !skips;
    }
    if (!skips && !startsWith(line, "//"))
      result.append(line).push_back('\n');
    // All lines of an entry but its last are indented or are labels.
    if (line == "}")
      skips = false;
  }
  if (!found)
    return std::nullopt;
  return result;
}
