//===- Warps.h - Threads that run together ----------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_DIALECT_WARPS_H
#define BASTILE_DIALECT_WARPS_H

#include <cstdint>

namespace bastile {

/// The threads of a warp, which run one instruction together, and of a
/// warpgroup, which multiplies together on Hopper; and a warpgroup's warps.
inline constexpr int64_t kWarp = 32, kWarpgroup = 128,
                         kWarpsOfWarpgroup = kWarpgroup / kWarp;

} // namespace bastile

#endif // BASTILE_DIALECT_WARPS_H
