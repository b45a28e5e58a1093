//===- GradientOptions.h - The gradients that a user asks for ---*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_GRADIENTOPTIONS_H
#define BASTILE_GRADIENTOPTIONS_H

#include <string>
#include <vector>

namespace bastile {

/// Which gradients to derive, and where they are returned.
struct GradientOptions {
  /// The arguments to derive gradients for; {"all"} for every argument of
  /// floats, none for no gradients. Each function that has one of them gets a
  /// backward.
  std::vector<std::string> arguments = {};
  /// Add the gradients of the first result's sum to the function instead of
  /// making a backward.
  bool together = false;
  /// Let gradients that are computed together take the memory of arguments of
  /// the same type.
  bool inPlace = false;
  /// Leave out the first result where gradients are computed together with it.
  bool dropValue = false;
};

} // namespace bastile

#endif // BASTILE_GRADIENTOPTIONS_H
