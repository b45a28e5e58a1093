//===- Limits.h - What the compiler and the runtime agree on ----*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_LIMITS_H
#define BASTILE_RUNTIME_LIMITS_H

namespace bastile::runtime {

/// The largest rank of metadata and views, and so of the arguments of compiled
/// functions. It is a constant so that a launch needs no memory from the heap.
constexpr unsigned maxRank = 8;

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_LIMITS_H
