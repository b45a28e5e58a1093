//===- HostTypes.h - Element types in software ------------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_RUNTIME_HOSTTYPES_H
#define BASTILE_RUNTIME_HOSTTYPES_H

#include "bastile/runtime/ElementType.h"

namespace bastile::runtime {

/// The value of the element at `data`, which needs no alignment. Integers past
/// 2^53 are rounded.
double loadElement(ElementType type, const void *data);

/// Stores `value` at `data`, rounded once, to nearest with ties to even. Past
/// the largest finite value a float becomes infinite, or NaN in f8E4M3FN, which
/// has no infinity; an integer saturates, and NaN becomes 0.
void storeElement(ElementType type, void *data, double value);

/// The integer at `data`, of type `type`, without the rounding of
/// `loadElement`. `storeInteger` drops the bits that the type has no room for.
int64_t loadInteger(ElementType type, const void *data);
void storeInteger(ElementType type, void *data, int64_t value);

/// `value` rounded to `type`, as `storeElement` rounds.
double roundTo(ElementType type, double value);

/// The distance between neighbouring values of `type` around `reference`: a
/// unit in the last place. It is NaN unless `reference` is finite; 1 for
/// integers.
double ulp(ElementType type, double reference);

/// How far `actual`, a value of `type`, is from `reference`, in units in the
/// last place; a correctly rounded result is at most 0.5 away. Equal infinities
/// and two NaNs are 0 apart, and so is an overflow that rounding the reference
/// shares; any other pair with a NaN or infinity is infinitely far apart.
double ulpDistance(ElementType type, double actual, double reference);

} // namespace bastile::runtime

#endif // BASTILE_RUNTIME_HOSTTYPES_H
