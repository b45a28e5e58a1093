//===- UnevenTiles.h - Tiles that take unequal times ------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Under a causal mask, tiles of the last queries see all keys, and those of the
// first ones almost none. Programs compute their tiles one after the other, and
// all of them are to end at the same time.
//
// The longest tiles of all matrices come first where the cache holds what tiles
// stream. Programs take them in turn, and every other turn in reverse, so that
// two turns of each have about the same to do, and the last, short tiles even
// out the rest.
//
// Otherwise programs that run at the same time would read a matrix each from
// memory. There a program takes a pair of tiles, the i-th ones from both ends
// of a matrix, and other programs take other pairs of the same matrix.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_ROLES_UNEVENTILES_H
#define BASTILE_PASSES_ROLES_UNEVENTILES_H

#include "passes/products/ProgramFrame.h"

namespace bastile {

/// Lets the emitter compute the tile that a program comes to at `place`, which
/// is its own number and as many times the number of programs as it has had a
/// turn. The last rows of a matrix take the longest if `lastFirst`, the first
/// ones otherwise. `fitsCache` says whether the cache holds what is streamed.
void findUnevenPlace(ProgramFrame &frame, mlir::Value place, bool lastFirst,
                     mlir::Value fitsCache);

} // namespace bastile

#endif // BASTILE_PASSES_ROLES_UNEVENTILES_H
