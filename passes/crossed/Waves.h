//===- Waves.h - The order of programs that add in turn ---------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The tiles of a matrix add what they have of each step to a sum, one after the
// other. Under a causal mask, the steps of a tile begin later the later its
// rows are, and end with the last step of all.
//
// Matrices are a wave together if they have about two programs for each one
// that runs at the same time:
//
//   first half    the last tiles come first. All programs start at once, and a
//                 tile is the first one that comes to its first step; tiles
//                 ahead of it come there later. They end one after the other.
//   second half   as they end, the tiles of other matrices follow, the first
//                 ones, which have the most steps, first. All of them end at
//                 once: they go through their steps, and take turns, as the
//                 first half would if time ran backward.
//
// So hardly any program waits, and both halves together take as long on each
// multiprocessor. A program waits only for those with smaller numbers.
//
// A matrix of more tiles than programs run at the same time is cut into
// sections of so many tiles: the last section of matrices of the first half and
// the first section of those of the second half come first, and so on.
// Programs of a section come to a step shortly after each other, and find what
// it reads and adds to in the cache; without sections, those of whole matrices
// would be anywhere in these.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_CROSSED_WAVES_H
#define BASTILE_PASSES_CROSSED_WAVES_H

#include "passes/products/ProgramFrame.h"

namespace bastile {

/// Lets the emitter compute the tile of program `number`. Returns whether it is
/// of the second half of a wave, which has as many matrices as the first half,
/// or one more.
mlir::Value findPlaceInWaves(ProgramFrame &frame, mlir::Value number);

} // namespace bastile

#endif // BASTILE_PASSES_CROSSED_WAVES_H
