//===- KernelSelection.h - Which kernels to make code of --------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_KERNELSELECTION_H
#define BASTILE_KERNELSELECTION_H

#include <string>
#include <utility>

namespace bastile {

/// Which kernels of a module code is generated for. The metadata describes all
/// of them.
class KernelSelection {
public:
  /// Selects all kernels.
  KernelSelection() = default;
  /// Selects the first variant of each launch, which aligned tensors run.
  static KernelSelection firstVariants() { return {Kind::FirstVariants, ""}; }
  /// Selects the kernel of this name, which must exist.
  static KernelSelection only(std::string name) {
    return {Kind::Only, std::move(name)};
  }

  bool isAll() const { return kind == Kind::All; }
  bool isFirstVariants() const { return kind == Kind::FirstVariants; }
  /// The name that `only` was given; empty for any other selection.
  const std::string &name() const { return onlyName; }

  /// A text that differs between different selections, for keys.
  std::string describe() const {
    switch (kind) {
    case Kind::All:
      return "all";
    case Kind::FirstVariants:
      return "first variants";
    case Kind::Only:
      return "only " + onlyName;
    }
    return {};
  }

private:
  enum class Kind { All, FirstVariants, Only };
  KernelSelection(Kind kind, std::string name)
      : kind(kind), onlyName(std::move(name)) {}

  Kind kind = Kind::All;
  std::string onlyName;
};

} // namespace bastile

#endif // BASTILE_KERNELSELECTION_H
