//===- RowLength.h - The largest length of a row ----------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_ROWLENGTH_H
#define BASTILE_DIALECT_ROWLENGTH_H

#include <cstdint>

namespace bastile {

/// The most elements of a row. Sizes and offsets in it are computed in 64 bits,
/// and sums of a few of these must not overflow.
constexpr int64_t maxRowLength = int64_t(1) << 31;

} // namespace bastile

#endif // BASTILE_DIALECT_ROWLENGTH_H
