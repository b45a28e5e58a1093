//===- Factors.h - The numbers of products ----------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The arithmetic of emulated tensor cores: factors of 8 or 16 bits, and sums in
// float32 in which each product is exact.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_LIB_EMULATOR_FACTORS_H
#define BASTILE_LIB_EMULATOR_FACTORS_H

#include "lib/emulator/rewrite/EmulateGpu.h"

namespace bastile {

inline unsigned bytesOf(FactorType type) {
  return type == FactorType::BF16 || type == FactorType::F16 ? 2 : 1;
}

/// Decodes `count` elements side by side; element i goes to `to[i * stride]`.
void decodeFactor(FactorType type, const char *from, unsigned count, float *to,
                  unsigned stride);

/// Adds the product of `a`, of rows by depth, and `b`, of depth by columns, to
/// `sum`; all lie row after row, and the depth is a multiple of four.
void addProduct(float *sum, const float *a, const float *b, unsigned rows,
                unsigned depth, unsigned columns);

} // namespace bastile

#endif // BASTILE_LIB_EMULATOR_FACTORS_H
