//===- NpyFuzzer.cpp - .npy files of any bytes ----------------------------===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "bastile/runtime/Npy.h"

#include <cstdlib>

using namespace bastile::runtime;

/// Reads the bytes as each type; an array that was read is written as the same
/// bytes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char *>(data), size);
  for (std::optional<ElementType> type :
       {std::optional<ElementType>(), std::optional(ElementType::BF16),
        std::optional(ElementType::F8E4M3FN), std::optional(ElementType::F32),
        std::optional(ElementType::I1)}) {
    Expected<NpyArray> array = parseNpy(bytes, type);
    if (!array)
      continue;
    Expected<NpyArray> again = parseNpy(formatNpy(*array), array->type);
    if (!again || again->shape != array->shape || again->data != array->data)
      std::abort();
  }
  return 0;
}
