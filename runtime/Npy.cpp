//===- Npy.cpp - Tensors in .npy files ------------------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Libraries that read .npy files turn the element type of a file into a type of
// C++ and reject those without one. bf16 and the 8-bit floats have none, so
// this reader and writer handles bytes.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/Npy.h"
#include "bastile/runtime/Files.h"
#include "runtime/Text.h"

using namespace bastile::runtime;

static constexpr std::string_view magic = "\x93NUMPY";
/// NumPy aligns the elements to a multiple of this many bytes.
static constexpr size_t dataAlignment = 64;
/// NumPy has no more dimensions. The header of such an array, as written here,
/// has a length of two bytes.
static constexpr size_t maxArrayRank = 64;

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

/// The spelling of `type` in a file: a byte order, a kind and a size.
static std::string_view descriptor(ElementType type) {
  switch (type) {
  case ElementType::F64:
    return "<f8";
  case ElementType::F32:
    return "<f4";
  case ElementType::F16:
    return "<f2";
  case ElementType::BF16:
    return "<V2";
  case ElementType::F8E4M3FN:
  case ElementType::F8E5M2:
    return "|u1";
  case ElementType::I1:
    return "|b1";
  case ElementType::I8:
    return "|i1";
  case ElementType::I32:
    return "<i4";
  case ElementType::I64:
    return "<i8";
  }
  return "";
}

static bool isNamedByFormat(ElementType type) {
  const char kind = descriptor(type)[1];
  return kind != 'V' && kind != 'u';
}

/// The element type that `text` names by itself, if it does.
static std::optional<ElementType> namedType(std::string_view text) {
  for (ElementType type :
       {ElementType::F64, ElementType::F32, ElementType::F16, ElementType::I1,
        ElementType::I8, ElementType::I32, ElementType::I64}) {
    std::string_view candidate = descriptor(type);
    if (text.substr(1) != candidate.substr(1))
      continue;
    // For elements of a single byte, any byte order is accepted.
    if (text[0] == candidate[0] || byteSize(type) == 1)
      return type;
  }
  return std::nullopt;
}

/// Whether `text` may stand for elements of a `type` that the format cannot
/// name.
static bool isOpaque(std::string_view text, ElementType type) {
  if (isNamedByFormat(type) || (text[0] != '<' && text[0] != '|'))
    return false;
  std::string size = std::to_string(byteSize(type));
  return text.substr(1) == "V" + size || text.substr(1) == "u" + size;
}

static Expected<ElementType> readType(std::string_view text,
                                      std::optional<ElementType> expected) {
  if (text.size() < 3)
    return makeError("malformed element type '", text, "'");
  if (expected && isOpaque(text, *expected))
    return *expected;
  std::optional<ElementType> type = namedType(text);
  if (!type)
    return makeError("cannot read elements of type '", text, "'",
                     expected ? concat(" as ", name(*expected)) : "");
  if (expected && *type != *expected)
    return makeError("expected elements of type ", name(*expected), ", got ",
                     name(*type));
  return *type;
}

//===----------------------------------------------------------------------===//
// Headers
//===----------------------------------------------------------------------===//

/// The text after `'key':` in a header, a dictionary as Python prints it.
static Expected<std::string_view> findValue(std::string_view header,
                                            std::string_view key) {
  size_t position = header.find(concat("'", key, "':"));
  if (position == std::string_view::npos)
    return makeError("the header lacks '", key, "'");
  header.remove_prefix(position + key.size() + 3);
  size_t start = header.find_first_not_of(' ');
  return header.substr(start == std::string_view::npos ? header.size() : start);
}

static Expected<std::string_view> findDescriptor(std::string_view header) {
  Expected<std::string_view> value = findValue(header, "descr");
  if (!value)
    return value;
  size_t end = value->find('\'', 1);
  if (value->empty() || value->front() != '\'' || end == std::string_view::npos)
    return makeError("the elements are not of one type");
  return value->substr(1, end - 1);
}

