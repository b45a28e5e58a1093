//===- JsonCursor.cpp - A JSON value and the way to it --------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/metadata/JsonCursor.h"
#include "runtime/Text.h"

#include <limits>

using namespace bastile::runtime;

void JsonCursor::fail(const std::string &message) const {
  throw JsonError(concat(path.empty() ? "document" : path, ": ", message));
}

bool JsonCursor::has(const char *key) const {
  if (!value.is_object())
    fail(concat("expected an object, got ", value.type_name()));
  return value.contains(key);
}

JsonCursor JsonCursor::operator[](const char *key) const {
  if (!has(key))
    fail(concat("lacks '", key, "'"));
  return {value[key], path.empty() ? key : path + "." + key};
}

std::optional<JsonCursor> JsonCursor::find(const char *key) const {
  if (!has(key))
    return std::nullopt;
  return (*this)[key];
}

size_t JsonCursor::size() const {
  if (!value.is_array())
    fail(concat("expected an array, got ", value.type_name()));
  return value.size();
}

JsonCursor JsonCursor::operator[](size_t index) const {
  return {value[index], concat(path, "[", index, "]")};
}

std::string JsonCursor::asString() const {
  if (!value.is_string())
    fail(concat("expected a string, got ", value.type_name()));
  return value.get<std::string>();
}

bool JsonCursor::asBool() const {
  if (!value.is_boolean())
    fail(concat("expected true or false, got ", value.type_name()));
  return value.get<bool>();
}

int64_t JsonCursor::asInteger(int64_t least) const {
  if (!value.is_number_integer())
    fail(concat("expected an integer, got ", value.type_name()));
  // Numbers past the signed range are stored as unsigned and would wrap.
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max()))
    fail(concat(value.dump(), " does not fit into 64 bits"));
  int64_t result = value.get<int64_t>();
  if (result < least)
    fail(concat("expected at least ", least, ", got ", result));
  return result;
}

unsigned JsonCursor::asIndex(size_t count, const char *what) const {
  int64_t result = asInteger();
  if (static_cast<uint64_t>(result) >= count)
    fail(concat(result, " is out of range: there are ", count, " ", what));
  return static_cast<unsigned>(result);
}
