//===- Limits.h - What the compiler and the runtime agree on ----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_LIMITS_H
#define BASTILE_RUNTIME_LIMITS_H

namespace bastile::runtime {

/// The largest rank that metadata and views may have, and so the arguments of
/// what is compiled. It is a constant so that a launch needs no memory from the
/// heap.
constexpr unsigned maxRank = 8;

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_LIMITS_H