/// Reads "(8192, 2880)", "(4,)" or "()".
static Expected<std::vector<int64_t>> readShape(std::string_view header) {
  Expected<std::string_view> value = findValue(header, "shape");
  if (!value)
    return value.takeError();
  size_t end = value->find(')');
  if (value->empty() || value->front() != '(' || end == std::string_view::npos)
    return makeError("malformed shape in the header");

  std::vector<int64_t> shape;
  bool inNumber = false;
  for (char c : value->substr(1, end - 1)) {
    if (c >= '0' && c <= '9') {
      if (!inNumber) {
        if (shape.size() == maxArrayRank)
          return makeError("the array has more than ", maxArrayRank,
                           " dimensions");
        shape.push_back(0);
      }
      inNumber = true;
      int64_t &size = shape.back();
      if (__builtin_mul_overflow(size, 10, &size) ||
          __builtin_add_overflow(size, c - '0', &size))
        return makeError("a size in the header is too large");
    } else if (c == ',' || c == ' ') {
      inNumber = false;
    } else {
      return makeError("malformed shape in the header");
    }
  }
  return shape;
}

/// Takes the header off `contents`, which then holds the elements.
static Expected<std::string_view> takeHeader(std::string_view &contents) {
  if (contents.substr(0, magic.size()) != magic ||
      contents.size() < magic.size() + 4)
    return makeError("not an .npy file");
  const int version = static_cast<unsigned char>(contents[magic.size()]);
  contents.remove_prefix(magic.size() + 2);

  // The length of the header has 2 bytes in version 1 and 4 in later ones.
  const size_t lengthBytes = version == 1 ? 2 : 4;
  if (version < 1 || version > 3 || contents.size() < lengthBytes)
    return makeError("unknown version ", version, " of the .npy format");
  size_t length = 0;
  for (size_t i = 0; i != lengthBytes; ++i)
    length |= size_t(static_cast<unsigned char>(contents[i])) << (8 * i);
  contents.remove_prefix(lengthBytes);
  if (contents.size() < length)
    return makeError("the header is cut off");
  std::string_view header = contents.substr(0, length);
  contents.remove_prefix(length);
  return header;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

Expected<NpyArray>
bastile::runtime::parseNpy(std::string_view contents,
                           std::optional<ElementType> expected) {
  Expected<std::string_view> header = takeHeader(contents);
  if (!header)
    return header.takeError();
  Expected<std::string_view> order = findValue(*header, "fortran_order");
  if (!order)
    return order.takeError();
  if (order->substr(0, 5) != "False")
    return makeError("the array is not in row-major order");
  Expected<std::string_view> descriptor = findDescriptor(*header);
  if (!descriptor)
    return descriptor.takeError();
  Expected<ElementType> type = readType(*descriptor, expected);
  if (!type)
    return type.takeError();
  Expected<std::vector<int64_t>> shape = readShape(*header);
  if (!shape)
    return shape.takeError();

  int64_t bytes = byteSize(*type);
  for (int64_t size : *shape)
    if (__builtin_mul_overflow(bytes, size, &bytes))
      return makeError("the array is too large");
  if (contents.size() != static_cast<uint64_t>(bytes))
    return makeError("expected ", bytes, " bytes of elements, got ",
                     contents.size());
  return NpyArray{*type, std::move(*shape), std::string(contents)};
}

Expected<NpyArray>
bastile::runtime::loadNpy(const std::string &path,
                          std::optional<ElementType> expected) {
  Expected<std::string> contents = readFile(path);
  if (!contents)
    return contents.takeError();
  Expected<NpyArray> array = parseNpy(*contents, expected);
  if (!array)
    return makeError(path, ": ", array.takeError().message());
  return array;
}

std::string bastile::runtime::formatNpy(const NpyArray &array) {
  std::string header = concat("{'descr': '", descriptor(array.type),
                              "', 'fortran_order': False, 'shape': (");
  for (int64_t size : array.shape)
    header += concat(size, ", ");
  header += "), }";
  // Magic, version and length take 10 bytes, the line end 1.
  const size_t used = magic.size() + 4 + header.size() + 1;
  header.append((dataAlignment - used % dataAlignment) % dataAlignment, ' ');
  header += '\n';

  std::string result(magic);
  result += {'\x01', '\x00', static_cast<char>(header.size() & 0xff),
             static_cast<char>(header.size() >> 8)};
  return result + header + array.data;
}

Error bastile::runtime::saveNpy(const std::string &path,
                                const NpyArray &array) {
  return writeFile(path, formatNpy(array));
}
