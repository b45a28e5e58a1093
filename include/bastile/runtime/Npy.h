//===- Npy.h - Tensors in .npy files ----------------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_NPY_H
#define BASTILE_RUNTIME_NPY_H

#include "bastile/runtime/ElementType.h"
#include "bastile/runtime/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bastile::runtime {

/// A tensor in row-major order that owns its elements.
struct NpyArray {
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  std::string data;
};

/// Reads a little-endian array in row-major order. The format has no name for
/// bf16 and the 8-bit floats: files hold them as opaque bytes or as unsigned
/// integers of the same size, which become elements of `expected`. If
/// `expected` is given, any other element type is an error.
Expected<NpyArray> parseNpy(std::string_view contents,
                            std::optional<ElementType> expected = std::nullopt);
Expected<NpyArray> loadNpy(const std::string &path,
                           std::optional<ElementType> expected = std::nullopt);

/// The contents of a .npy file that holds `array`; bf16 is stored as opaque
/// bytes, the 8-bit floats as unsigned integers.
std::string formatNpy(const NpyArray &array);
Error saveNpy(const std::string &path, const NpyArray &array);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_NPY_H
