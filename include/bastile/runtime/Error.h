//===- Error.h - Errors as values -------------------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The runtime links neither LLVM nor MLIR, so it has its own small pair of
// types for results that can fail. They follow the conventions of `llvm::Error`
// and `llvm::Expected`, except that an error may be dropped without an abort.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_ERROR_H
#define BASTILE_RUNTIME_ERROR_H

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace bastile::runtime {

/// Success, or the message of a failure. Success owns no memory.
class [[nodiscard]] Error {
public:
  /// Success.
  Error() = default;

  /// A failure; `message` starts in lower case and is never empty.
  explicit Error(std::string message) : text(std::move(message)) {
    assert(!text.empty() && "a failure needs a message");
  }

  static Error success() { return Error(); }

  /// True on failure.
  explicit operator bool() const { return !text.empty(); }

  const std::string &message() const { return text; }

private:
  std::string text;
};

/// A value, or the error that stands in its place.
template <typename T>
class [[nodiscard]] Expected {
public:
  Expected(T value) : storage(std::in_place_index<0>, std::move(value)) {}
  Expected(Error error) : storage(std::in_place_index<1>, std::move(error)) {
    assert(std::get_if<1>(&storage)->operator bool() && "success has a value");
  }

  /// True when there is a value.
  explicit operator bool() const { return storage.index() == 0; }

  T &operator*() { return *pointer(); }
  const T &operator*() const { return *pointer(); }
  T *operator->() { return pointer(); }
  const T *operator->() const { return pointer(); }

  /// Moves the error out of this object; success when there is a value.
  Error takeError() {
    Error *error = std::get_if<1>(&storage);
    return error ? std::move(*error) : Error::success();
  }

private:
  T *pointer() {
    assert(*this && "no value: this is an error");
    return std::get_if<0>(&storage);
  }
  const T *pointer() const { return const_cast<Expected *>(this)->pointer(); }

  std::variant<T, Error> storage;
};

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_ERROR_H
