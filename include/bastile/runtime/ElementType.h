//===- ElementType.h - Element types of tensors -----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_ELEMENTTYPE_H
#define BASTILE_RUNTIME_ELEMENTTYPE_H

#include <cstdint>
#include <optional>
#include <string_view>

namespace bastile::runtime {

/// An element of type `I1` occupies one byte, 0 or 1, as booleans do in
/// frameworks.
enum class ElementType : uint8_t {
  F64,
  F32,
  F16,
  BF16,
  F8E4M3FN,
  F8E5M2,
  I1,
  I8,
  I32,
  I64,
};

/// The spelling of MLIR and of the metadata: "bf16", "f8E4M3FN", "i64", ...
std::string_view name(ElementType type);

/// The type that `name` spells this way; nothing for any other spelling.
std::optional<ElementType> parseElementType(std::string_view spelling);

int64_t byteSize(ElementType type);

bool isFloat(ElementType type);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_ELEMENTTYPE_H
