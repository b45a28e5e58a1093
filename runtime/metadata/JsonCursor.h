//===- JsonCursor.h - A JSON value and the way to it ------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_METADATA_JSONCURSOR_H
#define BASTILE_RUNTIME_METADATA_JSONCURSOR_H

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

namespace bastile::runtime {

/// Thrown at the first malformed value. It never leaves the reader, where it
/// saves a check after every step into the document.
class JsonError : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// A value of a document that knows its path, for messages such as
/// "functions[0].inputs[1].type: expected a string".
class JsonCursor {
public:
  JsonCursor(const nlohmann::json &value, std::string path)
      : value(value), path(std::move(path)) {}

  [[noreturn]] void fail(const std::string &message) const;

  bool isNull() const { return value.is_null(); }
  bool isString() const { return value.is_string(); }
  bool isInteger() const { return value.is_number_integer(); }

  /// These read the fields of an object.
  bool has(const char *key) const;
  JsonCursor operator[](const char *key) const;
  std::optional<JsonCursor> find(const char *key) const;

  /// These read the elements of an array.
  size_t size() const;
  JsonCursor operator[](size_t index) const;

  std::string asString() const;
  bool asBool() const;
  int64_t asInteger(int64_t least = 0) const;

  /// An integer in [0, count); `what` names the things counted.
  unsigned asIndex(size_t count, const char *what) const;

private:
  const nlohmann::json &value;
  std::string path;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_METADATA_JSONCURSOR_H
