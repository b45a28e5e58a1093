//===- InPlace.h - Results in the memory of operands ------------*- C++ -*-===//
//
// Part of Bastile, under the MIT License. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A kernel may store a result over an operand where the thread that stores an
// element is the only one that reads that element of the operand, and reads it
// first. So it is for what is computed element by element and for reductions of
// whole rows, which are over before the rows are stored.
//
//===----------------------------------------------------------------------===//

#ifndef BASTILE_PASSES_TENSORS_INPLACE_H
#define BASTILE_PASSES_TENSORS_INPLACE_H

#include "dialect/Tile.h"

namespace bastile {

/// Why a result cannot take an operand's place in memory.
struct PlaceConflict {
  /// Where the operand is read otherwise than element by element; null if that
  /// is nowhere in particular.
  mlir::Operation *op;
  /// What is read there.
  llvm::StringRef reason;
};

/// What keeps the result `index` of `kernel`, which is on whole tensors, from
/// taking the place of `argument`; nothing if it may.
std::optional<PlaceConflict> findPlaceConflict(tile::KernelOp kernel,
                                               mlir::BlockArgument argument,
                                               unsigned index);

} // namespace bastile

#endif // BASTILE_PASSES_TENSORS_INPLACE_H
