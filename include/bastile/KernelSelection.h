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

/// Which kernels of a module to make code of. The metadata describes all.
class KernelSelection {
public:
  /// All of them.
  KernelSelection() = default;
  /// The first variant of each launch, which aligned tensors run.
  static KernelSelection firstVariants() { return {Kind::FirstVariants, ""}; }
  /// The one of this name, which must be there.
  static KernelSelection only(std::string name) {
    return {Kind::Only, std::move(name)};
  }

  bool isAll() const { return kind == Kind::All; }
  bool isFirstVariants() const { return kind == Kind::FirstVariants; }
  /// Of the only kernel.
  const std::string &name() const { return onlyName; }

  /// Different for different selections.
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
