//===- Text.h - Composing messages ------------------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_TEXT_H
#define BASTILE_RUNTIME_TEXT_H

#include "bastile/runtime/Error.h"
#include "bastile/runtime/TensorView.h"

#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace bastile::runtime {

/// Everything in `parts`, one after the other.
template <typename... Parts>
std::string concat(const Parts &...parts) {
  std::ostringstream stream;
  // Without this, text for which there is no memory would be left out in
  // silence: the message of an error could be empty, which means success.
  stream.exceptions(std::ios_base::badbit);
  (stream << ... << parts);
  return stream.str();
}

template <typename... Parts>
Error makeError(const Parts &...parts) {
  return Error(concat(parts...));
}

/// Prints sizes as in "[8192, 2880]".
std::string print(const Dimensions &dimensions);

/// Prints sizes as above, with "?" for those that are known only at launch.
std::string print(const std::vector<std::optional<int64_t>> &shape);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_TEXT_H
