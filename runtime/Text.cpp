//===- Text.cpp - Composing messages --------------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/Text.h"

using namespace bastile::runtime;

template <typename Range, typename PrintElement>
static std::string printList(const Range &range, PrintElement printElement) {
  std::ostringstream stream;
  const char *separator = "[";
  for (const auto &element : range) {
    stream << separator;
    printElement(stream, element);
    separator = ", ";
  }
  // For an empty range, the bracket is not even open.
  stream << (separator[0] == '[' ? "[]" : "]");
  return stream.str();
}

std::string bastile::runtime::print(const Dimensions &dimensions) {
  return printList(dimensions,
                   [](std::ostream &stream, int64_t size) { stream << size; });
}

std::string
bastile::runtime::print(const std::vector<std::optional<int64_t>> &shape) {
  return printList(shape,
                   [](std::ostream &stream, std::optional<int64_t> size) {
                     if (size)
                       stream << *size;
                     else
                       stream << '?';
                   });
}
