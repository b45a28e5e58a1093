//===- ElementType.cpp - Element types of tensors -------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/ElementType.h"

#include <iterator>

using namespace bastile::runtime;

namespace {
struct TypeInfo {
  std::string_view name;
  int64_t byteSize;
  bool isFloat;
};
} // namespace

/// In the order of the enumerators.
static constexpr TypeInfo typeInfos[] = {
    {"f64", 8, true},  {"f32", 4, true},      {"f16", 2, true},
    {"bf16", 2, true}, {"f8E4M3FN", 1, true}, {"f8E5M2", 1, true},
    {"i1", 1, false},  {"i8", 1, false},      {"i32", 4, false},
    {"i64", 8, false},
};

static_assert(std::size(typeInfos) == size_t(ElementType::I64) + 1,
              "one line for each type");

static const TypeInfo &info(ElementType type) {
  return typeInfos[static_cast<size_t>(type)];
}

std::string_view bastile::runtime::name(ElementType type) {
  return info(type).name;
}

std::optional<ElementType>
bastile::runtime::parseElementType(std::string_view spelling) {
  for (size_t i = 0; i != std::size(typeInfos); ++i)
    if (typeInfos[i].name == spelling)
      return static_cast<ElementType>(i);
  return std::nullopt;
}

int64_t bastile::runtime::byteSize(ElementType type) {
  return info(type).byteSize;
}

bool bastile::runtime::isFloat(ElementType type) { return info(type).isFloat; }
